"""The table of what the other recipes of a study change against its first, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dkae_study.declaration import Study
from dkae_study.declaration.contrasts import Difference, contrast_recipes
from dkae_study.results import Estimate, Run, select


@dataclass(frozen=True)
class ContrastRow:
    """A number with the first recipe and another, their difference, and what that means."""

    experiment: str
    #: The other recipe.
    recipe: str
    text: str
    first: str
    second: str
    difference: str
    change: str
    n_seeds: int


def contrast_rows(study: Study, runs: Sequence[Run]) -> list[ContrastRow]:
    """Return a row for each contrast and each recipe that has runs of it, as the first has."""
    (first, *others), rows = study.recipe_names, []
    for experiment in study.experiments:
        chosen = select(runs, experiment.name)
        for contrast in experiment.contrasts:
            for other in others:
                found = contrast_recipes(contrast, chosen, (first, other))
                if found is not None:
                    rows.append(_format(experiment.name, other, found))
    return rows


def _format(experiment: str, recipe: str, found: Difference) -> ContrastRow:
    first, second = (_from_to(ends, found.contrast.digits) for ends in (found.first, found.second))
    return ContrastRow(
        experiment,
        recipe,
        found.contrast.text,
        first,
        second,
        _sides(found),
        found.change,
        found.n_seeds,
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
