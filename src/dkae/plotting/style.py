"""One style for all figures: palette, markers, fonts and numbers."""

from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

#: Text, quiet text, rules and background of a light page. A page that inlines a figure may replace
#: them, so nothing else may be drawn in these colours.
INK, SOFT, LINE, PAPER = "#1d1d1e", "#66666b", "#d9d9dd", "#fefefd"

#: Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"

#: Ten classes: two more of Okabe and Ito's colours, and four that stay apart from these and from
#: each other in the three kinds of colour blindness. Markers differ too.
CLASS_COLORS = (
    *(BLUE, VERMILLION, GREEN, PURPLE, "#e69f00", "#56b4e9"),
    *("#303033", "#6a3dd8", "#7a2000", "#bfa85a"),
)
CLASS_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")

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
    # Dark ink needs a light background, whatever style the user has set.
    "axes.facecolor": "white",
    "figure.facecolor": "white",
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
    # Room between panels, so that tick labels of neighbours do not touch.
    "figure.constrained_layout.wspace": 0.04,
    # Text stays text: searchable, and in the font of the page.
    "svg.fonttype": "none",
}


@mpl.rc_context(STYLE)
def new_figure(width: float, height: float, note: str = "") -> Figure:
    """Return an empty figure, unknown to pyplot, of a size in inches, with a note below."""
    figure = Figure(figsize=(width, height), layout="constrained")
    if note:
        # A label of the figure, for which the layout makes room; plain text would be covered.
        figure.supxlabel(note, x=0.995, ha="right", size=7.5, color=SOFT)
    return figure


def plain_log_ticks(ax: Axes, which: str = "y") -> None:
    """Make an axis logarithmic with its numbers in full: 2 × 10⁻² is harder to read than 0.02."""
    axis: Axis = ax.yaxis if which == "y" else ax.xaxis
    (ax.set_yscale if which == "y" else ax.set_xscale)("log")
    low, high = sorted(axis.get_view_interval())
    # So short a logarithmic axis is nearly linear.
    is_short, subs = high < 6 * low, (1, 2, 5) if high < 300 * low else (1,)
    axis.set_major_locator(MaxNLocator(5) if is_short else LogLocator(subs=subs))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_locator(NullLocator())
