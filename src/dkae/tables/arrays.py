"""Arrays by name or by file: built-in data sets, and .npy files, which are mapped, not read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkae.datasets import load_mnist20k
from dkae.rows import release

#: Built-in data sets, scaled to [0, 1].
DATASETS = ("digits", "mnist20k", "mnist20k:train", "mnist20k:validation", "mnist20k:test")


class ArrayFile:
    """An array of rows; its columns have no names.

    Parameters
    ----------
    source : str
        A data set, or a file .npy.
    """

    header = None

    def __init__(self, source: str) -> None:
        self.source = source
        self.array = _read_array(source)
        if self.array.dtype.kind not in "biuf" or self.array.ndim < 2:
            raise ValueError(
                f"{source} holds an array of {self.array.dtype} and the shape {self.array.shape}: "
                "expected rows of numbers"
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
            raise ValueError(f"{self.source} was truncated while it was read: write it again")
        part = np.array(self.array[start:stop])
        release(self.array)
        return part


def _read_array(source: str) -> NDArray[Any]:
    """Return the array that `source` names; nothing is unpickled."""
    if source == "digits":
        from sklearn.datasets import load_digits

        return np.asarray(load_digits().data / 16, dtype=np.float32)
    if source in DATASETS:
        mnist, part = load_mnist20k(scaled=True), source.partition(":")[2]
        return np.asarray(mnist.data[mnist[part]] if part else mnist.data)
    path = Path(source)
    if not path.is_file():
        known = ", ".join(DATASETS)
        raise FileNotFoundError(f"{source} is neither a file nor a data set ({known})")
    if path.suffix != ".npy":
        raise ValueError(
            f"{path} has the ending {path.suffix!r}: expected .npy, .csv, .tsv or .parquet"
        )
    try:
        return npy.open_memmap(path, mode="r")
    except Exception as error:  # whatever NumPy makes of a damaged file
        raise ValueError(f"{path} is not a NumPy file of numbers ({error})") from error


def write_array(path: Path, parts: Iterable[NDArray[Any]]) -> int:
    """Write rows below each other to a file .npy, and return how many there are."""
    n_rows = 0
    with path.open("wb") as file:
        for part in parts:
            if not n_rows:
                _write_header(file, part, 0)
            file.write(np.ascontiguousarray(part).data)
            n_rows += len(part)
        _write_header(file, part, n_rows)  # NumPy leaves space for any number of rows
    return n_rows


def _write_header(file: IO[bytes], part: NDArray[Any], n_rows: int) -> None:
    shape = (n_rows, *part.shape[1:])
    descr = npy.dtype_to_descr(part.dtype)
    file.seek(0)
    npy.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
