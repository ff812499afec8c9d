"""Gram matrices side by side."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from dkae.grams import sample_ids
from dkae.kernels import gram_of
from dkae.plotting.display import Display, check_labels, check_named, names_of

#: Rows of a matrix to draw; more would be finer than the pixels of a screen.
N_ROWS = 300
#: Names of classes that fit along an axis.
N_NAMES = 20


class GramDisplay(Display):
    """Gram matrices of the same rows side by side, on one colour scale.

    Parameters
    ----------
    grams : mapping of str to array of shape (n, n)
        The matrices, each with the title of its panel.
    classes : array of shape (n,), optional
        Labels of the rows, which are sorted by them.
    label, class_name : str
        Labels of the colour bar and of the axes.
    """

    def __init__(
        self,
        grams: Mapping[str, NDArray[Any]],
        classes: Any = None,
        *,
        label: str = "kernel value",
        class_name: str = "class",
    ) -> None:
        check_named(grams, "grams")
        shapes = [np.shape(gram) for gram in grams.values()]
        n = shapes[0][0] if shapes and shapes[0] else 0
        if n == 0 or shapes != [(n, n)] * len(shapes):
            raise ValueError(f"grams has shapes {shapes}: pass square matrices of the same rows")
        self.grams = grams
        self.n_panels = len(grams)
        self.classes = None if classes is None else check_labels(classes, n)
        self.label = label
        self.class_name = class_name

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, *, gram: Any = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the prior and the kernel that the codes represent, ``model.gram(X)``.

        Of more than 300 rows a sample is drawn, sorted by the labels `y`. `gram` is the prior of
        the rows of X, an array or a Gram; needed if the model was fitted with a matrix.
        """
        check_is_fitted(model)
        rows, classes = sample_ids(len(X), N_ROWS), None
        if y is not None:
            labels = check_labels(y, len(X))
            rows = rows[np.argsort(labels[rows], kind="stable")]
            classes = labels[rows]
        by_name = gram is None and isinstance(model.kernel, str)
        prior = model.prior_gram(X) if gram is None else gram_of(gram, X)
        grams = {
            f"prior: {model.kernel} kernel" if by_name else "prior": prior.block(rows),
            "codes: learned kernel": model.gram(_safe_indexing(X, rows)),
        }
        is_class = classes is None or classes.dtype.kind != "f"
        class_name = str(getattr(y, "name", None) or ("class" if is_class else "y"))
        return cls(grams, classes, class_name=class_name).plot(ax=ax, **kwargs)

    @property
    def figure_size(self) -> tuple[float, float]:  # type: ignore[override]
        """Width and height in inches of the figure that `plot` opens."""
        n, n_lines = len(self.grams), 1 + max(name.count("\n") for name in self.grams)
        return (7.6 if n > 1 else 4.8), 6.4 / max(n, 2) + 0.5 + 0.22 * n_lines

    def _draw(self, kwargs: dict[str, Any]) -> None:
        low = min(np.min(gram) for gram in self.grams.values())
        high = max(np.max(gram) for gram in self.grams.values())
        # Without interpolation the pixels of an SVG stay crisp: the viewer enlarges them.
        look = {"vmin": low, "vmax": high, "interpolation": "none"} | kwargs
        for panel, (name, gram) in zip(self.ax_, self.grams.items(), strict=True):
            image = panel.imshow(gram, **look)
            panel.set_title(name)
            self._set_ticks(panel)
            panel.tick_params(length=0, labelleft=panel is self.ax_[0])
        self.ax_[0].set_ylabel(self.ax_[0].get_xlabel())
        # In the coordinates of a panel, and so as high as the matrix in any layout.
        bar = self.ax_[-1].inset_axes((1.05, 0, 0.05, 1))
        self.figure_.colorbar(image, cax=bar, label=self.label)

    def _set_ticks(self, ax: Axes) -> None:
        ax.grid(visible=False)
        ax.spines[:].set_visible(False)
        if self.classes is None:
            ax.set(xticks=[], yticks=[], xlabel="rows")
            return
        starts = np.flatnonzero(np.append(True, self.classes[1:] != self.classes[:-1]))
        centres = (starts + np.append(starts[1:], len(self.classes))) / 2 - 0.5
        named = [0]
        for k, centre in enumerate(centres):
            if centre - centres[named[-1]] >= len(self.classes) / N_NAMES:
                named.append(k)
        names = names_of(self.classes[starts[named]])
        upright = sum(map(len, names)) > 25
        ax.set_xticks(centres[named], names, rotation=90 if upright else 0)
        ax.set_yticks(centres[named], names)
        ax.set_xlabel(self.class_name)
