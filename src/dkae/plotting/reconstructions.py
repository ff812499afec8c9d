"""Rows and their reconstructions."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from dkae._support.checks import check_integer
from dkae.plotting.display import CLASS_COLORS, LINE, Display, check_labels, check_named, names_of

#: A square number of features, at least this many (8 × 8 pixels), is taken for an image.
MIN_PIXELS = 64
#: Least pixels on the longer side of an image, and the height and width of its blank frame.
MIN_SIDE, _FRAME = 24, (2, 1)
#: Largest part of its lane that a line takes.
_LANE = 0.85


class ReconstructionDisplay(Display):
    """Rows above their reconstructions as images, or as pairs of lines over the features.

    Parameters
    ----------
    rows : mapping of str to array of shape (n, ...)
        The same n rows in each version, such as "original" and "decoded".
    image_shape : tuple of int, optional
        (height, width), (1, height, width) or (3, height, width) for images, (n_features,) for
        lines. By default rows keep their shape, but vectors of a square number of features, at
        least 64, are taken for square images.
    labels : sequence, optional
        Names of the rows, such as their classes.
    """

    def __init__(
        self,
        rows: Mapping[str, NDArray[Any]],
        image_shape: Sequence[int] | None = None,
        *,
        labels: Any = None,
    ) -> None:
        check_named(rows, "rows")
        first = next(iter(rows.values()), np.empty(0))
        n = len(first)
        if n == 0 or any((len(v), np.size(v)) != (n, np.size(first)) for v in rows.values()):
            shapes = {name: np.shape(version) for name, version in rows.items()}
            raise ValueError(f"rows has shapes {shapes}: pass versions of the same rows")
        self.image_shape = _choose_shape(np.shape(first)[1:], image_shape)
        self.rows = {
            name: np.asarray(version, dtype=float).reshape(n, *self.image_shape)
            for name, version in rows.items()
        }
        self.labels = None if labels is None else check_labels(labels, n)
        self._n = n

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any = None,
        *,
        ax: Any = None,
        image_shape: Sequence[int] | None = None,
        n_rows: int = 10,
        **kwargs: Any,
    ) -> Self:
        """Draw `n_rows` rows of X and ``model.inverse_transform(model.transform(X))``.

        With the labels `y` one row of each class comes first.
        """
        n_rows = min(check_integer("n_rows", n_rows, at_least=1), len(X))
        chosen, labels = np.arange(n_rows), None
        if y is not None:
            classes = check_labels(y, len(X))
            chosen = _one_of_each_class(classes, n_rows)
            labels = classes[chosen]
        rows = _safe_indexing(X, chosen)
        decoded = model.inverse_transform(model.transform(rows))
        versions = {"original": np.asarray(rows), "decoded": np.asarray(decoded)}
        return cls(versions, image_shape, labels=labels).plot(ax=ax, **kwargs)

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height in inches of the figure that `plot` opens."""
        if len(self.image_shape) == 1:
            return 7.6, 0.5 * self._n + 0.8
        height, width = _tile(self.image_shape)
        # As wide as the page, whatever the number of images and the length of the names.
        side = min(0.8, (7.5 - 0.073 * max(map(len, self.rows))) / self._n)
        lines = 0.1 if self.labels is None else 0.25
        return 7.6, side * height / width * len(self.rows) + lines

    def _draw(self, kwargs: dict[str, Any]) -> None:
        (self._draw_lines if len(self.image_shape) == 1 else self._draw_images)(kwargs)
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)

    def _draw_images(self, kwargs: dict[str, Any]) -> None:
        """Draw images; greys span the first version unless `vmin` and `vmax` are given."""
        images = np.stack(list(self.rows.values()))
        look = {"cmap": "gray", "vmin": np.nanmin(images[0]), "vmax": np.nanmax(images[0])} | kwargs
        # One picture of all: no uneven gaps from rounding, and a single Axes.
        mosaic = _mosaic(images.reshape(*images.shape[:2], -1, *self.image_shape[-2:]))
        if mosaic.shape[2] == 3:  # imshow ignores vmin and vmax for colours
            span = look["vmax"] - look["vmin"] or 1.0
            mosaic = np.nan_to_num(((mosaic - look["vmin"]) / span).clip(0, 1), nan=1.0)
        # Without interpolation the pixels of an SVG stay crisp: the viewer enlarges them.
        self.ax_.imshow(mosaic, **({"interpolation": "none"} | look))
        names = [] if self.labels is None else names_of(self.labels)
        height, width = _tile(self.image_shape)
        self.ax_.set_xticks((np.arange(len(names)) + 0.5) * width - 0.5, names)
        self.ax_.set_yticks((np.arange(len(self.rows)) + 0.5) * height - 0.5, list(self.rows))
        self.ax_.tick_params(labeltop=True, labelbottom=False, pad=2)
        self.ax_.grid(visible=False)
        self.ax_.set_anchor("W")

    def _draw_lines(self, kwargs: dict[str, Any]) -> None:
        """Draw each row in a lane of its own, all lanes on one scale."""
        low = min(np.nanmin(version) for version in self.rows.values())
        high = max(np.nanmax(version) for version in self.rows.values())
        lanes = np.arange(self._n)[::-1]
        for k, (name, version) in enumerate(self.rows.items()):
            lines = lanes[:, None] + _LANE * (version - low) / (high - low or 1.0)
            look = {"color": CLASS_COLORS[k % 10], "ls": ("-", "--", ":", "-.")[k % 4], "lw": 1.2}
            first, *_ = self.ax_.plot(lines.T, **(look | kwargs))
            first.set_label(name)
        names = map(str, range(self._n)) if self.labels is None else names_of(self.labels)
        self.ax_.set_yticks(lanes + _LANE / 2, list(names))
        self.ax_.grid(visible=False, axis="y")
        for lane in lanes:
            self.ax_.axhline(lane, color=LINE, lw=0.6, zorder=0)
        self.ax_.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10], integer=True))
        self.ax_.set_xlabel(f"feature (a lane spans {low:.3g} to {high:.3g})".replace("-", "−"))
        self.ax_.margins(x=0.01)
        self.ax_.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(self.rows))


def _choose_shape(row: tuple[int, ...], given: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape to draw a row in: (n_features,) for a line, any other for an image."""
    n_features = math.prod(row)
    side = math.isqrt(n_features)
    shape = row if given is None else tuple(given)
    if given is None and len(row) == 1 and side * side == n_features >= MIN_PIXELS:
        shape = (side, side)
    fits = len(shape) in (1, 2) or (len(shape) == 3 and shape[0] in (1, 3))
    if not fits or math.prod(shape) != n_features:
        raise ValueError(
            f"image_shape={shape} does not fit rows of shape {row}: pass (height, width) or "
            f"(channels, height, width) with 1 or 3 channels and {n_features} values in all, or "
            f"({n_features},) for lines"
        )
    return shape


def _zoom(shape: tuple[int, ...]) -> int:
    """Return how often to repeat a pixel, so that the frame of a small image is thin."""
    return -(-MIN_SIDE // max(shape[-2:]))


def _tile(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the height and width of an image in its frame."""
    height, width = (n * _zoom(shape) for n in shape[-2:])
    return height + 2 * _FRAME[0], width + 2 * _FRAME[1]


def _mosaic(images: NDArray[Any]) -> NDArray[Any]:
    """Return images of shape (versions, n, channels, height, width) as one, channels last."""
    zoom = _zoom(images.shape)
    frame = [(0, 0)] * 3 + [(pad, pad) for pad in _FRAME]
    tiles = np.pad(images.repeat(zoom, 3).repeat(zoom, 4), frame, constant_values=np.nan)
    v, n, channels, height, width = tiles.shape
    return tiles.transpose(0, 3, 1, 4, 2).reshape(v * height, n * width, channels)


def _one_of_each_class(labels: NDArray[Any], n: int) -> NDArray[np.intp]:
    """Return n row numbers: the first row of each class, sorted by class, then the first others."""
    firsts = np.sort(np.unique(labels, return_index=True)[1])[:n]
    others = np.setdiff1d(np.arange(len(labels)), firsts)[: n - len(firsts)]
    return np.concatenate([firsts[np.argsort(labels[firsts])], others])
