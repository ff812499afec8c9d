"""A scatter plot of code space."""

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from dkae._support.checks import check_choice, check_integer
from dkae.plotting.display import BLUE, CLASS_COLORS, CLASS_MARKERS, Display, check_labels, names_of

#: Classes that have a colour, a marker and an entry in the legend.
MAX_CLASSES = len(CLASS_COLORS)
#: Above this many points, vector files hold a bitmap of them.
_MAX_VECTORS = 5000


class CodeSpaceDisplay(Display):
    """Two coordinates of codes as a scatter plot, coloured by class or by a number.

    Parameters
    ----------
    points : array of shape (n, 2)
        The coordinates.
    y : array-like of shape (n,), optional
        Labels or numbers. Up to ten different ones have a colour, a marker and an entry in the
        legend each; more are shown on a colour bar.
    names : pair of str
        Labels of the axes.
    y_name : str, optional
        Title of the legend, or label of the colour bar.
    """

    figure_size = (5.6, 4.2)

    def __init__(
        self,
        points: NDArray[Any],
        y: Any = None,
        *,
        names: tuple[str, str] = ("component 0", "component 1"),
        y_name: str | None = None,
    ) -> None:
        self.points = np.asarray(points)
        if self.points.ndim != 2 or self.points.shape[1] != 2:
            raise ValueError(f"points has shape {self.points.shape}: pass two columns")
        self.y = None if y is None else check_labels(y, len(self.points))
        self.names = names
        self.y_name = y_name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        ax: Any = None,
        components: tuple[int, int] = (0, 1),
        axes: str = "kernel_pca",
        **kwargs: Any,
    ) -> Self:
        """Draw two coordinates of the codes of X, `components`, coloured by `y`.

        With ``axes="kernel_pca"`` they are scores of kernel PCA with the learned kernel
        ``model.gram``, along the principal axes of the codes; with ``axes="codes"``, components of
        the codes themselves.
        """
        check_choice("axes", axes, ("kernel_pca", "codes"))
        codes = np.asarray(model.transform(X))
        labels = None if y is None else check_labels(y, len(codes))
        n_axes = min(codes.shape) if axes == "kernel_pca" else codes.shape[1]
        i, j = _check_components(components, n_axes)
        if axes == "codes":
            points, names = codes[:, [i, j]], (f"code component {i}", f"code component {j}")
        else:
            pca = PCA(max(i, j) + 1, random_state=0)
            # The learned kernel is s cᵀc: its feature map is √s c.
            scale = max(float(getattr(model, "kernel_scale_", 1.0)), 0.0) or 1.0
            points = math.sqrt(scale) * pca.fit_transform(codes)[:, [i, j]]
            shares = pca.explained_variance_ratio_
            first, second = (f"kernel PCA axis {k} ({shares[k]:.0%} of variance)" for k in (i, j))
            names = (first, second)
        y_name = getattr(y, "name", None)
        return cls(points, labels, names=names, y_name=y_name).plot(ax=ax, **kwargs)

    def _draw(self, kwargs: dict[str, Any]) -> None:
        n = len(self.points)
        look: dict[str, Any] = {
            "s": float(np.clip(600 / math.sqrt(max(n, 1)), 5, 30)),
            "alpha": 0.8,
            "linewidths": 0,
            "rasterized": n > _MAX_VECTORS,
        }
        self.ax_.set(xlabel=self.names[0], ylabel=self.names[1])
        if self.y is None:
            self.ax_.scatter(*self.points.T, **({"color": BLUE} | look | kwargs))
        elif len(np.unique(self.y)) <= MAX_CLASSES:
            self._draw_classes(self.y, look | kwargs)
        else:
            self._draw_on_a_scale(self.y, look | kwargs)

    def _draw_classes(self, y: NDArray[Any], look: dict[str, Any]) -> None:
        classes, members = np.unique(y, return_inverse=True)
        for k, name in enumerate(names_of(classes)):
            own = {"color": CLASS_COLORS[k], "marker": CLASS_MARKERS[k], "label": name}
            self.ax_.scatter(*self.points[members == k].T, **(own | look))
        # Outside the panel, if the layout makes room there.
        beside = self.figure_.get_layout_engine() is not None
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1)} if beside else {}
        self.ax_.legend(title=self.y_name, markerscale=math.sqrt(30 / np.mean(look["s"])), **place)

    def _draw_on_a_scale(self, y: NDArray[Any], look: dict[str, Any]) -> None:
        classes, members = np.unique(y, return_inverse=True)
        is_number = y.dtype.kind in "iuf"
        points = self.ax_.scatter(*self.points.T, **({"c": y if is_number else members} | look))
        bar = self.figure_.colorbar(points, ax=self.ax_, label=self.y_name or "y")
        bar.solids.set_alpha(1)
        if not is_number:
            step = -(-len(classes) // 20)
            bar.set_ticks(range(0, len(classes), step), labels=names_of(classes[::step]))


def _check_components(components: Any, n: int) -> tuple[int, int]:
    try:
        i, j = (check_integer("component", number, at_least=0) for number in components)
    except (TypeError, ValueError):
        i = j = n
    if max(i, j) >= n:
        raise ValueError(
            f"components={components!r} must be two whole numbers from 0 to {n - 1}: there are "
            f"only {n} to choose from"
        )
    return i, j
