"""Tables are written a piece at a time, in the format of the path's ending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkae.tables.entries import is_header, require_pyarrow
from dkae.tables.table import Table

DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
#: The endings of files that can be written.
ENDINGS = (".npy", *DELIMITERS, ".parquet")


class TableWriter(Protocol):
    """Writes the pieces of a table."""

    def append(self, table: Table) -> None:
        """Write rows below those that are there."""

    def close(self) -> None:
        """Complete the file."""


def open_writer(path: Path) -> TableWriter:
    """Return a writer of the format that the path ends in.

    In a file of columns the index comes first and the label last; a .npy file has the rows without
    them. A text file has no header if a name is a number: it would be read as a row.
    """
    if path.suffix == ".npy":
        return NpyWriter(path)
    require_pyarrow(path)
    return ColumnWriter(path, _open_parquet if path.suffix == ".parquet" else _open_text)


class ColumnWriter:
    """Writes columns by a writer of pyarrow.

    Parameters
    ----------
    path : Path
        The file.
    open_file : callable
        Returns the writer for a path and a schema, which is that of the first piece.
    """

    def __init__(self, path: Path, open_file: Callable[[Path, Any], Any]) -> None:
        self.path, self._open = path, open_file
        self._writer: Any = None

    def append(self, table: Table) -> None:
        """Write rows below those that are there."""
        columns = self._columns_of(table)
        if self._writer is None:
            for name, kind in zip(columns.column_names, columns.schema.types, strict=True):
                if self.path.suffix in DELIMITERS and kind.num_fields:
                    raise ValueError(
                        f"column {name!r} holds {kind}, which {self.path.suffix} cannot: write "
                        ".parquet"
                    )
            self._writer = self._open(self.path, columns.schema)
        self._writer.write_table(columns)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()

    def _columns_of(self, table: Table) -> Any:
        import pyarrow

        rows = table.rows
        if rows.ndim != 2:
            raise ValueError(
                f"{self.path.suffix} holds tables, and rows have the shape {rows.shape[1:]}: write "
                ".npy"
            )
        names = table.names or [f"x{i}" for i in range(rows.shape[1])]
        columns: list[tuple[str, Any]] = list(zip(names, rows.T, strict=True))
        columns = [*filter(None, [table.index]), *columns, *filter(None, [table.label])]
        for special in filter(None, (table.index, table.label)):
            if [name for name, _ in columns].count(special.name) > 1:
                raise ValueError(
                    f"two columns would have the name {special.name!r}: rename the column"
                )
        arrays = [
            pyarrow.array(np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v)
            for _, v in columns
        ]
        return pyarrow.table(arrays, [name for name, _ in columns])


def _open_text(path: Path, schema: Any) -> Any:
    from pyarrow import csv

    options = csv.WriteOptions(
        include_header=is_header(schema.names), delimiter=DELIMITERS[path.suffix]
    )
    return csv.CSVWriter(path, schema, write_options=options)


def _open_parquet(path: Path, schema: Any) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(path, schema, write_page_checksum=True)


class NpyWriter:
    """Writes an array whose length is known only after the last piece.

    Parameters
    ----------
    path : Path
        The file. All pieces have the type of the first, and rows of its shape.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._shape: tuple[int, ...] | None = None

    def append(self, table: Table) -> None:
        """Write rows below those that are there."""
        rows: NDArray[Any] = np.asarray(table.rows)
        if self._shape is None:
            self._shape, self._dtype = (0, *rows.shape[1:]), rows.dtype
            self._start = self._write_header()
        if rows.shape[1:] != self._shape[1:]:
            raise ValueError(f"rows have the shape {rows.shape[1:]}, after {self._shape[1:]}")
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._shape = (self._shape[0] + len(rows), *self._shape[1:])

    def close(self) -> None:
        """Complete the file: its header, for which NumPy leaves space, gets the shape."""
        with self._file:
            if self._shape is not None and self._write_header() != self._start:
                raise OSError("the header of the .npy file grew over its rows: write .parquet")

    def _write_header(self) -> int:
        """Write the header at the start of the file, and return where it ends."""
        self._file.seek(0)
        descr = npy.dtype_to_descr(self._dtype)
        npy.write_array_header_1_0(
            self._file, {"descr": descr, "fortran_order": False, "shape": self._shape}
        )
        return self._file.tell()
