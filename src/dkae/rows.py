"""Rows that are read when they are asked for: on a disk, of a sparse matrix, or without gaps.

Memory holds the rows that are asked for, never all. Each part is checked when it is read, so an
error names the row, wherever in the data it is.
"""

from __future__ import annotations

import copy
import mmap
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from dkae._support.arrays import (
    REAL_KINDS,
    as_array,
    check_out,
    naming,
)
from dkae._support.checks import check_boolean, check_choice, check_number, shown

Floats = NDArray[np.float32]

#: What an array of rows has; other arrays of Python, and pandas, have more.
_HAS = ("shape", "dtype", "__getitem__")
_HAS_NOT = ("iloc", "__array_namespace__")
#: Bytes of a mapped file that stay in memory; pages beyond them can be read again.
_MOST_MAPPED = 2**24
#: Ways to draw a batch.
SHUFFLES = ("rows", "chunks")
#: Linux maps so many bytes around a row that is read alone: 64 KB, or a large page of its cache.
_AROUND = 2**21
#: Rows, and numbers, that a map takes together: rows of sparse data become dense here.
N_MAPPED_ROWS, N_MAPPED_NUMBERS = 1024, 2**26


class RowArray:
    """Rows of any array that can be indexed; indexing gives an array in memory, in float32.

    Parameters
    ----------
    source : array of shape (n, ...)
        Anything with ``shape``, ``dtype`` and ``__getitem__`` of a slice or of ascending row
        numbers: a NumPy memmap, a Zarr array, an HDF5 dataset, a sparse matrix in CSR format.
    scale : float, default=1
        What rows are divided by, such as 255 for pixels that are bytes.
    missing : bool, default=False
        Whether NaN stands for a missing value. If not, it is an error, when its row is read.
    shuffle : {"rows", "chunks"}, default="rows"
        How training draws a batch: any rows, or eight runs of neighbours, which a slow disk reads
        together. If neighbours are alike, as in a file that is sorted by class, "chunks" makes
        batches less diverse, and losses worse.

    Examples
    --------
    >>> import numpy as np
    >>> from dkae import RowArray
    >>> pixels = np.arange(12, dtype=np.uint8).reshape(6, 2)  # or np.load(path, mmap_mode="r")
    >>> RowArray(pixels, scale=255)[[4, 0]]
    array([[0.03137255, 0.03529412],
           [0.        , 0.00392157]], dtype=float32)
    """

    dtype = np.dtype(np.float32)
    source: Any
    source_dtype: np.dtype[Any]
    shape: tuple[int, ...]
    missing: bool = False
    shuffle: str = SHUFFLES[0]
    #: What is done to rows that were read, in this order.
    _steps: tuple[Callable[[Floats], Floats], ...] = ()
    #: The rows of the source that these are; None for all.
    _ids: NDArray[Any] | None = None
    #: Bytes that were read since pages of a mapped file were released.
    _n_mapped: int = 0

    def __init__(
        self,
        source: Any,
        *,
        scale: float = 1.0,
        missing: bool = False,
        shuffle: str | None = None,
    ) -> None:
        if isinstance(source, RowArray):  # its options still hold
            vars(self).update(vars(source))
        else:
            self.source = source
            self.shape = self._stored_shape = _checked_shape(source)
            self.source_dtype = np.dtype(source.dtype)
        if check_number("scale", scale, 0, open_low=True) != 1:
            self._steps += (partial(_divided, scale),)
        self.missing |= check_boolean("missing", missing)
        if shuffle is not None:
            self.shuffle = check_choice("shuffle", shuffle, SHUFFLES)

    # --- an array of float32, as far as its users can tell -----------------------------------

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __getitem__(self, ids: Any) -> Floats:
        if isinstance(ids, slice):
            ids = np.arange(*ids.indices(len(self)))
        numbers = np.asarray(ids)
        if numbers.dtype.kind not in "bui" and numbers.size:
            raise IndexError(f"X[{shown(ids)}] does not select rows: pass row numbers, or a slice")
        if numbers.ndim == 0:
            row: Floats = self[numbers[None]][0]
            return row
        numbers = np.flatnonzero(numbers) if numbers.dtype == bool else numbers.astype(np.int64)
        numbers = np.where(numbers < 0, numbers + len(self), numbers)
        if ((numbers < 0) | (numbers >= len(self))).any():
            raise IndexError(f"X has {len(self)} rows, and others were asked for")
        return self._gather(numbers if self._ids is None else self._ids[numbers])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return all rows, for code that needs them at once."""
        return np.asarray(self[:], dtype=dtype)

    def __repr__(self) -> str:
        return (
            f"<RowArray of shape {self.shape}, {self.source_dtype} in {type(self.source).__name__}>"
        )

    def standardized(self, center: Floats, scale: Floats) -> RowArray:
        """Return (x - center) / scale of each row x, computed when rows are read."""
        rows = RowArray(self)
        rows._steps += (partial(_standardized, center, scale),)
        return rows

    def filled(self, fill: Floats) -> RowArray:
        """Return the same rows with a value of each feature in place of gaps."""
        rows = RowArray(self, missing=True)
        rows._steps += (partial(_filled, fill),)
        return rows

    def chosen(self, ids: NDArray[Any]) -> RowArray:
        """Return some of the rows, read when they are asked for."""
        part = copy.copy(self)
        part._ids = ids if self._ids is None else self._ids[ids]
        part.shape = (len(ids), *self.shape[1:])
        return part

    def flattened(self) -> RowArray:
        """Return the same rows as vectors."""
        flat = copy.copy(self)
        flat.shape = (len(self), int(np.prod(self.shape[1:])))
        return flat

    # --- reading -----------------------------------------------------------------------------

    def _gather(self, numbers: NDArray[np.int64]) -> Floats:
        """Return rows in any order, read in ascending order, each once."""
        if not (numbers[1:] > numbers[:-1]).all():
            ascending, places = np.unique(numbers, return_inverse=True)
            return self._gather(ascending)[places]
        n = _MOST_MAPPED // _AROUND
        if _map_of(self.source) is None or len(numbers) <= n or _is_run(numbers):
            return self._read(numbers)
        # A few rows at a time: each takes many pages of a mapped file.
        rows = np.empty((len(numbers), *self.shape[1:]), dtype=np.float32)
        for i in range(0, len(numbers), n):
            rows[i : i + n] = self._read(numbers[i : i + n])
        return rows

    def _read(self, numbers: NDArray[np.int64]) -> Floats:
        """Return rows in ascending order, checked."""
        values = self.read_source(numbers)
        # Always a copy: the source must not be written to, and its memory may be released.
        with np.errstate(over="ignore"):  # numbers that are too large become infinite, an error
            rows = np.array(values, dtype=np.float32, order="C")
        n_places = 1 if _is_run(numbers) else len(numbers)
        self._release(values.nbytes + _AROUND * n_places)
        for step in self._steps:
            rows = step(rows)
        self._check_finite(rows, numbers)
        return rows.reshape(len(numbers), *self.shape[1:])

    def read_source(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows in ascending order as the source has them."""
        self._check_unchanged()
        ids = slice(int(numbers[0]), int(numbers[-1]) + 1) if _is_run(numbers) else numbers
        try:
            part = self.source[ids]
            values = part.toarray() if sparse.issparse(part) else np.asarray(part)
        except Exception as error:  # whatever a store raises
            raise ValueError(
                f"rows {numbers[0]} to {numbers[-1]} of X, a {type(self.source).__name__}, cannot "
                f"be read ({type(error).__name__}: {error}): is it whole, and still open?"
            ) from error
        expected = (len(numbers), *self._stored_shape[1:])
        if (values.shape, values.dtype) != (expected, self.source_dtype):
            raise ValueError(
                f"X has the shape {self._stored_shape} and the type {self.source_dtype}, but gave "
                f"{values.shape} of {values.dtype} where {expected} was asked for: it must give "
                "what it says"
            )
        return values

    def _check_unchanged(self) -> None:
        now = _shape_of(self.source)
        if now != self._stored_shape:
            raise ValueError(
                f"X had the shape {self._stored_shape} and now has {now}: its length must not "
                "change while rows are read; pass a copy, or a part that stays"
            )
        mapped = _map_of(self.source)
        # Reading beyond the end of a file would end the process, without a word.
        if mapped is not None and mapped.size() < len(mapped):
            raise ValueError(
                f"X is mapped from a file that had {len(mapped)} bytes or more and now has "
                f"{mapped.size()}: it was truncated; write it again"
            )

    def _check_finite(self, rows: Floats, numbers: NDArray[np.int64]) -> None:
        # One sum tells ordinary rows: NaN and infinity carry over.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(rows.sum()):
                return
        flat = rows.reshape(len(rows), -1)
        bad = (np.isinf(flat) if self.missing else ~np.isfinite(flat)).any(axis=1)
        if bad.any():
            i = int(bad.argmax())
            what = "NaN" if np.isnan(flat[i]).any() and not self.missing else "an infinite value"
            raise ValueError(
                f"row {numbers[i]} of X contains {what} (in float32): correct it, or leave it out"
            )

    def _release(self, n_bytes: int) -> None:
        self._n_mapped += n_bytes
        if self._n_mapped > _MOST_MAPPED:
            release(self.source)
            self._n_mapped = 0


def _divided(scale: float, rows: Floats) -> Floats:
    rows /= np.float32(scale)
    return rows


def _standardized(center: Floats, scale: Floats, rows: Floats) -> Floats:
    return (rows - center) / scale


def _filled(fill: Floats, rows: Floats) -> Floats:
    return np.where(np.isnan(rows), fill, rows)


def _is_run(numbers: NDArray[np.int64]) -> bool:
    """Return whether ascending row numbers are neighbours, which are read as a slice."""
    return len(numbers) > 0 and int(numbers[-1] - numbers[0]) == len(numbers) - 1


def is_row_array(X: Any) -> bool:
    """Return whether rows of X are read a part at a time: on a disk, or of an unknown type.

    Arrays in memory are taken whole.
    """
    if isinstance(X, (RowArray, np.memmap)):
        return True
    if isinstance(X, (np.ndarray, np.generic, torch.Tensor)) or sparse.issparse(X):
        return False
    return all(hasattr(X, name) for name in _HAS) and not any(hasattr(X, n) for n in _HAS_NOT)


def as_rows(X: Any, name: str = "X") -> Any:
    """Return rows that can be indexed by numbers: lists, tables and tensors become arrays.

    Rows of a sparse matrix become dense, and rows on a disk are read, when they are asked for.
    """
    if sparse.issparse(X):
        X = RowArray(X.tocsr(), missing=True)
    elif is_row_array(X) and not isinstance(X, (np.ndarray, RowArray)):
        X = RowArray(X, missing=True)  # a memmap keeps its precision
    rows = X if isinstance(X, RowArray) else as_array(X, name)
    if not rows.shape:
        raise ValueError(
            f"{name}={shown(X)} has no rows: pass an array with one row for each sample"
        )
    if not len(rows):
        raise ValueError(f"{name} has shape {rows.shape} and so no rows: pass at least one")
    return rows


def indexable(X: Any) -> Any:
    """Return rows, or what describes them, that can be indexed by ids."""
    if sparse.issparse(X):
        return X.tocsr()
    return as_rows(X) if is_row_array(X) else X


def validated_rows(
    estimator: Any, X: Any, *, reset: bool, missing: bool = False, **checks: Any
) -> Any:
    """Return rows that scikit-learn has checked; of an array of rows only the shape is read."""
    is_lazy = is_row_array(X)
    with naming("X", X):
        rows = validate_data(
            estimator,
            # Of the same shape, and without memory.
            np.broadcast_to(np.float32(0), X.shape) if is_lazy else X,
            reset=reset,
            ensure_min_samples=2 if reset else 1,
            ensure_all_finite="allow-nan" if missing else True,
            **checks,
        )
    return RowArray(X, missing=missing) if is_lazy else rows


def chunks_of(X: Any, n_numbers: int, part: slice | None = None) -> Iterator[Any]:
    """Yield the rows of X, or of a part of it, in order, about so many numbers at a time."""
    n = max(1, n_numbers // max(1, int(np.prod(X.shape[1:]))))
    part = part or slice(0, len(X))
    return (X[i : min(i + n, part.stop)] for i in range(part.start, part.stop, n))


def map_rows(
    function: Callable[[NDArray[Any]], NDArray[Any]],
    X: Any,
    out: Any = None,
    names: tuple[str, str] = ("X", "codes"),
    dtype: Any = np.float32,
) -> Any:
    """Return a function of the rows of X, chunk by chunk, written to `out` if that is given.

    Intermediate results exist for one chunk at a time. `names` are those of the rows and of the
    results in error messages.
    """
    result: Any = None
    n = max(1, min(N_MAPPED_ROWS, N_MAPPED_NUMBERS // max(1, int(np.prod(X.shape[1:])))))
    for i in range(0, len(X), n):
        # A copy, because torch warns of arrays that it must not write to; in C order, because torch
        # takes no reversed array, and the last digits depend on the order.
        rows = np.array(X[i : i + n], order="C")
        with np.errstate(over="ignore", invalid="ignore"):
            values = function(rows).astype(dtype, copy=False)
        if result is None:
            # One array for all: joining chunks in the end would need the memory twice.
            result = check_out(out, (len(X), *values.shape[1:]), dtype)
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        if bad.any():
            first = int(bad.argmax())
            raise ValueError(
                f"row {i + first} of {names[0]}, with entries up to "
                f"{np.nanmax(np.abs(rows[first])):.3g}, has no finite {names[1]}: float32 does not "
                f"reach so far; pass {names[0]} in the range of the training data"
            )
        result[i : i + len(values)] = values
        release(result)
    return result


def release(array: Any) -> None:
    """Release the pages of a mapped file, which count as memory of the process until then.

    Data written to them is in the file. The pages of a private copy, which has no file, stay.
    """
    mapped = _map_of(array)
    if mapped is not None and array.mode != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def _map_of(array: Any) -> mmap.mmap | None:
    mapped = getattr(array, "_mmap", None) if isinstance(array, np.memmap) else None
    return mapped if isinstance(mapped, mmap.mmap) else None


def _shape_of(source: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in source.shape)


def _checked_shape(source: Any) -> tuple[int, ...]:
    """Return the shape of an array of rows of real numbers."""
    try:
        shape, kind = _shape_of(source), np.dtype(source.dtype)
    except (AttributeError, TypeError) as error:
        raise TypeError(
            f"X, a {type(source).__name__}, cannot be read by rows: pass an array with shape, a "
            "dtype of NumPy and indexing, such as np.load(path, mmap_mode='r')"
        ) from error
    if kind.kind not in REAL_KINDS:
        raise ValueError(f"X has entries of type {kind}: pass rows of real numbers")
    if not shape:
        raise ValueError(f"X={shown(source)} has no rows: pass an array with a row for each sample")
    return shape
