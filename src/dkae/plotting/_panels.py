"""What the displays share: Axes to draw on, their style, and names of rows."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any, Self

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from dkae.plotting.style import STYLE


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
