"""Figures and tables of an experiment, and what they are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dkae_study.results import Run, select
from dkae_study.results.numbers import Cell, format_column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dkae_study.declaration.experiment import Experiment
    from dkae_study.declaration.study import Scale, Study


@dataclass(frozen=True)
class Findings:
    """The runs of one experiment at one scale: what its figures and tables are made from."""

    study: Study
    scale: Scale
    experiment: Experiment
    runs: Sequence[Run]

    @property
    def recipes(self) -> tuple[str, ...]:
        """The recipes of the study, in its order, also those without runs."""
        return self.study.recipe_names

    @property
    def note(self) -> str:
        """What stands below each figure."""
        return f"scale: {self.scale.name}"

    def of(self, recipe: str) -> list[Run]:
        """Return the runs of a recipe."""
        return select(self.runs, recipe=recipe)

    def first_runs(self, point: str | None = None) -> dict[str, Run]:
        """Return the run with the lowest seed of each recipe, for figures that show one."""
        by_seed = sorted((run for run in self.runs if run.point == point), key=lambda run: run.seed)
        found = {recipe: select(by_seed, recipe=recipe) for recipe in self.recipes}
        return {recipe: runs[0] for recipe, runs in found.items() if runs}


@dataclass(frozen=True)
class Drawing:
    """A figure with its texts."""

    #: Names its file, and its parts inside a page.
    name: str
    figure: Figure
    caption: str
    #: What it shows, for readers who do not see it.
    alt: str
    #: Made of pixels: a PNG as a file of its own, where a plot is an SVG.
    is_image: bool = False


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
