"""Tables are read a piece at a time, from any file or data set."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae._support.checks import check_number
from dkae._support.memory import total_memory
from dkae.datasets import DataFileError
from dkae.rows import RowArray
from dkae.tables.arrays import ArrayTable, spool
from dkae.tables.columns import Choice, Header, Layout, choose
from dkae.tables.parquet import ParquetTable
from dkae.tables.table import Column, Table, join
from dkae.tables.text import TextTable
from dkae.tables.writer import DELIMITERS

#: Larger files are not held in memory for a fit.
SPOOLED_BYTES = 2**28
#: The largest number that maps take; `scale` and its inverse stay below.
_LARGEST = 1e15
_ALL = Layout()


class TableReader:
    """A table that is read a piece at a time, as often as it is iterated over.

    Parameters
    ----------
    source : str
        A file .csv, .tsv (also .gz), .parquet, .npy, .npz, ``file.npz:name`` or IDX, or a data set.
    layout : Layout
        Which columns are features, label and index. By default all are features, but the index that
        pandas has stored in a Parquet file.
    wanted : sequence of str or int, optional
        Names of the features of a model, or how many it has. Arrays are checked by the model.
    by_order : bool, default=False
        Whether to take columns in their order if none of them has a wanted name.
    gaps : bool, default=False
        Whether gaps are NaN. If not, they are an error.
    scale : float, default=1
        A number that features are divided by.
    """

    def __init__(
        self,
        source: str,
        layout: Layout = _ALL,
        *,
        wanted: Sequence[str] | int | None = None,
        by_order: bool = False,
        gaps: bool = False,
        scale: float = 1.0,
    ) -> None:
        self.source, self.gaps = source, gaps
        self.scale = check_number("--scale", scale, 1 / _LARGEST, _LARGEST)
        self._file = _open(source)
        self._is_plain = isinstance(self._file, ArrayTable) and layout == _ALL
        if isinstance(self._file, ArrayTable):
            wanted = None
            if layout != _ALL and self._file.array.ndim != 2:
                raise ValueError(f"{source} has the shape {self._file.array.shape}: no columns")
        header = Header(source, self._file.header, self._file.n_columns)
        self._choice = (
            Choice([])
            if self._is_plain
            else choose(header, layout, wanted, by_order=by_order, stored_index=self._file.index)
        )

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None if it is known only after reading."""
        return self._file.n_rows

    @property
    def unused(self) -> tuple[str, ...]:
        """The names of columns that the model does not use."""
        return self._choice.unused

    def __iter__(self) -> Iterator[Table]:
        choice, header = self._choice, self._file.header
        features: Any = None if self._is_plain else choice.features
        others = [i for i in (choice.index, choice.label) if i is not None]
        names = None if header is None else [header[i] for i in choice.features]
        for rows, values in self._file.pieces(features, others, gaps=self.gaps):
            found = dict(zip(others, values, strict=True))

            def column(i: int | None, name: str, found: dict[int, Any] = found) -> Column | None:
                return (
                    None if i is None else Column((header[i] if header else "") or name, found[i])
                )

            index, label = column(choice.index, "index"), column(choice.label, "label")
            yield Table(self._scaled(rows), names, index, label)

    def read(self) -> Table:
        """Return the whole table, in memory; a mapped array that is taken as it is stays mapped."""
        if self._is_plain and self.scale == 1:
            return Table(self._array)
        n_bytes = 4 * (self.n_rows or 0) * (len(self._choice.features) or self._file.n_columns)
        if n_bytes > (memory := total_memory()):
            raise DataFileError(
                f"{self.source} holds {n_bytes} bytes, and this machine has {memory}: take fewer "
                "rows, or a .npy file, which is not read as a whole"
            )
        return join(list(self))

    def read_or_spool(self) -> Table:
        """Return the whole table; rows of large files stay on disk, other columns do not."""
        if self._is_plain:
            array = self._array
            return Table(array if self.scale == 1 else RowArray(array, scale=self.scale))
        path = Path(self.source)
        if not path.is_file() or path.stat().st_size <= SPOOLED_BYTES:
            return self.read()
        without_rows = []

        def rows() -> Iterator[NDArray[Any]]:
            for piece in self:
                without_rows.append(dataclasses.replace(piece, rows=piece.rows[:0]))
                yield piece.rows

        spooled = spool(rows())
        return dataclasses.replace(join(without_rows), rows=spooled)

    @property
    def _array(self) -> NDArray[Any]:
        return self._file.array  # type: ignore[union-attr]  # of a plain array only

    def _scaled(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self.scale == 1:
            return rows
        numbers = rows if rows.dtype == np.float64 else rows.astype(np.float32, copy=False)
        return np.asarray(numbers / numbers.dtype.type(self.scale))


def read_table(source: str, layout: Layout = _ALL, **wishes: Any) -> Table:
    """Return the table that `source` names; the parameters are those of `TableReader`."""
    return TableReader(source, layout, **wishes).read()


def _open(source: str) -> TextTable | ParquetTable | ArrayTable:
    path = Path(source)
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if path.is_file() and name.suffix in DELIMITERS:
        return TextTable(path, DELIMITERS[name.suffix])
    return (
        ParquetTable(path) if path.is_file() and path.suffix == ".parquet" else ArrayTable(source)
    )
