"""A Gram matrix from anywhere, in memory or on disk, as a kernel."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.kernels.base import Floats, Kernel, Prior, Rows, check_symmetry, finite_float32

__all__ = ["Precomputed", "RowIndex"]

#: Rows of the Gram that are looked at together when the whole of it is checked.
N_CHUNK_ROWS = 256


class Precomputed(Kernel):
    """The kernel whose Gram matrix on known rows is `gram_matrix`.

    Parameters
    ----------
    gram_matrix : array of shape (n_samples, n_samples)
        A square, symmetric Gram matrix. A NumPy memmap stays on disk: only the blocks that are
        asked for are read. The matrix is never copied, not even by ``sklearn.base.clone``.
    rows : array of shape (n_samples, n_features), optional
        The vectors that the matrix was computed for. With them a row is recognised by its content,
        so that any part of the data in any order finds its block: this is what cross-validation
        needs, which hands over parts of X without saying which. Without them the rows of X are
        taken to be those of the matrix, in the same order.
    """

    def __init__(self, gram_matrix: Any, rows: Any = None) -> None:
        self.gram_matrix = gram_matrix
        self.rows = rows

    def __str__(self) -> str:
        return "gram"

    def __repr__(self) -> str:
        # Without this the repr of an estimator would read a Gram from disk to print its corners.
        rows = "" if self.rows is None else ", rows=..."
        return f"Precomputed(<{' x '.join(map(str, np.shape(self.gram_matrix)))}>{rows})"

    def __sklearn_clone__(self) -> Precomputed:
        # A copy of n x n numbers for each candidate of a grid search would be the end of it.
        return Precomputed(self.gram_matrix, self.rows)

    def fit(self, X: Floats, y: object = None) -> Precomputed:
        # asarray would turn a memmap into a plain array, and with it lose that it is on disk.
        matrix = self.gram_matrix
        self._matrix = matrix if isinstance(matrix, np.ndarray) else np.asarray(matrix)
        check_gram(self._matrix)
        self._index = RowIndex(self.rows, len(self._matrix), f"gram has shape {self._matrix.shape}")
        self._check_equal_rows()
        return self

    def _check_equal_rows(self) -> None:
        """Refuse equal vectors with different kernel values, which content cannot tell apart."""
        if self.rows is None:
            return
        first = self._index.find(self.rows)
        for i in np.flatnonzero(first != np.arange(len(first))):
            if not np.array_equal(self._matrix[i], self._matrix[first[i]]):
                raise ValueError(
                    f"rows {first[i]} and {i} are equal vectors (in float32), but their rows of "
                    "gram differ: rows cannot be told apart by their content here"
                )

    def on(self, X: Floats) -> Prior:
        return _MatrixPrior(self._matrix, self._index.find(X))

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        rows = self._index.find(X)
        columns = rows if Y is None else self._index.find(Y)
        return self._matrix[np.ix_(rows, columns)]


class RowIndex:
    """Finds rows of X among n known ones: by their content, or by their order if none are given."""

    def __init__(self, rows: Any, n_known: int, what: str) -> None:
        if rows is not None and len(rows) != n_known:
            raise ValueError(
                f"{what}, but rows has {len(rows)} rows: pass the vectors that it belongs to, in "
                "its order"
            )
        self.n_known = n_known
        self.what = what
        # Of equal rows the first one counts.
        self.numbers = None if rows is None else {
            row: i for i, row in reversed(list(enumerate(_contents(rows))))
        }  # fmt: skip

    def find(self, X: Any) -> Rows:
        """Return the number of each row of X."""
        if self.numbers is None:
            if len(X) != self.n_known:
                raise ValueError(
                    f"{self.what}, but X has {len(X)} rows: pass that of the same rows as X. In "
                    "cross-validation, use kernel=Precomputed(gram, rows=X), which finds rows by "
                    "their content"
                )
            return np.arange(len(X))
        found = [self.numbers.get(row, -1) for row in _contents(X)]
        if -1 in found:
            raise ValueError(
                f"row {found.index(-1)} of X is none of the {self.n_known} rows that were given: "
                "this kernel is known on its own rows only"
            )
        return np.asarray(found, dtype=np.intp)


class _MatrixPrior:
    """Blocks of a square matrix that is indexed, never copied."""

    def __init__(self, matrix: NDArray[Any], ids: Rows) -> None:
        self.matrix = matrix
        self.ids = ids

    def __len__(self) -> int:
        return len(self.ids)

    def block(self, rows: Rows, columns: Rows | None = None) -> Floats:
        columns = rows if columns is None else columns
        return finite_float32(self.matrix[np.ix_(self.ids[rows], self.ids[columns])], "gram")


def check_gram(gram: NDArray[Any]) -> None:
    """Refuse what is no Gram matrix; one in memory is read whole, one on disk only by its shape."""
    if gram.dtype.kind not in "buif":
        raise ValueError(
            f"gram has entries of type {gram.dtype}: pass real numbers in a NumPy array (of a "
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
    """Check in chunks of rows, because a mask of n x n booleans would be an n x n array."""
    largest, asymmetry = 0.0, 0.0
    for start in range(0, len(gram), N_CHUNK_ROWS):
        chunk = slice(start, start + N_CHUNK_ROWS)
        rows = finite_float32(gram[chunk], "gram")
        largest = max(largest, float(np.abs(rows).max()))
        asymmetry = max(asymmetry, float(np.abs(rows - gram[:, chunk].T).max()))
    if largest == 0:
        raise ValueError("gram is zero everywhere: there is nothing to align with")
    check_symmetry(asymmetry, largest, "gram")


def _contents(X: Any) -> list[bytes]:
    """Return a digest of each row, in the type that the network sees (and -0.0 as 0.0)."""
    rows = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)
    return [blake2b(row, digest_size=16).digest() for row in rows]
