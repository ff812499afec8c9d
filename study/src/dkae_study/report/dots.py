"""Figures that are dots: one number for each method, recipe and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkae.plotting import GREEN, INK, PURPLE, SOFT, STYLE, plain_log_ticks
from dkae_study.intervals import Estimate
from dkae_study.report.curves import legend_above
from dkae_study.report.numbers import collect, estimate_of
from dkae_study.report.style import RECIPES, SERIES, new_figure
from dkae_study.results import Run, select

__all__ = ["KERNELS", "draw_code_space", "draw_denoising", "draw_ideal_kernel", "runs_of_method"]

#: The three matrices of Table 1.
KERNELS = ("P", "K_AE", "C")

#: Recipes stand one above the other in a row, where their dots would else cover each other.
_SHIFTS = dict(zip(RECIPES, (-0.14, 0.14), strict=True))


@mpl.rc_context(STYLE)
def draw_ideal_kernel(
    runs: Sequence[Run], paper_values: Mapping[str, float], *, scale: str
) -> Figure:
    """Draw the distance to the ideal kernel: a line for each seed, which has all three matrices."""
    recipes = [recipe for recipe in RECIPES if select(runs, recipe=recipe)]
    figure = new_figure(7.6, 3.5, scale)
    panels = figure.subplots(1, len(recipes), sharey=True, squeeze=False)[0]
    for ax, recipe in zip(panels, recipes, strict=True):
        _draw_seeds(ax, select(runs, recipe=recipe), recipe)
        printed = [(i, paper_values[k]) for i, k in enumerate(KERNELS) if k in paper_values]
        if printed:
            x, y = zip(*printed, strict=True)
            ax.plot(x, y, "D", ms=7, mfc="none", color=INK, label="the paper's value")
        ax.set(title=f"{recipe} recipe", xlim=(-0.5, 2.6))
        ax.set_xticks(range(3), ["P\nprior", "K_AE\nautoencoder, λ = 0", "C\ndkAE"])
    panels[0].set_ylabel("L_c to the ideal kernel K_I (no unit)")
    legend_above(figure)
    return figure


def _draw_seeds(ax: Axes, runs: Sequence[Run], recipe: str) -> None:
    look = SERIES[recipe]
    for run in runs:
        values = [run.scores.get(kernel, np.nan) for kernel in KERNELS]
        ax.plot(range(3), values, "o-", ms=3.5, lw=0.8, color=SOFT, alpha=0.6, label="one seed")
    for i, kernel in enumerate(KERNELS):
        found = estimate_of(runs, kernel)
        if found is not None:
            _draw_estimate(ax, found, i + 0.17, look.marker, look.color, f"mean, {recipe} recipe")


def _draw_estimate(
    ax: Axes, found: Estimate, x: float, marker: str, color: str, label: str
) -> None:
    half = found.half_width or 0.0
    ax.errorbar([x], [found.mean], yerr=[half], fmt=marker, color=color, capsize=3, label=label)


@mpl.rc_context(STYLE)
def draw_denoising(runs: Sequence[Run], references: Mapping[str, float], *, scale: str) -> Figure:
    """Draw the error of each method, best on top, with the paper's numbers as upright lines."""
    parts = list(dict.fromkeys(part for run in runs for part in run.scores))
    methods = _sorted_methods(runs, parts[0])
    figure = new_figure(7.6, 0.36 * len(methods) + 1.5, scale)
    panels = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    for ax, part in zip(panels, parts, strict=True):
        _draw_methods(ax, runs, part, methods)
        ax.set(title=f"digits {part}" if part[0].isdigit() else part, xlabel="MSE per pixel")
        plain_log_ticks(ax, "x")
    looks = zip(references.items(), (GREEN, PURPLE, INK), ("--", "-.", ":"), strict=False)
    for (name, value), color, dash in looks:
        # The paper measured this on the first part only, the digits 5 and 6.
        panels[0].axvline(value, color=color, lw=1.2, ls=dash, label=f"{name}, {value:.4f}")
    _name_rows(panels[0], methods)
    legend_above(figure, n_columns=3)
    return figure


def _sorted_methods(runs: Sequence[Run], part: str) -> list[str]:
    methods = dict.fromkeys(m for run in runs for m in run.scores.get(part, {}))
    return sorted(methods, key=lambda m: float(np.mean(collect(runs, part, m, "mse"))))


def _draw_methods(ax: Axes, runs: Sequence[Run], part: str, methods: Sequence[str]) -> None:
    for recipe, shift in _SHIFTS.items():
        chosen = {m: runs_of_method(select(runs, recipe=recipe), part, m) for m in methods}
        found = [estimate_of(chosen[method], part, method, "mse") for method in methods]
        _draw_row_dots(ax, found, shift, recipe)


def runs_of_method(runs: Sequence[Run], part: str, method: str) -> list[Run]:
    """Return the runs to take a method's numbers from: of one value of the axis only.

    A method stands in the runs with clean or in those with noisy training; what stands in both,
    such as the noisy input itself, would else count twice.
    """
    having = [run for run in runs if method in run.scores.get(part, {})]
    points = sorted({str(run.point) for run in having})
    return [run for run in having if str(run.point) == points[0]]


def _draw_row_dots(ax: Axes, found: Sequence[Estimate | None], shift: float, recipe: str) -> None:
    rows = [(i + shift, value) for i, value in enumerate(found) if value is not None]
    if not rows:
        return
    look = SERIES[recipe]
    ax.errorbar(
        [value.mean for _, value in rows],
        [row for row, _ in rows],
        xerr=[value.half_width or 0.0 for _, value in rows],
        fmt=look.marker,
        color=look.color,
        capsize=2,
        label=f"{recipe} recipe",
    )


def _name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of all panels from the top, with half a row free above and below."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)


@mpl.rc_context(STYLE)
def draw_code_space(runs: Sequence[Run], *, scale: str) -> Figure:
    """Draw how well classes are found in each representation, with and without labels."""
    names = list(dict.fromkeys(name for run in runs for name in run.scores))
    panels = {
        "linear classifier": ("linear classifier",),
        "k-means": ("k-means", "accuracy"),
        "spectral clustering": ("spectral", "accuracy"),
    }
    figure = new_figure(7.6, 0.4 * len(names) + 1.4, scale)
    for ax, (title, path) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        for recipe, shift in _SHIFTS.items():
            chosen = select(runs, recipe=recipe)
            found = [estimate_of(chosen, name, *path) for name in names]
            _draw_row_dots(ax, found, shift, recipe)
        ax.set(title=title, xlabel="accuracy (fraction)")
    _name_rows(figure.axes[0], names)
    legend_above(figure)
    return figure
