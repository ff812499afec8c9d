"""Kernels of known rows: a Gram matrix from anywhere, or the labels of rows, as a kernel.

Both have values for the rows that they were made with, and for no others.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import naming, real_numbers
from dkae.grams import (
    N_CHUNK_ROWS,
    Floats,
    Gram,
    Ids,
    MatrixGram,
    RowsGram,
    asymmetry_of,
    check_symmetry,
    finite_float32,
)
from dkae.kernels.base import Kernel
from dkae.kernels.features import N_CHUNK_NUMBERS
from dkae.rows import as_rows, chunks_of

#: The label of a row without a label, as in scikit-learn's semi-supervised methods.
UNLABELLED = -1


class KnownRowsKernel(Kernel):
    """A kernel with values for known rows only, found by their content, or else by position."""

    knows_new_rows: ClassVar[bool] = False
    rows: Any
    #: The known rows' values, labels or rows of a matrix, and what these are in error messages.
    _values: NDArray[Any]
    _what: str
    #: The id of each known row by its digest; None without `rows`.
    _ids: dict[bytes, int] | None

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_values")

    def __sklearn_clone__(self) -> Self:
        # Otherwise a grid search would copy an n × n matrix for each candidate.
        return type(self)(**self.get_params(deep=False))

    def _learn(self, values: NDArray[Any], what: str) -> Self:
        """Keep a value, or a row of values, for each known row.

        Equal rows must have equal values, because their content does not tell them apart.
        """
        ids = None if self.rows is None else _ids_of(self.rows, values, what)
        self._values, self._what, self._ids = values, what, ids
        return self

    def _find(self, X: Any) -> Ids:
        """Return the id of each row of X."""
        check_is_fitted(self)
        X, n_known = as_rows(X), len(self._values)
        if self._ids is None:
            if len(X) != n_known:
                raise ValueError(
                    f"{self._what}, but X has {len(X)} rows: pass that of the rows of X. In "
                    "cross-validation, use kernel=Precomputed(gram, rows=X), which finds rows by "
                    "their content"
                )
            return np.arange(n_known)
        found = np.fromiter((self._ids.get(row, -1) for row in _digests(X, "X")), np.intp, len(X))
        if (found < 0).any():
            raise ValueError(
                f"row {found.argmin()} of X is not among the {n_known} known rows: this kernel has "
                "values for those rows only"
            )
        return found


class Precomputed(KnownRowsKernel):
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

    def fit(self, X: Floats, y: object = None) -> Self:
        # An array of a memmap is no memmap, and `check_gram` would read it whole.
        matrix = self.gram_matrix
        matrix = matrix if isinstance(matrix, np.memmap) else real_numbers(matrix, "gram")
        check_gram(matrix)
        return self._learn(matrix, f"gram has shape {matrix.shape}")

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        ids = self._find(X)
        return MatrixGram(self._values, ids, self)

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        rows = self._find(X)
        columns = rows if Y is None else self._find(Y)
        return self._values[np.ix_(rows, columns)]


def check_gram(gram: NDArray[Any]) -> None:
    """Raise if an array of numbers is not a Gram matrix; of a memmap only the shape is checked."""
    if len(gram.shape) != 2 or gram.shape[0] != gram.shape[1]:
        raise ValueError(
            f"gram has shape {gram.shape}: pass the square Gram matrix of the same rows as X. "
            "Cross-validation slices a gram argument by rows only; there, use "
            "kernel=Precomputed(gram, rows=X)"
        )
    if isinstance(gram, np.memmap):
        return
    for start in range(0, len(gram), N_CHUNK_ROWS):
        finite_float32(gram[start : start + N_CHUNK_ROWS], "gram")
    asymmetry, largest = asymmetry_of(gram)
    if largest == 0:
        raise ValueError("gram is zero everywhere: there is nothing to align with")
    check_symmetry(asymmetry, largest, "gram")


def ideal_kernel(y: Any, rows: Any = None) -> IdealKernel:
    """Return the ideal kernel K_I of labels, as a (supervised) prior.

    If only some rows have labels (-1 for the others), add another kernel for the rest:
    ``ideal_kernel(y) + PairwiseKernel("rbf")``. The sum is positive semi-definite; a matrix with
    some of its entries replaced need not be.
    """
    return IdealKernel(y, rows)


class IdealKernel(KnownRowsKernel):
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
        classes = np.full(len(missing), -1)
        classes[~missing] = np.unique(known, return_inverse=True)[1]
        return self._learn(classes, f"labels has {len(missing)} entries")

    def evaluate(self, X: Any, Y: Any) -> Any:
        a = self._find(X)
        return _same(self._values[a], None if Y is None else self._values[self._find(Y)])

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        ids = self._find(X)
        return RowsGram(self._values[ids], _same, str(self), self)


def _is_missing(label: Any) -> bool:
    try:
        return bool(label is None or label != label or (label == UNLABELLED and label is not True))
    except TypeError:  # pandas.NA is neither equal to anything nor different
        return True


def _same(a: NDArray[Any], b: NDArray[Any] | None) -> Floats:
    b = a if b is None else b
    same: Floats = ((a[:, None] == b) & (a[:, None] >= 0)).astype(np.float32)
    return same


def _ids_of(rows: Any, values: NDArray[Any], what: str) -> dict[bytes, int]:
    """Return the id of each known row by its digest."""
    rows = as_rows(rows, "rows")
    if len(rows) != len(values):
        raise ValueError(
            f"{what}, but rows has {len(rows)} rows: pass the vector of each of its rows, in the "
            "same order"
        )
    ids: dict[bytes, int] = {}
    for i, row in enumerate(_digests(rows, "rows")):
        first = ids.setdefault(row, i)
        if first != i and not np.array_equal(values[first], values[i]):
            raise ValueError(
                f"rows {first} and {i} are equal vectors (in float32) with different values or "
                "labels: their content does not tell them apart"
            )
    return ids


def _digests(X: Any, name: str) -> Iterator[bytes]:
    """Yield a digest of each row in float32, with -0.0 as 0.0."""
    for part in chunks_of(X, N_CHUNK_NUMBERS):
        with naming(name, X), np.errstate(over="ignore"):
            rows = np.ascontiguousarray(part, dtype=np.float32) + np.float32(0)
        for row in rows:
            yield blake2b(row, digest_size=16).digest()
