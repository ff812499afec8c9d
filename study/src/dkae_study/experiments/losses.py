"""Both losses of a network on a part of the data: measured, drawn and tabulated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.plotting import STYLE, plain_log_ticks
from dkae_study.declaration import Drawing, Findings, Models, Outcome, Table
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.alignment_losses import mean_over_blocks
from dkae_study.report.charts import BARS, Look, legend_above, looks_of, new_figure
from dkae_study.results import Job, Run
from dkae_study.results.numbers import Cell, estimate_of, format_point, groups_of

#: Rows of the blocks over which L_c is averaged, as training sees it.
N_BLOCK_ROWS = 200

#: What `part_scores` returns.
SCORES = {
    "reconstruction_mse": "mean squared error of a pixel, L_r / (n d)",
    "alignment_loss": "L_c (Eq. 6) between codes and prior on all pairs of the rows",
    "alignment_loss_blocks": f"mean of L_c over blocks of {N_BLOCK_ROWS} rows",
}
_HEADINGS = dict(zip(SCORES, ("L_r (MSE)", "L_c, all pairs", "L_c, blocks"), strict=True))
_PANELS = {
    "reconstruction_mse": "reconstruction loss L_r (MSE per pixel)",
    "alignment_loss": "alignment loss L_c (no unit)",
}


def part_scores(model: DeepKernelizedAutoencoder, gram: Any, X: Any) -> dict[str, float]:
    """Return both losses of a model on rows and the kernel's Gram matrix of these rows."""
    codes = model.transform(X)
    code_gram, n_block = metrics.code_gram(codes), min(N_BLOCK_ROWS, len(X))
    return {
        "reconstruction_mse": metrics.reconstruction_error(X, model.inverse_transform(codes)),
        "alignment_loss": metrics.alignment_loss(code_gram, gram),
        "alignment_loss_blocks": mean_over_blocks(code_gram, gram, n_block),
    }


def measure_parts(workshop: Workshop, job: Job, models: Models) -> Outcome:
    """Measure the losses of the one network of a job."""
    (model,) = models.values()
    return Outcome(
        {
            name: part_scores(model, workshop.gram(job.seed, name), workshop.parts[name].X)
            for name in ("validation", "test")
        }
    )


# --- figures -------------------------------------------------------------------------------------


def sweep_figures(findings: Findings, axis: str) -> list[Drawing]:
    """Return the figure of both losses over the axis of an experiment."""
    caption = (
        "Both losses on the validation part; left reconstruction, right alignment. The values of "
        f"the axis stand at equal distances, the losses on logarithmic axes. {BARS}"
    )
    alt = f"Two panels: validation losses L_r and L_c over {axis}, a line a recipe"
    name = f"{findings.experiment.name}-losses"
    return [Drawing(name, _draw_sweep(findings, axis), caption, alt)]


@mpl.rc_context(STYLE)
def _draw_sweep(findings: Findings, axis: str) -> Figure:
    """Draw both validation losses over an axis, one line for each recipe.

    The values stand at equal distances: 0 and 0.01, or 10 and 50, would else be one dot.
    """
    points = _points(findings.runs)
    figure = new_figure(7.6, 3.4, findings.note)
    for ax, (loss, title) in zip(figure.subplots(1, 2), _PANELS.items(), strict=True):
        for recipe, look in looks_of(findings.recipes).items():
            _draw_line(ax, findings.of(recipe), points, loss, look, f"{recipe} recipe")
        ax.set(xlabel=axis, ylabel=title)
        ax.set_xticks(range(len(points)), [format_point(point) for point in points])
        plain_log_ticks(ax)
    legend_above(figure)
    return figure


def _points(runs: Sequence[Run]) -> list[float]:
    return sorted({float(run.point) for run in runs if run.point is not None})


def _draw_line(
    ax: Axes, runs: Sequence[Run], points: Sequence[float], loss: str, look: Look, label: str
) -> None:
    groups = {float(point or 0): group for (_, point), group in groups_of(runs).items()}
    found = {
        i: value
        for i, point in enumerate(points)
        if (value := estimate_of(groups.get(point, []), "validation", loss)) is not None
    }
    if not found:
        return
    ax.errorbar(
        list(found),
        [value.mean for value in found.values()],
        yerr=[value.half_width or 0.0 for value in found.values()],
        color=look.color,
        marker=look.marker,
        linestyle=look.dash,
        capsize=2.5,
        label=label,
    )


# --- tables --------------------------------------------------------------------------------------


def sweep_tables(findings: Findings) -> list[Table]:
    """Return the losses at each value of the axis, on the validation part and on the test part."""
    groups, axis = groups_of(findings.runs), findings.experiment.sweep
    tables = []
    for part in ("validation", "test"):
        rows = {
            format_point(point): [
                estimate_of(groups.get((recipe, point), []), part, loss)
                for loss in SCORES
                for recipe in findings.recipes
            ]
            for point in _points(findings.runs)
        }
        caption, name = f"Losses on the {part} part", axis.axis if axis else ""
        tables.append(loss_table(caption, name, rows, findings.recipes, folded=part == "test"))
    return tables


def loss_table(
    caption: str,
    axis: str,
    rows: Mapping[str, Sequence[Cell]],
    recipes: Sequence[str],
    *,
    folded: bool = False,
) -> Table:
    """Return a table with a column for each loss and recipe."""
    header = [axis, *(recipe for _ in SCORES for recipe in recipes)]
    groups = (("", 1), *((text, len(recipes)) for text in _HEADINGS.values()))
    return Table(caption, header, [[name, *row] for name, row in rows.items()], groups, folded)
