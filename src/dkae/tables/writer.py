"""Tables are written a piece at a time, in the format of the path's ending."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkae.tables.arrow import require_pyarrow
from dkae.tables.table import DELIMITERS, Table, is_header


def open_writer(path: Path) -> NpyWriter | ColumnWriter:
    """Return a writer of the format that the path ends in.

    In a file of columns the index comes first and the label last; a .npy file has the rows without
    them. A text file has no header if a name is a number: it would be read as a row.
    """
    return NpyWriter(path) if path.suffix == ".npy" else ColumnWriter(path)


class ColumnWriter:
    """Writes columns by pyarrow; the first piece decides their types.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        require_pyarrow(path)
        self.path = path
        self._writer: Any = None

    def append(self, table: Table) -> None:
        """Write rows below those that are there."""
        columns = self._columns_of(table)
        if self._writer is None:
            self._writer = self._open(columns.schema)
        self._writer.write_table(columns)

    def close(self) -> None:
        """Complete the file."""
        if self._writer is not None:
            self._writer.close()

    def _columns_of(self, table: Table) -> Any:
        import pyarrow

        if table.rows.ndim != 2:
            raise ValueError(
                f"{self.path.suffix} holds tables, and rows have the shape {table.rows.shape[1:]}: "
                "write .npy"
            )
        names = table.names or [f"x{i}" for i in range(table.rows.shape[1])]
        columns = list(zip(names, map(np.ascontiguousarray, table.rows.T), strict=True))
        columns = [*filter(None, [table.index]), *columns, *filter(None, [table.label])]
        names = [name for name, _ in columns]
        for special in filter(None, (table.index, table.label)):
            if names.count(special.name) > 1:
                raise ValueError(
                    f"two columns would have the name {special.name!r}: rename the column"
                )
        return pyarrow.table([pyarrow.array(values) for _, values in columns], names)

    def _open(self, schema: Any) -> Any:
        """Return the writer of pyarrow for these columns."""
        if self.path.suffix == ".parquet":
            from pyarrow import parquet

            return parquet.ParquetWriter(self.path, schema, write_page_checksum=True)
        from pyarrow import csv

        for field in schema:
            if field.type.num_fields:
                raise ValueError(
                    f"column {field.name!r} holds {field.type}, which {self.path.suffix} cannot: "
                    "write .parquet"
                )
        options = csv.WriteOptions(
            include_header=is_header(schema.names), delimiter=DELIMITERS[self.path.suffix]
        )
        return csv.CSVWriter(self.path, schema, write_options=options)


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
            self._write_header()
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._shape = (self._shape[0] + len(rows), *self._shape[1:])

    def close(self) -> None:
        """Complete the file: its header, for which NumPy leaves space, gets the shape."""
        with self._file:
            if self._shape is not None:
                self._write_header()

    def _write_header(self) -> None:
        self._file.seek(0)
        descr = npy.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": self._shape}
        npy.write_array_header_1_0(self._file, header)
