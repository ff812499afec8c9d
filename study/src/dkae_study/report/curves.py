"""Figures that are curves: losses over an axis, over components, over the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dkae.plotting import INK, PAPER, SOFT, STYLE, HistoryDisplay, plain_log_ticks
from dkae_study.intervals import Estimate, estimate
from dkae_study.report.numbers import collect, estimate_of, format_point, groups_of
from dkae_study.report.style import RECIPES, SERIES, new_figure
from dkae_study.results import Run, select

__all__ = ["draw_kernel_pca", "draw_losses", "draw_sweep", "legend_above"]

_LOSSES = {
    "reconstruction_mse": "reconstruction loss L_r (MSE per pixel)",
    "alignment_loss": "alignment loss L_c (no unit)",
}


@mpl.rc_context(STYLE)
def draw_losses(history: Sequence[Mapping[str, Any]], steps_an_epoch: int) -> Figure:
    """Draw both terms of the loss over the training, one panel each; a line parts two phases."""
    figure = new_figure(7.6, 2.9)
    left, right = figure.subplots(1, 2)
    HistoryDisplay(history, steps_per_epoch=steps_an_epoch).plot(ax=(left, right))
    left.set_title("Reconstruction loss $L_r$ / $kd$")
    right.set_title("Alignment loss $L_c$")
    return figure


@mpl.rc_context(STYLE)
def draw_sweep(runs: Sequence[Run], axis: str, *, scale: str) -> Figure:
    """Draw both validation losses over the axis of an experiment, one line for each recipe.

    The values stand at equal distances: 0 and 0.01, or 10 and 50, would else be one dot.
    """
    points = sorted({float(run.point) for run in runs if run.point is not None})
    figure = new_figure(7.6, 3.4, scale)
    for ax, (loss, title) in zip(figure.subplots(1, 2), _LOSSES.items(), strict=True):
        for recipe in RECIPES:
            _draw_sweep_line(ax, select(runs, recipe=recipe), points, recipe, loss)
        ax.set(xlabel=axis, ylabel=title)
        ax.set_xticks(range(len(points)), [format_point(point) for point in points])
        plain_log_ticks(ax)
    legend_above(figure)
    return figure


def _draw_sweep_line(
    ax: Axes, runs: Sequence[Run], points: Sequence[float], recipe: str, loss: str
) -> None:
    groups = {float(point or 0): group for (_, point), group in groups_of(runs).items()}
    found = {
        i: value
        for i, point in enumerate(points)
        if (value := estimate_of(groups.get(point, []), "validation", loss)) is not None
    }
    if not found:
        return
    look = SERIES[recipe]
    ax.errorbar(
        list(found),
        [value.mean for value in found.values()],
        yerr=[value.half_width or 0.0 for value in found.values()],
        color=look.color,
        marker=look.marker,
        linestyle=look.dash,
        capsize=2.5,
        label=f"{recipe} recipe",
    )


@mpl.rc_context(STYLE)
def draw_kernel_pca(runs: Sequence[Run], paper_m: float | None, *, scale: str) -> Figure:
    """Draw L_c of kernel PCA over the number of components, and that of the autoencoders."""
    figure = new_figure(7.6, 3.6, scale)
    parts = {"in_sample": "training rows", "out_of_sample": "test rows"}
    for ax, (part, title) in zip(figure.subplots(1, 2, sharey=True), parts.items(), strict=True):
        _draw_kernel_pca_curves(ax, runs, part)
        for recipe in RECIPES:
            _draw_autoencoder(ax, select(runs, recipe=recipe), recipe, part)
        ax.set(title=title, xlabel="number of components m")
        plain_log_ticks(ax, "x")
        plain_log_ticks(ax)
        if paper_m is not None:
            ax.axvline(
                paper_m, color=SOFT, lw=1, ls=":", label=f"the paper's crossing, m = {paper_m:g}"
            )
    low, high = figure.axes[0].get_ylim()
    # Room below all curves for what stands at the crossings.
    figure.axes[0].set_ylim(bottom=low * (low / high) ** 0.25)
    figure.axes[0].set_ylabel("alignment loss L_c to the prior (no unit)")
    legend_above(figure)
    return figure


def _draw_kernel_pca_curves(ax: Axes, runs: Sequence[Run], part: str) -> None:
    """Draw one curve if the recipes share their kernel PCA, else one for each of them."""
    by_seed: dict[int, Run] = {}
    for run in runs:
        first = by_seed.setdefault(run.seed, run)
        if first.scores["m"] != run.scores["m"]:
            break
        if not np.allclose(first.scores[part], run.scores[part], rtol=1e-3):
            break
    else:
        _draw_with_band(ax, list(by_seed.values()), part, "kernel PCA", color=INK)
        return
    for recipe in RECIPES:
        if chosen := select(runs, recipe=recipe):
            look = {"color": SERIES[recipe].color, "ls": "-."}
            _draw_with_band(ax, chosen, part, f"kernel PCA, {recipe} recipe", **look)


def _draw_with_band(ax: Axes, runs: Sequence[Run], part: str, label: str, **look: Any) -> None:
    m, losses = _curve(runs, part)
    ax.plot(m, [loss.mean for loss in losses], lw=1.3, label=label, **look)
    low, high = [loss.low for loss in losses], [loss.high for loss in losses]
    ax.fill_between(m, low, high, color=look["color"], alpha=0.2, lw=0)


def _curve(runs: Sequence[Run], part: str) -> tuple[list[int], list[Estimate]]:
    """Return the components that all seeds have, and the loss at each."""
    by_m = [dict(zip(run.scores["m"], run.scores[part], strict=True)) for run in runs]
    shared = sorted(set.intersection(*(set(curve) for curve in by_m)))
    return shared, [estimate([curve[m] for curve in by_m]) for m in shared]


def _draw_autoencoder(ax: Axes, runs: Sequence[Run], recipe: str, part: str) -> None:
    found = estimate_of(runs, f"dkae_{part}")
    if found is None:
        return
    look = SERIES[recipe]
    ax.axhline(found.mean, color=look.color, ls=look.dash, label=f"dkAE, {recipe} recipe")
    if found.half_width:
        ax.axhspan(found.low, found.high, color=look.color, alpha=0.2, lw=0)
    crossings = collect(runs, f"crossing_{part}")
    if crossings:
        # Words of the two recipes stand on either side, if there is room.
        mean = float(np.mean(crossings))
        crowded = recipe == RECIPES[0] or mean > max(runs[0].scores["m"]) / 5
        _mark_crossing(ax, crossings, found.mean, recipe, left=crowded and mean >= 4)


def _mark_crossing(
    ax: Axes, crossings: Sequence[float], level: float, recipe: str, *, left: bool
) -> None:
    """Drop a line from the crossing to the axis, and say there where it is: no curve goes there."""
    low, high, mean = min(crossings), max(crossings), float(np.mean(crossings))
    look = SERIES[recipe]
    ax.plot([mean], [level], look.marker, color=look.color, ms=6)
    # From below any loss, and not by `plot`: the axis must not reach down to it.
    ax.add_artist(Line2D([mean, mean], [1e-9, level], color=look.color, lw=1, ls=look.dash))
    ax.annotate(
        f"m = {low:g}" if low == high else f"m = {low:g} to {high:g}",
        (mean, 0.04 + 0.09 * (recipe == RECIPES[0])),
        xycoords=ax.get_xaxis_transform(),
        xytext=(-5 if left else 5, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        # Upright lines must not cross the words.
        bbox={"facecolor": PAPER, "edgecolor": "none", "pad": 0.8},
    )


def legend_above(figure: Figure, n_columns: int = 4) -> None:
    """Put one legend over all panels, where it covers nothing."""
    found: dict[str, Any] = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    # Recipes first: they are what a reader looks for.
    names = sorted(found, key=lambda name: not name.endswith("recipe"))
    handles = [found[name] for name in names]
    figure.legend(handles, names, loc="outside upper left", ncols=min(n_columns, len(names)))
