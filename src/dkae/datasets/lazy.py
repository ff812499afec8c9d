"""Rows that stay on a disk: changed when they are read, or spooled into a file without a name.

`dkae.RowArray` takes them as a source. It reads in float32; here rows keep float64, so that what is
subtracted from them, such as a mean, is subtracted before digits are lost.
"""

import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.rows import release

Change = Callable[[NDArray[Any]], NDArray[Any]]

#: Bytes of a mapped file that stay in memory.
_MOST_MAPPED = 2**25


class ChangedRows:
    """Rows of an array that are changed when they are read: columns of them, or other units.

    Parameters
    ----------
    source : array of shape (n, ...)
        Anything with ``shape``, ``dtype`` and ``__getitem__``.
    change : callable
        Maps an array of rows to one of as many rows.
    """

    def __init__(self, source: Any, change: Change) -> None:
        self.source = source
        self.change = change
        row = change(np.zeros((1, *source.shape[1:]), dtype=source.dtype))
        self.shape: tuple[int, ...] = (int(source.shape[0]), *row.shape[1:])
        self.dtype = row.dtype
        self._n_mapped = 0

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, ids: Any) -> NDArray[Any]:
        check_mapped(self.source)
        part = np.asarray(self.source[ids])
        rows = self.change(part)
        self._n_mapped += part.nbytes
        if self._n_mapped > _MOST_MAPPED:
            rows = np.array(rows)  # it may be a view of what goes
            release(self.source)
            self._n_mapped = 0
        return rows


def changed(rows: Any, change: Change) -> Any:
    """Return rows changed: those in memory now, those on a disk when they are read."""
    if isinstance(rows, np.ndarray) and not isinstance(rows, np.memmap):
        return change(rows)
    return ChangedRows(rows, change)


def floats(rows: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as float32, but float64 as it is."""
    return rows if rows.dtype == np.float64 else rows.astype(np.float32, copy=False)


def divided(rows: NDArray[Any], scale: float) -> NDArray[Any]:
    """Return rows divided by a number, as `RowArray` does it."""
    numbers = floats(rows)
    return np.asarray(numbers / numbers.dtype.type(scale))


def read_part(rows: Any, start: int, stop: int) -> NDArray[Any]:
    """Return some rows as an array in memory; what was mapped for them is let go."""
    check_mapped(rows)
    part = np.array(rows[start:stop])
    release(rows)
    return part


def check_mapped(rows: Any) -> None:
    """Refuse a mapped file that was cut: reading beyond its end would end the process."""
    mapped: Any = getattr(rows, "_mmap", None)
    if isinstance(rows, np.memmap) and mapped is not None and mapped.size() < len(mapped):
        raise ValueError(
            f"{rows.filename} had {len(mapped)} bytes or more and now has {mapped.size()}: it was "
            "truncated while it was read; write it again"
        )


def spool(pieces: Iterable[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Return rows that are in a file without a name, which goes with them."""
    n_rows, width = 0, 0
    with tempfile.TemporaryFile() as file:
        for rows in pieces:
            try:
                file.write(np.ascontiguousarray(rows).data)
                file.flush()
            except OSError as error:
                raise OSError(
                    f"rows do not fit into {tempfile.gettempdir()} ({error.strerror}), where they "
                    "are kept meanwhile: set TMPDIR to a folder with more space"
                ) from error
            n_rows, width = n_rows + len(rows), rows.shape[1]
        return np.memmap(file, dtype=np.float32, mode="r", shape=(n_rows, width))
