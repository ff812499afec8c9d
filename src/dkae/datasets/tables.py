"""Tables: rows of numbers with the names of their columns, and what identifies or labels the rows.

A table is a file .csv, .tsv or .tab, also gzipped, or .parquet; any other array is one without
names. pandas, the extra ``table``, is used where it is installed, and needed for Parquet only.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.datasets.columns import Choice, Layout, choose
from dkae.datasets.delimited import DelimitedFile
from dkae.datasets.fields import GAPS, GapError, fault_error
from dkae.datasets.files import read_array
from dkae.datasets.lazy import ChangedRows, changed, divided, read_part, spool
from dkae.datasets.parquet import ParquetTable
from dkae.datasets.sizes import n_rows_of_piece
from dkae.datasets.writers import DELIMITERS, PARQUET, writing

__all__ = ["Column", "GapError", "Layout", "Table", "TableReader", "read_table", "write_table"]

#: Bytes of a file from which on its rows are not held in memory for a fit.
N_SPOOLED_BYTES = 2**28
_ALL = Layout()


class Column(NamedTuple):
    """A column that is no feature; from a text file, the values are the text of its fields."""

    name: str
    values: NDArray[Any]


@dataclass(frozen=True)
class Table:
    """Rows of numbers, and what stands beside them.

    Parameters
    ----------
    rows : array of shape (n_samples, n_features)
        The features; float32 if they come from a table. They may be on a disk.
    names : list of str, optional
        Names of the features.
    index, label : Column, optional
        What identifies the rows, and their labels.
    """

    rows: Any
    names: list[str] | None = None
    index: Column | None = None
    label: Column | None = None

    def with_rows(self, rows: Any, names: Sequence[str]) -> "Table":
        """Return other features of the same samples."""
        return dataclasses.replace(self, rows=rows, names=list(names))

    def labels(self) -> NDArray[Any] | None:
        """Return the labels: numbers if all of them are, else objects; NaN or None for a gap."""
        if self.label is None:
            return None
        values = self.label.values
        if values.dtype != object:
            return values
        known = [None if value in GAPS else value for value in values.tolist()]
        try:
            return np.array([np.nan if value is None else float(value) for value in known])
        except (TypeError, ValueError):
            return np.array(known, dtype=object)


class TableReader:
    """A table that is read a piece at a time, as often as it is iterated over.

    Parameters
    ----------
    source : str
        A file, whose first line is its header if it has no number in it, or a data set: whatever
        `read_array` takes.
    layout : Layout
        Which columns are features, label and index. By default all are features; the index that
        pandas stores in a Parquet file is the index.
    wanted : sequence of str or int, optional
        Names of the features of a model, or how many it has. An array without a name for its
        columns is for the model to check.
    or_by_order : bool, default=False
        Whether columns of which none has a wanted name are taken in their order.
    gaps : bool, default=False
        Whether gaps are NaN. If not, they are an error.
    scale : float, default=1
        What features are divided by.
    """

    def __init__(
        self,
        source: str,
        layout: Layout = _ALL,
        *,
        wanted: Sequence[str] | int | None = None,
        or_by_order: bool = False,
        gaps: bool = False,
        scale: float = 1.0,
    ) -> None:
        self.source, self.gaps, self.scale = source, gaps, scale
        path = Path(source)
        pick = partial(choose, source, layout=layout, wanted=wanted, or_by_order=or_by_order)
        self._file = _open(path)
        if self._file is None:
            self._array = _from_array(source, read_array(source), layout)
            if scale != 1:
                rows = changed(self._array.rows, partial(divided, scale=scale))
                self._array = dataclasses.replace(self._array, rows=rows)
        elif isinstance(self._file, ParquetTable):
            self._header: list[str] | None = self._file.header
            self._choice = pick(self._header, len(self._file.header))
            if self._file.index_name is not None and self._choice.index is None:
                self._choice = dataclasses.replace(self._choice, index=len(self._file.header))
                self._header = [*self._file.header, self._file.index_name]
        else:
            self._header = self._file.header
            self._choice = pick(self._header, self._file.n_columns)

    @property
    def n_rows(self) -> int | None:
        """How many rows there are; None if only reading tells."""
        if self._file is None:
            return len(self._array.rows) if self._array.rows.shape else None
        return getattr(self._file, "n_rows", None)

    def __iter__(self) -> Iterator[Table]:
        if self._file is None:
            yield from _pieces_of(self.source, self._array, self.gaps)
            return
        choice = self._choice
        others = [i for i in (choice.index, choice.label) if i is not None]
        for rows, values in self._file.pieces(choice.features, others, gaps=self.gaps):
            numbers = rows if self.scale == 1 else divided(rows, self.scale)
            beside = dict(zip(others, values, strict=True))
            yield _assemble(numbers, self._header, choice, beside)

    def read(self) -> Table:
        """Return the whole table, in memory; an array that is taken as it is stays on its disk."""
        if self._file is None:
            rows = self._array.rows
            in_memory = rows[:] if isinstance(rows, ChangedRows) else rows
            return dataclasses.replace(self._array, rows=in_memory)
        if isinstance(self._file, ParquetTable):
            self._file.check_fits()
        return _joined(list(self))

    def read_or_map(self) -> Table:
        """Return the whole table; rows of large files stay on a disk, what is beside them not."""
        if self._file is None:
            return self._array
        if self._file.path.stat().st_size <= N_SPOOLED_BYTES:
            return self.read()
        beside = []

        def rows() -> Iterator[NDArray[np.float32]]:
            for piece in self:
                beside.append(dataclasses.replace(piece, rows=np.empty((0, 1), np.float32)))
                yield piece.rows

        spooled = spool(rows())
        return dataclasses.replace(_joined(beside), rows=spooled)


def read_table(source: str, layout: Layout = _ALL, **wishes: Any) -> Table:
    """Return the table that `source` names; the parameters are those of `TableReader`."""
    return TableReader(source, layout, **wishes).read()


def write_table(path: Path, table: Table) -> None:
    """Write a table by the path's ending."""
    with writing(path) as writer:
        writer.append(table)


def checked_pieces(where: str, rows: Any, gaps: bool) -> Iterator[NDArray[Any]]:
    """Yield the rows of an array a piece at a time; an error names the row."""
    n = n_rows_of_piece(math.prod(rows.shape[1:]))
    # A piece without rows, if there are none, is for the model to refuse.
    for start in range(0, max(1, len(rows)), n):
        part = read_part(rows, start, start + n)
        if part.dtype.kind == "f":
            _check_finite(where, part, start, gaps)
        yield part


def _open(path: Path) -> DelimitedFile | ParquetTable | None:
    """Return the file of a table; anything else is an array."""
    name = path.with_suffix("") if path.suffix == ".gz" else path
    if path.is_file() and name.suffix in DELIMITERS:
        return DelimitedFile(path, DELIMITERS[name.suffix])
    return ParquetTable(path) if path.is_file() and name.suffix == PARQUET else None


def _pieces_of(source: str, table: Table, gaps: bool) -> Iterator[Table]:
    if not table.rows.shape:  # for the model to refuse
        yield table
        return
    start = 0
    for rows in checked_pieces(source, table.rows, gaps):
        part = slice(start, start + len(rows))
        beside = [
            c and Column(c.name, np.array(c.values[part])) for c in (table.index, table.label)
        ]
        yield Table(rows, table.names, *beside)
        start += len(rows)


def _check_finite(where: str, rows: NDArray[Any], start: int, gaps: bool) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):  # NaN and infinity carry over
            return
    faulty = np.argwhere(np.isinf(rows) if gaps else ~np.isfinite(rows))
    if len(faulty):
        row, *column = faulty[0].tolist()
        value = rows[tuple(faulty[0])]
        place = f"{where}, row {start + row} (from 0), column {', '.join(map(str, column))}"
        raise fault_error(place, "NaN" if np.isnan(value) else str(value))


def _joined(pieces: Sequence[Table]) -> Table:
    """Return pieces of a table as one."""

    def column(parts: Sequence[Column | None]) -> Column | None:
        known = [part for part in parts if part is not None]
        return Column(known[0].name, np.concatenate([c.values for c in known])) if known else None

    rows = np.concatenate([piece.rows for piece in pieces])
    index, label = column([p.index for p in pieces]), column([p.label for p in pieces])
    return Table(rows, pieces[0].names, index, label)


def _from_array(source: str, array: NDArray[Any], layout: Layout) -> Table:
    """Return an array as a table; its columns have no names."""
    if (layout.columns, layout.label, layout.index) == (None, None, None):
        return Table(array)
    if array.ndim != 2:
        raise ValueError(f"{source} has the shape {array.shape}, and so no columns to choose from")
    choice = choose(source, None, array.shape[1], layout)
    others = {i: array[:, i] for i in (choice.index, choice.label) if i is not None}
    rows = changed(array, lambda rows: rows[:, choice.features])
    return _assemble(rows, None, choice, others)


def _assemble(
    rows: Any,
    header: Sequence[str] | None,
    choice: Choice,
    values: dict[int, NDArray[Any]],
) -> Table:
    def column(position: int | None, name: str) -> Column | None:
        if position is None:
            return None
        return Column((header[position] if header else "") or name, values[position])

    names = None if header is None else [header[i] for i in choice.features]
    return Table(rows, names, column(choice.index, "index"), column(choice.label, "label"))
