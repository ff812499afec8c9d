"""Figure and tables of dkAE against kernel PCA."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dkae.plotting import INK, SOFT, STYLE, plain_log_ticks
from dkae_study.declaration import Drawing, Findings, Table
from dkae_study.report.charts import BACKGROUND, Look, legend_above, looks_of, new_figure
from dkae_study.results import Estimate, Run, estimate
from dkae_study.results.numbers import MISSING, Cell, collect, estimate_of

#: Rows that kernel PCA was fitted to, and others.
PARTS = {"in_sample": "training rows", "out_of_sample": "test rows"}


def figures(findings: Findings) -> list[Drawing]:
    """Return the curves of kernel PCA with the levels of the autoencoders."""
    caption = (
        "Distance to the prior; lower is nearer. From the marked m on, kernel PCA is nearer than "
        "dkAE (mean over the seeds). Bands: 95 % interval over the seeds, where there are several; "
        "it may be narrower than a line."
    )
    alt = "L_c of kernel PCA over the number of components, and the levels of dkAE, by recipe"
    return [Drawing(f"{findings.experiment.name}-curves", _draw(findings), caption, alt)]


@mpl.rc_context(STYLE)
def _draw(findings: Findings) -> Figure:
    """Draw L_c of kernel PCA over the number of components, and that of the autoencoders."""
    paper_m = findings.experiment.paper_values["crossing"]
    figure = new_figure(7.6, 3.6, findings.note)
    for ax, (part, title) in zip(figure.subplots(1, 2, sharey=True), PARTS.items(), strict=True):
        _draw_kernel_pca(ax, findings, part)
        for i, (recipe, look) in enumerate(looks_of(findings.recipes).items()):
            _draw_autoencoder(ax, findings.of(recipe), part, look, recipe, height=0.04 + 0.09 * i)
        ax.set(title=title, xlabel="number of components m")
        plain_log_ticks(ax, "x")
        plain_log_ticks(ax)
        label = f"the paper's crossing, m = {paper_m:g}"
        ax.axvline(paper_m, color=SOFT, lw=1, ls=":", label=label)
    low, high = figure.axes[0].get_ylim()
    # Room below all curves for what stands at the crossings.
    figure.axes[0].set_ylim(bottom=low * (low / high) ** (0.05 + 0.1 * len(findings.recipes)))
    figure.axes[0].set_ylabel("alignment loss L_c to the prior (no unit)")
    legend_above(figure, n_columns=3)
    return figure


def _draw_kernel_pca(ax: Axes, findings: Findings, part: str) -> None:
    """Draw the curve of kernel PCA, which all recipes share: one run for each seed."""
    by_seed: dict[int, Run] = {}
    for run in findings.runs:
        by_seed.setdefault(run.seed, run)
    m, losses = _curve(list(by_seed.values()), part)
    ax.plot(m, [loss.mean for loss in losses], lw=1.3, label="kernel PCA", color=INK)
    low, high = [loss.low for loss in losses], [loss.high for loss in losses]
    ax.fill_between(m, low, high, color=INK, alpha=0.2, lw=0)


def _curve(runs: Sequence[Run], part: str) -> tuple[list[int], list[Estimate]]:
    """Return the components that all seeds have, and the loss at each."""
    by_m = [dict(zip(run.scores["m"], run.scores[part], strict=True)) for run in runs]
    shared = sorted(set.intersection(*(set(curve) for curve in by_m)))
    return shared, [estimate([curve[m] for curve in by_m]) for m in shared]


def _draw_autoencoder(
    ax: Axes, runs: Sequence[Run], part: str, look: Look, recipe: str, *, height: float
) -> None:
    found = estimate_of(runs, f"dkae_{part}")
    if found is None:
        return
    ax.axhline(found.mean, color=look.color, ls=look.dash, label=f"dkAE, {recipe} recipe")
    if found.half_width:
        ax.axhspan(found.low, found.high, color=look.color, alpha=0.2, lw=0)
    crossings = collect(runs, f"crossing_{part}")
    if crossings:
        is_far_left = float(np.mean(crossings)) < 4  # words would leave the panel
        _mark_crossing(ax, crossings, found.mean, look, height, left=not is_far_left)


def _mark_crossing(
    ax: Axes, crossings: Sequence[float], level: float, look: Look, place: float, *, left: bool
) -> None:
    """Drop a line from the crossing to the axis, and say there where it is: no curve goes there."""
    low, high, mean = min(crossings), max(crossings), float(np.mean(crossings))
    ax.plot([mean], [level], look.marker, color=look.color, ms=6)
    # From below any loss, and not by `plot`: the axis must not reach down to it.
    ax.add_artist(Line2D([mean, mean], [1e-9, level], color=look.color, lw=1, ls=look.dash))
    ax.annotate(
        f"m = {low:g}" if low == high else f"m = {low:g} to {high:g}",
        (mean, place),
        xycoords=ax.get_xaxis_transform(),
        xytext=(-5 if left else 5, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        # Upright lines must not cross the words.
        bbox={"facecolor": BACKGROUND, "edgecolor": "none", "pad": 0.8},
    )


# --- tables --------------------------------------------------------------------------------------


def tables(findings: Findings) -> list[Table]:
    """Return losses and crossings, and L_c of kernel PCA at some numbers of components."""
    by_recipe = [findings.of(recipe) for recipe in findings.recipes]
    rows: list[list[Cell]] = []
    for part, where in PARTS.items():
        rows += [
            [f"L_c of dkAE, {where}", *(estimate_of(runs, f"dkae_{part}") for runs in by_recipe)],
            [
                f"m from which kernel PCA is nearer, {where}",
                *(_format_crossing(runs, f"crossing_{part}") for runs in by_recipe),
            ],
        ]
    header = ["", *(f"{recipe} recipe" for recipe in findings.recipes)]
    return [Table("dkAE against kernel PCA", header, rows), _components(findings)]


def _format_crossing(runs: Sequence[Run], name: str) -> str:
    """Return the mean over the seeds, unless the curve ends before it crosses in some of them."""
    found = collect(runs, name)
    if len(found) == len(runs):
        return estimate(found).format(1) if found else MISSING
    last = max(run.scores["m"][-1] for run in runs)
    return f"above {last} in {len(runs) - len(found)} of {len(runs)} seeds"


def _components(findings: Findings) -> Table:
    """Return L_c of kernel PCA at some numbers of components."""
    there = {m for run in findings.runs for m in run.scores["m"]}
    rows: list[list[Cell]] = []
    for m in (m for m in (1, 2, 4, 8, 10, 16, 32, 64, 128) if m in there):
        cells: list[Cell] = []
        for part in PARTS:
            for recipe in findings.recipes:
                having = [run.scores for run in findings.of(recipe) if m in run.scores["m"]]
                values = [float(scores[part][scores["m"].index(m)]) for scores in having]
                cells.append(estimate(values) if values else None)
        rows.append([str(m), *cells])
    spans = (("", 1), *((where, len(findings.recipes)) for where in PARTS.values()))
    header = ["m", *(recipe for _ in PARTS for recipe in findings.recipes)]
    return Table("L_c of kernel PCA", header, rows, spans, folded=True)
