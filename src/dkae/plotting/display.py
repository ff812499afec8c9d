"""What the displays share: one style for all figures, and Axes to draw on."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Self

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from numpy.typing import NDArray

#: Text, quiet text and rules of a light page. A page that inlines a figure may replace them, so
#: nothing else may be drawn in these colours.
INK, SOFT, LINE = "#1d1d1e", "#66666b", "#d9d9dd"

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


class Display:
    """Base class of the displays.

    Attributes
    ----------
    ax_ : Axes, or array of Axes for a display of several panels
    figure_ : Figure
    """

    #: Width and height in inches of a new figure.
    figure_size: tuple[float, float]
    #: None for a single panel: `ax_` is then an Axes and not an array.
    n_panels: int | None = None

    def plot(self, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw on `ax`, or on a new figure; `kwargs` go to matplotlib's drawing function.

        Several panels take as many Axes, or a single one whose place is divided.
        """
        # Given Axes keep their own style.
        with mpl.rc_context(STYLE) if ax is None else nullcontext():
            panels = open_panels(ax, self.n_panels or 1, self.figure_size)
            self.ax_: Any = panels[0] if self.n_panels is None else panels
            self.figure_: Any = panels[0].figure
            self._draw(kwargs)
        return self

    def _draw(self, kwargs: dict[str, Any]) -> None:
        raise NotImplementedError


def open_panels(ax: Any, n: int, size: tuple[float, float]) -> NDArray[np.object_]:
    """Return n Axes in a row to draw on.

    None opens a figure of `size` inches; the place of a single Axes is divided if there are several
    panels, as scikit-learn's ``PartialDependenceDisplay`` does; n Axes are taken as they are.
    """
    if ax is None:
        import matplotlib.pyplot as plt  # chooses a backend, so only if a figure is opened

        figure: Any = plt.figure(figsize=size, layout="constrained")
        return np.ravel(figure.subplots(1, n))
    given: list[Any] = list(np.asarray(ax, dtype=object).ravel())
    expected = "a matplotlib Axes" + (f", or a sequence of {n}" if n > 1 else "")
    for one in given:
        if not isinstance(one, Axes):
            raise TypeError(f"ax is or contains a {type(one).__name__}: expected {expected}")
    if isinstance(ax, Axes) and n > 1:
        spec = ax.get_subplotspec()
        if spec is None:
            raise ValueError(
                f"ax is not part of a grid, so its place cannot be divided: pass {n} Axes, or "
                "one from figure.subplots()"
            )
        ax.set_axis_off()
        grid = spec.subgridspec(1, n)
        given = [ax.figure.add_subplot(grid[i]) for i in range(n)]
    if len(given) != n:
        raise ValueError(f"ax has {len(given)} Axes for {n} panels: expected {expected}")
    return np.array(given)


def check_named(arrays: Any, name: str) -> None:
    """Raise unless arrays come with their names."""
    if not isinstance(arrays, Mapping):
        raise TypeError(
            f"{name} is a {type(arrays).__name__}: pass a mapping of titles to arrays, such as "
            "{'original': X}"
        )


def check_labels(y: Any, n: int) -> NDArray[Any]:
    """Return the labels of n rows as an array."""
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(
            f"y has shape {labels.shape}, but there are {n} rows: pass one label for each row"
        )
    return labels


def names_of(labels: Iterable[Any]) -> list[str]:
    """Return labels as text, numbers without needless digits."""
    return [f"{v:.4g}" if isinstance(v, (float, np.floating)) else str(v) for v in labels]


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
