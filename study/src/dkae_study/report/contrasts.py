"""The table of what the default recipe changes, as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dkae_study.contrasts import CONTRASTS, Difference, contrast_recipes
from dkae_study.intervals import Estimate
from dkae_study.results import Run

__all__ = ["ContrastRow", "contrast_rows"]


@dataclass(frozen=True)
class ContrastRow:
    """A number with both recipes, their difference, and what that means."""

    experiment: str
    text: str
    paper: str
    default: str
    difference: str
    change: str
    n_seeds: int


def contrast_rows(runs: Iterable[Run]) -> list[ContrastRow]:
    """Return a row for each contrast that both recipes have runs of."""
    runs = list(runs)
    found = (contrast_recipes(contrast, runs) for contrast in CONTRASTS)
    return [_format(difference) for difference in found if difference is not None]


def _format(difference: Difference) -> ContrastRow:
    contrast = difference.contrast
    return ContrastRow(
        contrast.experiment,
        contrast.text,
        _from_to(difference.paper, contrast.digits),
        _from_to(difference.default, contrast.digits),
        _sides(difference),
        difference.change,
        difference.n_seeds,
    )


def _from_to(values: Sequence[Estimate], digits: int) -> str:
    """Return the value, or the first and the last of those along an axis."""
    ends = [values[0], values[-1]] if len(values) > 1 else values
    return " … ".join(value.format(digits) for value in ends)


def _sides(difference: Difference) -> str:
    """Return the difference, or at how many values of the axis it is below 0."""
    differences = difference.difference
    if len(differences) == 1:
        sign = "+" if differences[0].mean > 0 else ""
        return sign + differences[0].format(difference.contrast.digits)
    return f"lower at {sum(e.mean < 0 for e in differences)} of {len(differences)}"
