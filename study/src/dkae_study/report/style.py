"""One style for all figures: palette, markers, fonts, and where the scale stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

__all__ = [
    "BLUE",
    "GREEN",
    "INK",
    "LINE",
    "LOOKS",
    "PAPER",
    "PURPLE",
    "SOFT",
    "STYLE",
    "VERMILLION",
    "Look",
    "looks_of",
    "new_figure",
    "plain_log_ticks",
]

#: Ink, quiet text, rules and ground of the light page. An inlined figure takes the page's own
#: instead, so each must be a colour that nothing else is drawn in.
INK, SOFT, LINE, PAPER = "#1d1d1e", "#66666b", "#d9d9dd", "#fefefd"

#: Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"

STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titlepad": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
    "legend.frameon": False,
    "legend.handlelength": 2.6,
    # Room between panels, so that the first and the last number of neighbours stay apart.
    "figure.constrained_layout.wspace": 0.04,
    # Words stay words: searchable, and in the font of the page.
    "svg.fonttype": "none",
}


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
def new_figure(width: float, height: float, scale: str = "") -> Figure:
    """Return an empty figure of a size in inches that says at which scale its runs were made."""
    figure = Figure(figsize=(width, height), layout="constrained")
    if scale:
        # As a label of the figure, for which the layout makes room; plain text it would cover.
        figure.supxlabel(f"scale: {scale}", x=0.995, ha="right", size=7.5, color=SOFT)
    return figure


def plain_log_ticks(ax: Axes, which: str = "y") -> None:
    """Make an axis logarithmic with its numbers in full: 2 × 10⁻² is harder to read than 0.02."""
    axis: Axis = ax.yaxis if which == "y" else ax.xaxis
    (ax.set_yscale if which == "y" else ax.set_xscale)("log")
    low, high = sorted(axis.get_view_interval())
    # The shorter the axis the more of a decade, else there would hardly be a number on it.
    finer = {
        3: (1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4, 5, 6, 7, 8),
        6: (1, 1.5, 2, 3, 4, 5, 7),
        300: (1, 2, 5),
    }
    subs = next((subs for factor, subs in finer.items() if high < factor * low), (1,))
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
