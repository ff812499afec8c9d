"""Numbers out of runs: means over seeds with their uncertainty, and how they are printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t

from dkae_study.results.runs import Point, Run

#: What stands where a run is missing.
MISSING = "–"
MINUS = "−"

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean, and the half-width of its 95 % interval (None for a single value)."""

    mean: float
    half_width: float | None
    n: int

    def format(self, digits: int = 4) -> str:
        """Return the mean, with ± the half-width where there is one, or what it lies below."""
        text, last_digit = f"{self.mean:.{digits}f}".replace("-", "−"), 10.0**-digits
        if self.half_width is None:
            return text
        if 0 < self.half_width < last_digit / 2:  # would read as no uncertainty at all
            return f"{text} ± <{last_digit:.{digits}f}"
        return f"{text} ± {self.half_width:.{digits}f}"

    @property
    def seeds(self) -> str:
        """What the interval rests on, in words."""
        return "one seed, no interval" if self.half_width is None else f"{self.n} seeds"

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself for a single value."""
        return self.mean - (self.half_width or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean itself for a single value."""
        return self.mean + (self.half_width or 0.0)

    def is_above(self, value: float) -> bool:
        """Return whether there is an interval that lies above a value."""
        return self.half_width is not None and self.low > value


def estimate(values: Sequence[float]) -> Estimate:
    r"""Return the mean of values and its interval by Student's t.

    .. math:: \bar x \pm t_{n-1, 0.975} \, s / \sqrt n
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n < 2:
        return Estimate(float(x.mean()), None, n)
    half_width = t.ppf((1 + CONFIDENCE) / 2, n - 1) * x.std(ddof=1) / np.sqrt(n)
    return Estimate(float(x.mean()), float(half_width), n)


#: A number, a text that is ready, or nothing because a run is missing.
Cell = Estimate | str | None


def collect(runs: Iterable[Run], *path: str) -> list[float]:
    """Return the score at a path, such as ("test", "alignment_loss"), of all runs that have it."""
    values = (follow(run.scores, path) for run in runs)
    return [float(value) for value in values if isinstance(value, int | float)]


def follow(scores: Any, path: Sequence[str]) -> Any:
    """Return what stands at a path of the scores; None if nothing does."""
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
