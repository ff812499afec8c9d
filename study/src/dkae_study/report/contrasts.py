"""The table of what the second recipe of a study changes, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dkae_study.declaration import Study
from dkae_study.declaration.contrasts import Difference, contrast_recipes
from dkae_study.results import Estimate, Run, select


@dataclass(frozen=True)
class ContrastRow:
    """A number with both recipes, their difference, and what that means."""

    experiment: str
    text: str
    first: str
    second: str
    difference: str
    change: str
    n_seeds: int


def contrast_rows(study: Study, runs: Sequence[Run]) -> list[ContrastRow]:
    """Return a row for each contrast of which the first two recipes both have runs."""
    recipes, rows = study.recipe_names[:2], []
    for experiment in study.experiments if len(recipes) == 2 else ():
        chosen = select(runs, experiment.name)
        for contrast in experiment.contrasts:
            found = contrast_recipes(contrast, chosen, recipes)
            if found is not None:
                rows.append(_format(experiment.name, found))
    return rows


def _format(experiment: str, found: Difference) -> ContrastRow:
    first, second = (_from_to(ends, found.contrast.digits) for ends in (found.first, found.second))
    text, difference = found.contrast.text, _sides(found)
    return ContrastRow(experiment, text, first, second, difference, found.change, found.n_seeds)


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
