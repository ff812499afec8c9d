"""Numbers out of runs: the scores of several seeds together, and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from dkae_study.results.intervals import Estimate, estimate
from dkae_study.results.runs import Point, Run

__all__ = [
    "MINUS",
    "MISSING",
    "Cell",
    "collect",
    "count_seeds",
    "estimate_of",
    "format_column",
    "format_point",
    "groups_of",
]

#: What stands where a run is missing.
MISSING = "–"
MINUS = "−"

#: A number, a text that is ready, or nothing because a run is missing.
Cell = Estimate | str | None


def collect(runs: Iterable[Run], *path: str) -> list[float]:
    """Return the score at a path, such as ("test", "alignment_loss"), of all runs that have it."""
    values = (_follow(run.scores, path) for run in runs)
    return [float(value) for value in values if isinstance(value, int | float)]


def _follow(scores: Any, path: Sequence[str]) -> Any:
    for name in path:
        if not isinstance(scores, dict) or name not in scores:
            return None
        scores = scores[name]
    return scores


def estimate_of(runs: Iterable[Run], *path: str) -> Estimate | None:
    """Return the mean of a score over the seeds and its interval; None if no run has it."""
    values = collect(runs, *path)
    return estimate(values) if values else None


def groups_of(runs: Iterable[Run]) -> dict[tuple[str, Point | None], list[Run]]:
    """Return the seeds of each recipe and value of the axis."""
    groups: dict[tuple[str, Point | None], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.seed):
        groups.setdefault((run.recipe, run.point), []).append(run)
    return groups


def count_seeds(runs: Iterable[Run]) -> str:
    """Return how many seeds the runs have, in words."""
    n = len({run.seed for run in runs})
    return f"{n} seed" if n == 1 else f"{n} seeds"


def format_column(cells: Sequence[Cell]) -> list[str]:
    """Return the cells of a column as text, all with as many decimals as the least needs."""
    found = [cell.mean for cell in cells if isinstance(cell, Estimate)]
    decimals = max((_n_decimals(value) for value in found), default=0)
    return [
        cell.format(decimals) if isinstance(cell, Estimate) else MISSING if cell is None else cell
        for cell in cells
    ]


def format_point(point: Point | None) -> str:
    """Return a value of an axis as it is written in a sentence."""
    return str(point) if isinstance(point, str) else MISSING if point is None else f"{point:,.4g}"


def _n_decimals(value: float) -> int:
    """Return 4 for most losses, more below 0.1, so that three digits stay, and 1 for decibels."""
    if value == 0 or not math.isfinite(value):
        return 4
    if abs(value) >= 10:
        return 1
    return max(4, 2 - math.floor(math.log10(abs(value))))
