"""The ideal kernel: 1 where two rows have the same label, 0 elsewhere."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import naming
from dkae._support.warning import warn_caller
from dkae.grams import Floats, Gram, RowsGram
from dkae.kernels.base import Kernel
from dkae.kernels.rows import RowIndex

#: The label of a row without a label, as in scikit-learn's semi-supervised methods.
UNLABELLED = -1


def ideal_kernel(y: Any, rows: Any = None) -> IdealKernel:
    """Return the ideal kernel K_I of labels, as a (supervised) prior.

    If only some rows have labels (-1 for the others), add another kernel for the rest:
    ``ideal_kernel(y) + PairwiseKernel("rbf")``. The sum is positive semi-definite; a matrix with
    some of its entries replaced need not be.
    """
    return IdealKernel(y, rows)


def ideal_gram(y: Any, rows: Any = None) -> IdealKernel:
    """Return ``ideal_kernel(y, rows)``; this is its deprecated name."""
    warn_caller("ideal_gram returns a kernel and is now called ideal_kernel", FutureWarning)
    return IdealKernel(y, rows)


class IdealKernel(Kernel):
    """K_I(i, j) = 1 if rows i and j have the same label, else 0.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        Numbers or strings. -1, None and NaN mean no label: K_I of such a row is 0 with every row,
        itself included.
    rows : array of shape (n_samples, n_features), optional
        The rows of the labels. With them rows are recognised by their content, as in
        `Precomputed`; without them by their position.
    """

    def __init__(self, labels: Any, rows: Any = None) -> None:
        self.labels = labels
        self.rows = rows

    def __str__(self) -> str:
        return "ideal kernel"

    def fit(self, X: Any, y: object = None) -> Self:
        with naming("labels", self.labels):
            shape = np.shape(self.labels)
        if len(shape) != 1:
            raise ValueError(f"labels has shape {shape}: pass one label for each row of X")
        # Before NumPy turns -1 among strings into a string.
        missing = np.array([_is_missing(label) for label in self.labels])
        if missing.all():
            raise ValueError("labels has no label but -1, None or NaN: pass at least one")
        known = [label for label, none in zip(self.labels, missing, strict=True) if not none]
        self._classes = np.full(len(missing), -1)
        self._classes[~missing] = np.unique(known, return_inverse=True)[1]
        self._index = RowIndex(self.rows, self._classes, f"labels has {len(missing)} entries")
        return self

    def __sklearn_clone__(self) -> IdealKernel:
        return IdealKernel(self.labels, self.rows)

    def evaluate(self, X: Any, Y: Any) -> Any:
        return _same(self._classes_of(X), None if Y is None else self._classes_of(Y))

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        return RowsGram(self._classes_of(X), _same, str(self), self)

    def _classes_of(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self)
        return self._classes[self._index.find(X)]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_classes")


def _is_missing(label: Any) -> bool:
    return bool(label is None or label != label or (label == UNLABELLED and label is not True))


def _same(a: NDArray[Any], b: NDArray[Any] | None) -> Floats:
    b = a if b is None else b
    same: Floats = ((a[:, None] == b) & (a[:, None] >= 0)).astype(np.float32)
    return same
