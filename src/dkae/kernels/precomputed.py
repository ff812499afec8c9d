"""A Gram matrix from anywhere, in memory or on disk, as a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import REAL_KINDS, as_array
from dkae.grams import Floats, Gram, MatrixGram, asymmetry_of, check_symmetry, finite_float32
from dkae.kernels.base import Kernel
from dkae.kernels.rows import RowIndex

#: Rows that are checked together.
N_CHUNK_ROWS = 256


class Precomputed(Kernel):
    """The kernel whose Gram matrix on known rows is `gram_matrix`.

    Parameters
    ----------
    gram_matrix : array of shape (n_samples, n_samples)
        A square, symmetric Gram matrix. It is never copied, not even by ``sklearn.base.clone``; of
        a NumPy memmap only the blocks that are needed are read.
    rows : array of shape (n_samples, n_features), optional
        The vectors that the matrix was computed for. With them rows are recognised by their
        content: any part of the data, in any order, finds its block, as cross-validation needs.
        Without them X must have the rows of the matrix, in the same order.
    """

    def __init__(self, gram_matrix: Any, rows: Any = None) -> None:
        self.gram_matrix = gram_matrix
        self.rows = rows

    def __str__(self) -> str:
        return "gram"

    def __repr__(self) -> str:
        # The default repr of an estimator would read a gram from disk to print its corners.
        rows = "" if self.rows is None else ", rows=..."
        return f"Precomputed(<{' x '.join(map(str, np.shape(self.gram_matrix)))}>{rows})"

    def __sklearn_clone__(self) -> Precomputed:
        # Else a grid search would copy the n × n numbers for each candidate.
        return Precomputed(self.gram_matrix, self.rows)

    def fit(self, X: Floats, y: object = None) -> Precomputed:
        # asarray would turn a memmap into a plain array, and `check_gram` would read it whole.
        matrix = self.gram_matrix
        matrix = matrix if isinstance(matrix, np.memmap) else as_array(matrix, "gram")
        check_gram(matrix)
        self._index = RowIndex(self.rows, matrix, f"gram has shape {matrix.shape}")
        self._matrix = matrix
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_matrix")

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        check_is_fitted(self)
        return MatrixGram(self._matrix, self._index.find(X), self)

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        check_is_fitted(self)
        rows = self._index.find(X)
        columns = rows if Y is None else self._index.find(Y)
        return self._matrix[np.ix_(rows, columns)]


def check_gram(gram: NDArray[Any]) -> None:
    """Reject what is not a Gram matrix; of a memmap only type and shape are checked."""
    if gram.dtype.kind not in REAL_KINDS:
        raise ValueError(
            f"gram has entries of type {gram.dtype}: pass a NumPy array of real numbers (of a "
            "sparse matrix, its toarray())"
        )
    if len(gram.shape) != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"gram has shape {gram.shape}: pass the square Gram matrix of the same rows as X. "
            "Cross-validation slices a gram argument by rows only; there, use "
            "kernel=Precomputed(gram, rows=X)"
        )
    if not isinstance(gram, np.memmap):
        _check_all_entries(gram)


def _check_all_entries(gram: NDArray[Any]) -> None:
    for start in range(0, len(gram), N_CHUNK_ROWS):
        finite_float32(gram[start : start + N_CHUNK_ROWS], "gram")
    asymmetry, largest = asymmetry_of(gram)
    if largest == 0:
        raise ValueError("gram is zero everywhere: there is nothing to align with")
    check_symmetry(asymmetry, largest, "gram")
