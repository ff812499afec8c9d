"""Arrays that are not in memory, as strict as the strictest of them."""

from __future__ import annotations

import numpy as np


class Store:
    """Rows that are read by slices or strictly ascending numbers, as those of an HDF5 dataset.

    It counts how many rows were read at once at most.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows = rows
        self.shape, self.dtype = rows.shape, rows.dtype
        self.most = 0

    def __getitem__(self, ids):
        if isinstance(ids, slice):
            assert ids.step in (None, 1)
        else:
            ids = np.asarray(ids)
            assert ids.dtype.kind == "i", ids.dtype
            assert (np.diff(ids) > 0).all(), "row numbers must be strictly ascending"
        part = self._rows[ids]
        self.most = max(self.most, len(part))
        return part

    def __array__(self, *args, **kwargs):
        raise AssertionError("all rows were asked for")


class Results:
    """What rows can be written to, by slices, and no more."""

    def __init__(self, shape, dtype=np.float32) -> None:
        self.rows = np.full(shape, np.nan, dtype)
        self.shape, self.dtype = self.rows.shape, self.rows.dtype
        self.most = 0

    def __setitem__(self, ids: slice, part: np.ndarray) -> None:
        self.most = max(self.most, len(part))
        self.rows[ids] = part


def on_disk(rows: np.ndarray, path) -> np.memmap:
    """Return the same rows, mapped from a file."""
    np.save(path, rows)
    return np.load(path, mmap_mode="r")
