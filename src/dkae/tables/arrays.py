"""Arrays by name or by file: data sets, .npy, .npz and IDX; nothing is unpickled."""

from __future__ import annotations

import math
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae._support.checks import check_choice
from dkae.datasets import DataFileError, load_mnist20k, read_idx
from dkae.rows import release
from dkae.tables.entries import fault_error, first_fault, piece_length

_UNREADABLE = (
    ValueError, OSError, EOFError, OverflowError, RuntimeError, NotImplementedError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def _digits() -> NDArray[Any]:
    from sklearn.datasets import load_digits

    return np.asarray(load_digits().data / 16, dtype=np.float32)


#: Built-in data sets by name, scaled to [0, 1].
DATASETS: dict[str, Callable[[], NDArray[Any]]] = {
    "digits": _digits,
    "mnist20k": lambda: np.asarray(load_mnist20k(scaled=True).data),
}
_PARTS = ("train", "validation", "test")


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
        if not self.array.shape:
            raise DataFileError(f"{source} holds a scalar array: expected rows of numbers")
        self.n_rows = len(self.array)
        self.n_columns = math.prod(self.array.shape[1:])

    def pieces(
        self, features: Sequence[int] | None, others: Sequence[int], *, gaps: bool
    ) -> Iterator[tuple[NDArray[Any], list[Any]]]:
        """Yield columns of numbers as matrices, and other columns; all of them for None."""
        n = piece_length(self.n_columns)
        for start in range(0, max(1, self.n_rows), n):  # the model rejects a piece without rows
            part = self._read(start, start + n)
            rows = part if features is None else part[:, features]
            if (fault := first_fault(rows, gaps=gaps)) is not None:
                column = [c if features is None else features[c] for c in fault[1:]]
                where = f"{self.source}, row {start + fault[0]} (from 0), column "
                raise fault_error(where + ", ".join(map(str, column)), rows[fault])
            yield rows, [part[:, i] for i in others]

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
    if source.partition(":")[0] in DATASETS:
        return _data_set(*source.split(":", 1))
    stem, _, key = source.partition(".npz:")
    path = Path(f"{stem}.npz" if key else source)
    if not path.is_file():
        nearest = get_close_matches(source.partition(":")[0], DATASETS, n=1)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
        known = ", ".join(sorted(DATASETS))
        raise FileNotFoundError(f"{source} is neither a file nor a data set ({known}){hint}")
    if "ubyte" in path.name or ".idx" in path.name:
        return _read_images(path)
    if path.suffix not in (".npy", ".npz"):
        raise DataFileError(
            f"{path} has the ending {path.suffix!r}: expected .npy, .npz, .csv, .tsv or .parquet"
        )
    return _read_numpy(path, key)


def _data_set(name: str, part: str | None = None) -> NDArray[Any]:
    """Return the rows of a data set, or of one part of it."""
    rows = DATASETS[name]()
    if part is None:
        return rows
    if name != "mnist20k":
        raise ValueError(f"data set {name!r} has no parts, got {part!r}: use {name!r}")
    return np.asarray(rows[load_mnist20k()[check_choice(f"part of {name}", part, _PARTS)]])


def _read_numpy(path: Path, key: str) -> NDArray[Any]:
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] != b"PK":
                return _numbers(path, np.load(path, mmap_mode="r", allow_pickle=False))
            with np.load(file, allow_pickle=False) as archive:
                return _numbers(path, archive[_member(path, archive.files, key)])
    except DataFileError:
        raise
    except _UNREADABLE as error:
        raise DataFileError(f"{path} is not a NumPy file of numbers ({error})") from error


def _member(path: Path, names: Sequence[str], key: str) -> str:
    if key:
        return check_choice(f"array in {path}", key, names)
    if len(names) != 1:
        raise DataFileError(
            f"{path} holds {len(names)} arrays ({', '.join(names)}): name one, such as "
            f"{path}:{names[0] if names else 'name'}"
        )
    return names[0]


def _numbers(path: Path, values: Any) -> NDArray[Any]:
    array: NDArray[Any] = np.asanyarray(values)
    if array.dtype.kind not in "biuf":
        raise DataFileError(f"{path} holds values of the type {array.dtype}: expected numbers")
    return array


def _read_images(path: Path) -> NDArray[Any]:
    images = read_idx(path)
    if images.size == 0 or images.ndim == 0:
        raise DataFileError(f"{path} holds an array of shape {images.shape}: expected rows")
    return images.reshape(len(images), -1)


def spool(pieces: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return rows that are in a file without a name, which is removed with them."""
    n_rows = 0
    with tempfile.TemporaryFile() as file:
        for rows in pieces:
            try:
                file.write(np.ascontiguousarray(rows).data)
                file.flush()
            except OSError as error:
                raise OSError(
                    f"rows do not fit into {tempfile.gettempdir()} ({error.strerror}), where they "
                    "are kept during the fit: set TMPDIR to a folder with more space"
                ) from error
            n_rows += len(rows)
        return np.memmap(file, rows.dtype, mode="r", shape=(n_rows, *rows.shape[1:]))
