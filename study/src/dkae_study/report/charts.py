"""What the figures of several experiments share: looks of the recipes, legends, rows of dots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dkae.plotting import BLUE, GREEN, PURPLE, SOFT, STYLE, VERMILLION
from dkae_study.results import Estimate

#: The background of a light page, which a page that inlines a figure replaces.
BACKGROUND = "#fefefd"
#: The words of captions on intervals.
BARS = "Bars: 95 % interval over the seeds, where there are several."


@dataclass(frozen=True)
class Look:
    """How a series is drawn: colour, marker and dash, so that no one of them is needed alone."""

    color: str
    marker: str
    dash: str


#: The looks of a study's recipes, in their order.
LOOKS = (
    Look(VERMILLION, "s", "--"),
    Look(BLUE, "o", "-"),
    Look(GREEN, "D", "-."),
    Look(PURPLE, "^", ":"),
)


def looks_of(recipes: Sequence[str]) -> dict[str, Look]:
    """Return how each recipe of a study is drawn, the same in every figure."""
    return dict(zip(recipes, cycle(LOOKS), strict=False))


@mpl.rc_context(STYLE)
def new_figure(width: float, height: float, note: str = "") -> Figure:
    """Return an empty figure, unknown to pyplot, of a size in inches, with a note below."""
    figure = Figure(figsize=(width, height), layout="constrained")
    if note:
        # A label of the figure, for which the layout makes room; plain text would be covered.
        figure.supxlabel(note, x=0.995, ha="right", size=7.5, color=SOFT)
    return figure


def legend_above(figure: Figure, n_columns: int = 4) -> None:
    """Put one legend over all panels, where it covers nothing."""
    found: dict[str, Any] = {}
    for ax in figure.axes:
        handles, labels = ax.get_legend_handles_labels()
        found |= dict(zip(labels, handles, strict=True))
    # Recipes first: they are what a reader looks for.
    names = sorted(found, key=lambda name: not name.endswith("recipe"))
    handles = [found[name] for name in names]
    figure.legend(handles, names, loc="outside upper left", ncols=min(n_columns, len(names)))


def draw_row_dots(ax: Axes, found: Mapping[str, Sequence[Estimate | None]]) -> None:
    """Draw a dot for each recipe in each row, with its interval."""
    for k, (recipe, look) in enumerate(looks_of(list(found)).items()):
        # Apart, because dots of recipes may else be one.
        shift = 0.28 * (k - (len(found) - 1) / 2)
        rows = {i + shift: value for i, value in enumerate(found[recipe]) if value is not None}
        if rows:
            ax.errorbar(
                [value.mean for value in rows.values()],
                list(rows),
                xerr=[value.half_width or 0.0 for value in rows.values()],
                fmt=look.marker,
                color=look.color,
                capsize=2,
                label=f"{recipe} recipe",
            )


def name_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows of all panels from the top, with half a row free above and below."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
