"""Tables are written a piece at a time, by the ending of the path; a failure leaves no file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from dkae._support.files import replacing
from dkae.datasets.files import is_header
from dkae.datasets.npy import NpyWriter
from dkae.datasets.parquet import ParquetWriter

if TYPE_CHECKING:
    from dkae.datasets.tables import Table

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = ".parquet"

Columns = Sequence[tuple[str, NDArray[Any]]]


class TableWriter(Protocol):
    """What writes the pieces of a table."""

    def append(self, table: Table) -> None:
        """Write rows below those that are there."""


@contextmanager
def writing(path: Path) -> Iterator[TableWriter]:
    """Write pieces of a table to a file that appears if all of them are written.

    In a table the index comes first, the label last. A .npy or .npz file has the rows alone. A text
    file has no header if a name is a number, since it would be read as a row.
    """
    with replacing(path) as temporary:
        if path.suffix in DELIMITERS:
            with DelimitedWriter(temporary, DELIMITERS[path.suffix]) as text:
                yield _OfColumns(path, text)
        elif path.suffix == PARQUET:
            with ParquetWriter(temporary) as parquet:
                yield _OfColumns(path, parquet)
        elif path.suffix == ".npy":
            with NpyWriter(temporary) as npy:
                yield _OfRows(npy)
        else:
            with _NpzWriter(temporary) as npz:
                yield _OfRows(npz)


class DelimitedWriter:
    """Writes columns below their names; numbers with the nine digits that float32 needs."""

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path, self.delimiter = path, delimiter
        self._is_new = True

    def __enter__(self) -> Self:
        self._file = self.path.open("w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._file, delimiter=self.delimiter, lineterminator="\n")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, columns: Columns) -> None:
        """Write rows below those that are there."""
        names = [name for name, _ in columns]
        if self._is_new and is_header(names):  # one with numbers would be read as a row
            self._writer.writerow(names)
        self._is_new = False
        for fields in zip(*(values for _, values in columns), strict=True):
            self._writer.writerow([f"{f:.9g}" if isinstance(f, np.floating) else f for f in fields])


class _NpzWriter:
    """Collects rows in memory: how many there are stands before them in a .npz file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts: list[NDArray[Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            np.savez_compressed(self.path, data=np.concatenate(self._parts))

    def append(self, rows: NDArray[Any]) -> None:
        self._parts.append(rows)


class _OfRows:
    """Writes the rows of a table alone."""

    def __init__(self, writer: NpyWriter | _NpzWriter) -> None:
        self._writer = writer

    def append(self, table: Table) -> None:
        self._writer.append(np.asarray(table.rows))


class _OfColumns:
    """Writes the rows of a table, and what stands beside them."""

    def __init__(self, path: Path, writer: DelimitedWriter | ParquetWriter) -> None:
        self._path, self._writer = path, writer

    def append(self, table: Table) -> None:
        if table.rows.ndim != 2:
            raise ValueError(
                f"{self._path} is a table, and rows have the shape {table.rows.shape[1:]}: write "
                ".npy"
            )
        self._writer.append(_columns_of(table))


def _columns_of(table: Table) -> list[tuple[str, NDArray[Any]]]:
    names = table.names or [f"x{i}" for i in range(table.rows.shape[1])]
    columns: list[tuple[str, NDArray[Any]]] = list(zip(names, table.rows.T, strict=True))
    if table.index is not None:
        columns.insert(0, table.index)
    if table.label is not None:
        columns.append(table.label)
    for name in (column.name for column in (table.index, table.label) if column is not None):
        if [other for other, _ in columns].count(name) > 1:
            raise ValueError(f"two columns would have the name {name!r}: rename the column")
    return columns
