"""Arrays of rows as others keep them, for tests."""

from __future__ import annotations

import numpy as np


class Dataset:
    """An array with the rules of an HDF5 dataset: a slice, or ascending row numbers, and no more.

    It counts the rows that are read together.
    """

    def __init__(self, array):
        self._array = np.asarray(array)
        self.sizes = []

    @property
    def shape(self):
        return self._array.shape

    @property
    def dtype(self):
        return self._array.dtype

    def __getitem__(self, ids):
        if isinstance(ids, slice):
            if ids.step not in (None, 1):
                raise TypeError("only steps of 1 are supported")
        else:
            ids = np.asarray(ids)
            if ids.ndim != 1 or (np.diff(ids) <= 0).any():
                raise TypeError("Indexing elements must be in increasing order")
        part = self._array[ids]
        self.sizes.append(len(part))
        return part


def on_disk(array, path):
    """Return an array as a memmap of a new file."""
    np.save(path, array)
    return np.load(path, mmap_mode="r")
