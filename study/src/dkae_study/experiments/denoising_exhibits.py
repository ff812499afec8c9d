"""Figures and tables of the denoising experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from dkae.plotting import GREEN, INK, PURPLE, STYLE, plain_log_ticks
from dkae_study.declaration import Drawing, Findings, Table
from dkae_study.experiments.denoisers import PAIR
from dkae_study.report.charts import BARS, draw_row_dots, legend_above, name_rows, new_figure
from dkae_study.report.images import draw_image_rows
from dkae_study.results import Estimate, Run
from dkae_study.results.numbers import Cell, collect, estimate_of
from dkae_study.results.pictures import unpack


def figures(findings: Findings) -> list[Drawing]:
    """Return the errors of all methods as dots, and what the methods make of some images."""
    values = findings.experiment.paper_values
    references = {f"paper: {name}": value for name, value in values.items()}
    linear = estimate_of(findings.runs, PAIR, "linear PCA", "mse")
    if linear is not None:
        references["ours: linear PCA"] = linear.mean
    caption = (
        "Mean squared error against the clean image, best method on top; lower is better. Upright "
        f"lines: the paper's values and linear PCA. {BARS}"
    )
    alt = "Denoising error of each method, by recipe and by what the networks were trained on"
    name = f"{findings.experiment.name}-errors"
    return [Drawing(name, _draw_errors(findings, references), caption, alt), *_images(findings)]


def _images(findings: Findings) -> list[Drawing]:
    drawings = []
    for point in ("clean", "noisy"):
        for recipe, run in findings.first_runs(point).items():
            if not run.pictures:
                continue
            rows = {name: unpack(packed) for name, packed in run.pictures.items()}
            caption = (
                f"Test digits {PAIR}, the same with noise, and what each method makes of them: "
                f"{recipe} recipe, seed {run.seed}, networks trained on {point} digits. The noise "
                "is not clipped; what lies beyond black and white cannot be seen."
            )
            shape = findings.study.data.row_shape
            figure = draw_image_rows(rows, shape, note=findings.note)
            name = f"{findings.experiment.name}-{recipe}-{point}"
            drawings.append(Drawing(name, figure, caption, caption, is_image=True))
    return drawings


@mpl.rc_context(STYLE)
def _draw_errors(findings: Findings, references: Mapping[str, float]) -> Figure:
    """Draw the error of each method, best on top, with reference values as upright lines."""
    parts = list(dict.fromkeys(part for run in findings.runs for part in run.scores))
    methods = _sorted_methods(findings.runs, parts[0])
    figure = new_figure(7.6, 0.36 * len(methods) + 1.5, findings.note)
    panels = figure.subplots(1, len(parts), sharey=True, squeeze=False)[0]
    for ax, part in zip(panels, parts, strict=True):
        found = {
            recipe: [_error_of(findings.of(recipe), part, method, "mse") for method in methods]
            for recipe in findings.recipes
        }
        draw_row_dots(ax, found)
        title = f"digits {part}" if part == PAIR else part.replace(", ", ",\n")
        ax.set(title=title, xlabel="MSE per pixel")
        plain_log_ticks(ax, "x")
    lines = zip(references.items(), (GREEN, PURPLE, INK), ("--", "-.", ":"), strict=False)
    for (name, value), color, dash in lines:
        # The paper measured this on the first part only.
        panels[0].axvline(value, color=color, lw=1.2, ls=dash, label=f"{name}, {value:.4f}")
    name_rows(panels[0], methods)
    legend_above(figure, n_columns=3)
    return figure


def _sorted_methods(runs: Sequence[Run], part: str) -> list[str]:
    methods = dict.fromkeys(m for run in runs for m in run.scores.get(part, {}))
    return sorted(methods, key=lambda m: float(np.mean(collect(runs, part, m, "mse"))))


def _error_of(runs: Sequence[Run], part: str, method: str, metric: str) -> Estimate | None:
    """Return the error of a method, from the runs with one value of the axis only.

    A method stands in the runs with clean or in those with noisy training; what stands in both,
    such as the noisy input itself, would else count twice.
    """
    having = [run for run in runs if method in run.scores.get(part, {})]
    first = min((str(run.point) for run in having), default="")
    chosen = [run for run in having if str(run.point) == first]
    return estimate_of(chosen, part, method, metric)


def tables(findings: Findings) -> list[Table]:
    """Return a table of all methods for each set of digits, without clipping and with it."""
    parts = dict.fromkeys(part for run in findings.runs for part in run.scores)
    return [_table(findings, part, suffix) for suffix in ("", "_clipped") for part in parts]


def _table(findings: Findings, part: str, suffix: str) -> Table:
    names = dict.fromkeys(name for run in findings.runs for name in run.scores.get(part, {}))
    rows = [[name, *_cells(findings, part, name, suffix)] for name in names]
    spans = (("", 1), *((f"{recipe} recipe", 2) for recipe in findings.recipes))
    what = "; noisy input clipped to [0, 1] first" if suffix else ""
    header = ["method", *(text for _ in findings.recipes for text in ("MSE", "PSNR, dB"))]
    # Table 2 is of two digits; whether its noise was clipped the paper does not say.
    folded = part != PAIR and bool(suffix)
    return Table(f"Denoising, {part}{what}", header, rows, spans, folded)


def _cells(findings: Findings, part: str, name: str, suffix: str) -> list[Cell]:
    cells: list[Cell] = []
    for recipe in findings.recipes:
        for metric, digits in {"mse": 4, "psnr": 1}.items():
            found = _error_of(findings.of(recipe), part, name, metric + suffix)
            cells.append(found and found.format(digits))  # the same for both recipes
    return cells
