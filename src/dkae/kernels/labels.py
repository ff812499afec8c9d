"""The ideal kernel: 1 where two rows have the same label, 0 elsewhere."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dkae.kernels.base import Floats, Kernel, Prior, Rows
from dkae.kernels.precomputed import RowIndex

__all__ = ["IdealKernel", "ideal_gram"]

#: The label of a row without a label, as in scikit-learn's semi-supervised methods.
UNLABELLED = -1


def ideal_gram(y: Any, rows: Any = None) -> IdealKernel:
    """Return the ideal kernel K_I of labels, as a (supervised) prior.

    With labels for a part of the rows only (-1 for the others), add another kernel for the rest:
    ``ideal_gram(y) + PairwiseKernel("rbf")``. The sum is positive semi-definite, which replacing
    entries of one matrix by those of another would not be.
    """
    return IdealKernel(y, rows)


class IdealKernel(Kernel):
    """K_I(i, j) = 1 if rows i and j have the same label, else 0.

    Parameters
    ----------
    labels : array of shape (n_samples,)
        Integer labels or strings. -1 stands for no label: such a row is like no other, nor itself.
    rows : array of shape (n_samples, n_features), optional
        The rows that the labels belong to, as in `Precomputed`: with them any part of the data
        finds its labels, without them the order counts.
    """

    def __init__(self, labels: Any, rows: Any = None) -> None:
        self.labels = labels
        self.rows = rows

    def __str__(self) -> str:
        return "ideal kernel"

    def fit(self, X: Any, y: object = None) -> Self:
        labels = np.asarray(self.labels)
        if labels.ndim != 1:
            raise ValueError(f"labels has shape {labels.shape}: pass one label for each row of X")
        values, self._classes = np.unique(labels, return_inverse=True)
        if values.dtype.kind in "iuf":
            self._classes = np.where(labels == UNLABELLED, -1, self._classes)
        if (self._classes < 0).all():
            raise ValueError("labels has no label but -1, which stands for none")
        self._index = RowIndex(self.rows, len(labels), f"labels has {len(labels)} entries")
        return self

    def evaluate(self, X: Any, Y: Any) -> Any:
        a = self._classes[self._index.find(X)]
        return _same(a, a if Y is None else self._classes[self._index.find(Y)])

    def on(self, X: Any) -> Prior:
        return _LabelPrior(self._classes[self._index.find(X)])


class _LabelPrior:
    def __init__(self, classes: NDArray[Any]) -> None:
        self.classes = classes

    def __len__(self) -> int:
        return len(self.classes)

    def block(self, rows: Rows, columns: Rows | None = None) -> Floats:
        return _same(self.classes[rows], self.classes[rows if columns is None else columns])


def _same(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    same: Floats = ((a[:, None] == b) & (a[:, None] >= 0)).astype(np.float32)
    return same
