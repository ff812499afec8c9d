"""One recipe against another: the same number of the same seed, in pairs.

Claims are judged for each recipe by itself. What the second recipe of a study changes is another
question, and this is its answer: each number in which it may do better, or worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dkae_study.results import Estimate, Point, Run, estimate, select
from dkae_study.results.numbers import follow

#: The key of a pair: a seed and, in a sweep, a value of the axis.
Key = tuple[int, Point | None]
Numbers = Callable[[Sequence[Run]], Mapping[Key, float]]
Change = Literal["better", "no clear difference", "worse", "mixed"]


@dataclass(frozen=True)
class Contrast:
    """A number in which one recipe may do better than the other."""

    text: str
    #: From the runs of one recipe, the number of each seed and value of the axis.
    numbers: Numbers
    higher_is_better: bool = False
    #: Decimals to print.
    digits: int = 4


@dataclass(frozen=True)
class Difference:
    """A contrast in the runs: one estimate for each value of the axis."""

    contrast: Contrast
    first: list[Estimate]
    second: list[Estimate]
    #: Second recipe minus first, in pairs.
    difference: list[Estimate]

    @property
    def change(self) -> Change:
        """On which side of 0 intervals lie, or single values: "mixed" is some on either side."""
        n_lower = sum(e.high < 0 for e in self.difference)
        n_higher = sum(e.low > 0 for e in self.difference)
        lower: Change = "worse" if self.contrast.higher_is_better else "better"
        higher: Change = "better" if self.contrast.higher_is_better else "worse"
        if n_lower and n_higher:
            return "mixed"
        return lower if n_lower else higher if n_higher else "no clear difference"

    @property
    def n_seeds(self) -> int:
        """Pairs of seeds behind each estimate; the fewest along an axis."""
        return min(e.n for e in self.difference)


def contrast_recipes(
    contrast: Contrast, runs: Sequence[Run], recipes: Sequence[str]
) -> Difference | None:
    """Return the difference between two recipes in the runs of an experiment.

    None if they have no pair of runs.
    """
    first, second = (contrast.numbers(select(runs, recipe=recipe)) for recipe in recipes)
    points: dict[Point | None, list[Key]] = {}
    for key in sorted(first.keys() & second.keys(), key=_along_the_axis):
        points.setdefault(key[1], []).append(key)
    if not points:
        return None
    pairs = list(points.values())
    return Difference(
        contrast,
        [estimate([first[key] for key in keys]) for keys in pairs],
        [estimate([second[key] for key in keys]) for keys in pairs],
        [estimate([second[key] - first[key] for key in keys]) for keys in pairs],
    )


def _along_the_axis(key: Key) -> tuple[float, int]:
    seed, point = key
    return (float(point) if isinstance(point, int | float) else 0.0, seed)


def score(*path: str, minus: str | None = None) -> Callable[[Sequence[Run]], dict[Key, float]]:
    """Return a function that finds the number at a path of the scores, less another score there."""

    def numbers(runs: Sequence[Run]) -> dict[Key, float]:
        found: dict[Key, float] = {}
        for run in runs:
            value = follow(run.scores, path)
            if value is not None:
                beside = follow(run.scores, (*path[:-1], minus)) if minus else 0
                found[run.seed, run.point] = value - beside
        return found

    return numbers
