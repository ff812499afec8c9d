"""Which tables an experiment has, each filled from its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from dkae_study.declaration import Experiment
from dkae_study.intervals import estimate
from dkae_study.report.dots import KERNELS, runs_of_method
from dkae_study.report.numbers import (
    MINUS,
    MISSING,
    Cell,
    collect,
    estimate_of,
    format_column,
    format_point,
    groups_of,
)
from dkae_study.report.style import RECIPES
from dkae_study.results import Run, select

__all__ = ["Table", "tables_of"]

_LOSSES = {
    "reconstruction_mse": "L_r (MSE)",
    "alignment_loss": "L_c, all pairs",
    "alignment_loss_blocks": "L_c, blocks",
}


@dataclass(frozen=True)
class Table:
    """Cells as text; the first column names the row, the others are numbers."""

    caption: str
    header: list[str]
    rows: Sequence[Sequence[Cell]]
    #: Headings over several columns: the text and how many.
    groups: tuple[tuple[str, int], ...] = ()
    #: Not for every reader: closed until it is asked for.
    folded: bool = False

    @property
    def cells(self) -> list[list[str]]:
        """The rows as text."""
        columns = [format_column(column) for column in zip(*self.rows, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)]


def tables_of(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    """Return the tables of an experiment, none if it has no runs."""
    runs = [run for run in runs if run.recipe in RECIPES]
    tabulate = _TABULATORS.get(experiment.name)
    return tabulate(experiment, runs) if tabulate and runs else []


def _sweep(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    axis = experiment.sweep.axis if experiment.sweep else ""
    groups = groups_of(runs)
    points = sorted({float(run.point) for run in runs if run.point is not None})
    tables = []
    for part in ("validation", "test"):
        rows = [
            [
                format_point(point),
                *_loss_cells({recipe: groups.get((recipe, point), []) for recipe in RECIPES}, part),
            ]
            for point in points
        ]
        header, spans = _loss_header(axis)
        tables.append(Table(f"Losses on the {part} part", header, rows, spans, part == "test"))
    return tables


def _loss_header(axis: str) -> tuple[list[str], tuple[tuple[str, int], ...]]:
    header = [axis, *(recipe for _ in _LOSSES for recipe in RECIPES)]
    return header, (("", 1), *((title, len(RECIPES)) for title in _LOSSES.values()))


def _loss_cells(runs: Mapping[str, Sequence[Run]], part: str) -> list[Cell]:
    return [estimate_of(runs[recipe], part, loss) for loss in _LOSSES for recipe in RECIPES]


def _tradeoff(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    by_recipe = {recipe: select(runs, recipe=recipe) for recipe in RECIPES}
    names = sorted({name for run in runs for name in run.scores}, key=float)
    header, spans = _loss_header("λ")
    rows = [[name, *_loss_cells(by_recipe, name)] for name in names]
    return [Table("Losses on the test part", header, rows, spans)]


def _ideal_kernel(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    paper = experiment.paper_values
    tables = []
    for recipe in RECIPES:
        chosen = select(runs, recipe=recipe)
        if not chosen:
            continue
        rows = [
            [
                kernel,
                estimate_of(chosen, kernel),
                *(_improvement(chosen, kernel, other) for other in KERNELS),
                str(paper.get(kernel, MISSING)),
                *(_percent(paper.get(f"{kernel} vs {other}, %")) for other in KERNELS),
            ]
            for kernel in KERNELS
        ]
        against = [f"vs {kernel}, %" for kernel in KERNELS]
        header = ["kernel", "L_c to K_I", *against, "L_c to K_I", *against]
        spans = (("", 1), (f"ours, {recipe} recipe, {_seeds(chosen)}", 4), ("the paper", 4))
        tables.append(Table(f"Table 1 of the paper, {recipe} recipe", header, rows, spans))
    further = [name for run in runs for name in run.scores if name not in KERNELS]
    names = {name: experiment.metrics.get(name, name) for name in dict.fromkeys(further)}
    return [*tables, _by_recipe("Further scores", runs, names)]


def _improvement(runs: Sequence[Run], row: str, column: str) -> str:
    """Return (L_column − L_row) / L_row in per cent: within a seed, then over the seeds."""
    if row == column:
        return MISSING
    pairs = [run.scores for run in runs if row in run.scores and column in run.scores]
    percents = [100 * (scores[column] - scores[row]) / scores[row] for scores in pairs]
    return estimate(percents).format(2) if percents else MISSING


def _percent(value: float | None) -> str:
    return MISSING if value is None else f"{value:.1f}".replace("-", MINUS)


def _seeds(runs: Iterable[Run]) -> str:
    n = len({run.seed for run in runs})
    return f"{n} seed" if n == 1 else f"{n} seeds"


def _by_recipe(caption: str, runs: Sequence[Run], names: Mapping[str, str]) -> Table:
    """Return a table with a row for each score and a column for each recipe."""
    rows = [
        [text, *(estimate_of(select(runs, recipe=r), name) for r in RECIPES)]
        for name, text in names.items()
    ]
    return Table(caption, ["", *(f"{recipe} recipe" for recipe in RECIPES)], rows)


def _kernel_pca(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    by_recipe = [select(runs, recipe=recipe) for recipe in RECIPES]
    rows: list[list[Cell]] = []
    for part, where in {"in_sample": "training rows", "out_of_sample": "test rows"}.items():
        rows += [
            [
                f"L_c of dkAE, {where}",
                *(estimate_of(chosen, f"dkae_{part}") for chosen in by_recipe),
            ],
            [
                f"m from which kernel PCA is nearer, {where}",
                *(_format_crossing(chosen, f"crossing_{part}") for chosen in by_recipe),
            ],
        ]
    summary = Table("dkAE against kernel PCA", ["", *(f"{r} recipe" for r in RECIPES)], rows)
    return [summary, _components(runs)]


def _format_crossing(runs: Sequence[Run], name: str) -> str:
    """Return the mean over the seeds, unless the curve ends before it crosses in some of them."""
    found = collect(runs, name)
    if len(found) == len(runs):
        return estimate(found).format(1) if found else MISSING
    last = max(run.scores["m"][-1] for run in runs)
    return f"above {last} in {len(runs) - len(found)} of {len(runs)} seeds"


def _components(runs: Sequence[Run]) -> Table:
    """Return L_c of kernel PCA at some numbers of components."""
    shown = [m for m in (1, 2, 4, 8, 10, 16, 32, 64, 128) if any(m in r.scores["m"] for r in runs)]
    rows = []
    for m in shown:
        cells = []
        for part in ("in_sample", "out_of_sample"):
            for recipe in RECIPES:
                having = [r.scores for r in select(runs, recipe=recipe) if m in r.scores["m"]]
                values = [float(scores[part][scores["m"].index(m)]) for scores in having]
                cells.append(estimate(values) if values else None)
        rows.append([str(m), *cells])
    spans = (("", 1), ("training rows", 2), ("test rows", 2))
    return Table("L_c of kernel PCA", ["m", *RECIPES, *RECIPES], rows, spans, folded=True)


def _denoising(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    parts = dict.fromkeys(part for run in runs for part in run.scores)
    return [_methods(runs, part, suffix) for suffix in ("", "_clipped") for part in parts]


def _methods(runs: Sequence[Run], part: str, suffix: str) -> Table:
    names = dict.fromkeys(name for run in runs for name in run.scores.get(part, {}))
    rows = [[name, *_method_cells(runs, part, name, suffix)] for name in names]
    spans = (("", 1), *((f"{recipe} recipe", 2) for recipe in RECIPES))
    what = "; noisy input clipped to [0, 1] first" if suffix else ""
    header = ["method", *(text for _ in RECIPES for text in ("MSE", "PSNR, dB"))]
    # Table 2 is of two digits; whether its noise was clipped the paper does not say.
    folded = part != "5 and 6" and bool(suffix)
    return Table(f"Denoising, {part}{what}", header, rows, spans, folded)


def _method_cells(runs: Sequence[Run], part: str, name: str, suffix: str) -> list[Cell]:
    cells: list[Cell] = []
    for recipe in RECIPES:
        chosen = runs_of_method(select(runs, recipe=recipe), part, name)
        for metric, digits in {"mse": 4, "psnr": 1}.items():
            found = estimate_of(chosen, part, name, metric + suffix)
            cells.append(found and found.format(digits))  # the same for both recipes
    return cells


def _code_space(experiment: Experiment, runs: Sequence[Run]) -> list[Table]:
    clusterings = {"k-means": "k-means", "spectral": "spectral clustering"}
    agreements = {"accuracy": "accuracy", "nmi": "NMI", "ari": "ARI"}
    paths = [("linear classifier",), *((c, a) for c in clusterings for a in agreements)]
    spans = (("", 1), ("linear classifier", 1), *((text, 3) for text in clusterings.values()))
    header = ["representation", "accuracy", *(list(agreements.values()) * len(clusterings))]
    tables = []
    for recipe in RECIPES:
        chosen = select(runs, recipe=recipe)
        names = dict.fromkeys(name for run in chosen for name in run.scores)
        rows = [[name, *(estimate_of(chosen, name, *path) for path in paths)] for name in names]
        if rows:
            caption = f"Classes in the code, {recipe} recipe, {_seeds(chosen)}"
            tables.append(Table(caption, header, rows, spans))
    return tables


_TABULATORS: dict[str, Callable[[Experiment, Sequence[Run]], list[Table]]] = {
    "lambda": _sweep,
    "code-size": _sweep,
    "tradeoff": _tradeoff,
    "ideal-kernel": _ideal_kernel,
    "kernel-pca": _kernel_pca,
    "denoising": _denoising,
    "code-space": _code_space,
}
