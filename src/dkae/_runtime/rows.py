"""Rows that are made when they are asked for: dense ones of a sparse matrix, or without gaps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


class LazyRows:
    """Rows of an array or a sparse matrix; indexing gives a dense array in float32.

    Parameters
    ----------
    source : array or sparse matrix of shape (n, d)
        Where they come from; a sparse matrix must be indexable by rows, as CSR is.
    fill : array of shape (d,), optional
        What stands in place of missing values, NaN; they stay if it is not given.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, source: Any, fill: NDArray[Any] | None = None) -> None:
        self.source = source
        self.fill = fill
        self.shape: tuple[int, int] = source.shape

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.shape[0] * self.shape[1]

    def __getitem__(self, ids: Any) -> NDArray[np.float32]:
        part = self.source[ids]
        rows = part.toarray() if sparse.issparse(part) else np.asarray(part)
        if self.fill is not None:
            rows = np.where(np.isnan(rows), self.fill, rows)
        return np.asarray(rows, dtype=np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all rows: for those who cannot do with a part at a time."""
        return np.asarray(self[:], dtype=dtype)
