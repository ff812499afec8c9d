"""Arrays by name or by file: data sets, .npy, .npz and IDX; nothing is unpickled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.datasets import DataFileError, load_mnist20k, read_idx
from dkae.rows import release

#: Built-in data sets, scaled to [0, 1].
DATASETS = ("digits", "mnist20k", "mnist20k:train", "mnist20k:validation", "mnist20k:test")


class ArrayTable:
    """An array of rows; its columns have no names.

    Parameters
    ----------
    source : str
        A data set, or a file .npy (which is mapped, not read), .npz or IDX.
    """

    header = None
    index = None

    def __init__(self, source: str) -> None:
        self.source = source
        self.array = read_array(source)
        if self.array.ndim < 2:
            raise DataFileError(
                f"{source} holds an array of shape {self.array.shape}: expected rows of numbers"
            )
        self.n_rows = len(self.array)
        self.n_columns = math.prod(self.array.shape[1:])

    def place(self, row: int) -> str:
        """Return where a row is, in words."""
        return f"row {row} (from 0)"

    def pieces(
        self, features: Sequence[int] | None, others: Sequence[int], n_rows: int
    ) -> Iterator[tuple[NDArray[Any], list[Any]]]:
        """Yield columns of numbers, all of them for None, and other columns."""
        for start in range(0, self.n_rows, n_rows):
            part = self._read(start, start + n_rows)
            yield part if features is None else part[:, features], [part[:, i] for i in others]

    def _read(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows as an array in memory, and let the pages go that were mapped for them."""
        mapped: Any = getattr(self.array, "_mmap", None)
        # Reading beyond the end of a mapped file would end the process.
        if mapped is not None and mapped.size() < len(mapped):
            raise DataFileError(f"{self.source} was truncated while it was read: write it again")
        part = np.array(self.array[start:stop])
        release(self.array)
        return part


def read_array(source: str) -> NDArray[Any]:
    """Return the array that `source` names; that of a file .npy is mapped."""
    if source in DATASETS:
        return _data_set(*source.partition(":")[::2])
    stem, _, key = source.partition(".npz:")
    path = Path(f"{stem}.npz" if key else source)
    if not path.is_file():
        nearest = get_close_matches(source, DATASETS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        known = ", ".join(DATASETS)
        raise FileNotFoundError(f"{source} is neither a file nor a data set ({known}){hint}")
    if "ubyte" in path.name or ".idx" in path.name:
        images = read_idx(path)
        is_rows = images.ndim > 0 and images.size > 0
        return images.reshape(len(images), -1) if is_rows else images.reshape(-1)
    if path.suffix not in (".npy", ".npz"):
        raise DataFileError(
            f"{path} has the ending {path.suffix!r}: expected .npy, .npz, .csv, .tsv or .parquet"
        )
    array = _read_numpy(path, key)
    if array.dtype.kind not in "biuf":
        raise DataFileError(f"{path} holds values of the type {array.dtype}: expected numbers")
    return array


def _data_set(name: str, part: str) -> NDArray[Any]:
    """Return the rows of a data set, or of one part of it."""
    if name == "digits":
        from sklearn.datasets import load_digits

        return np.asarray(load_digits().data / 16, dtype=np.float32)
    mnist = load_mnist20k(scaled=True)
    return np.asarray(mnist.data[mnist[part]] if part else mnist.data)


def _read_numpy(path: Path, key: str) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] != b"PK":
                return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
            with np.load(file, allow_pickle=False) as archive:
                return np.asanyarray(archive[_member(path, archive.files, key)])
    except DataFileError:
        raise
    except Exception as error:  # whatever NumPy makes of a damaged file
        raise DataFileError(f"{path} is not a NumPy file of numbers ({error})") from error


def _member(path: Path, names: Sequence[str], key: str) -> str:
    if key and key not in names:
        raise DataFileError(f"{path} holds no array {key!r}: expected one of {', '.join(names)}")
    if not key and len(names) != 1:
        raise DataFileError(
            f"{path} holds {len(names)} arrays ({', '.join(names)}): name one, such as "
            f"{path}:{names[0] if names else 'name'}"
        )
    return key or names[0]
