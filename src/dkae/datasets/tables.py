"""Tables: rows of numbers with the names of their columns, and what identifies or labels the rows.

A table is a file .csv, .tsv or .tab, also gzipped, or .parquet; any other array is one without
names. pandas, the extra ``table``, is used where it is installed, and needed for Parquet only.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae._runtime.files import replacing
from dkae.datasets.columns import Choice, Layout, choose
from dkae.datasets.delimited import GAPS, DelimitedFile, GapError, fault_error, write_delimited
from dkae.datasets.errors import DataFileError
from dkae.datasets.files import read_array, write_array
from dkae.datasets.frames import Floats, frame_as_numbers, read_parquet, write_parquet

__all__ = ["Column", "GapError", "Layout", "Table", "read_table", "write_table"]

_DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
_PARQUET = ".parquet"
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
        The features; float32 if they come from a table.
    names : list of str, optional
        Names of the features.
    index, label : Column, optional
        What identifies the rows, and their labels.
    """

    rows: NDArray[Any]
    names: list[str] | None = None
    index: Column | None = None
    label: Column | None = None

    def with_rows(self, rows: NDArray[Any], names: Sequence[str]) -> "Table":
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


def read_table(
    source: str,
    layout: Layout = _ALL,
    *,
    wanted: Sequence[str] | int | None = None,
    or_by_order: bool = False,
    gaps: bool = False,
) -> Table:
    """Return the table that `source` names: a file, or whatever `read_array` takes.

    Parameters
    ----------
    source : str
        A file, whose first line is its header if it has no number in it, or a data set.
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
    """
    path = Path(source)
    ending = _ending(path)
    pick = partial(choose, layout=layout, wanted=wanted, or_by_order=or_by_order)
    if path.is_file() and ending in _DELIMITERS:
        return _read_delimited(DelimitedFile(path, _DELIMITERS[ending]), pick, gaps)
    if path.is_file() and ending == _PARQUET:
        return _read_parquet(path, pick, gaps)
    return _from_array(source, read_array(source), layout)


def write_table(path: Path, table: Table) -> None:
    """Write a table by the path's ending; the index comes first, the label last.

    A .npy or .npz file has the rows alone. A text file has no header if a name is a number, since
    it would be read as a row.
    """
    if path.suffix not in _DELIMITERS and path.suffix != _PARQUET:
        write_array(path, table.rows, table.names or [])
        return
    if table.rows.ndim != 2:
        raise ValueError(
            f"{path} is a table, and rows have the shape {table.rows.shape[1:]}: write .npy"
        )
    columns = _columns_of(table)
    with replacing(path) as temporary:
        if path.suffix == _PARQUET:
            write_parquet(temporary, [(name, _natural(values)) for name, values in columns])
        else:
            write_delimited(temporary, _DELIMITERS[path.suffix], columns)


def _read_delimited(file: DelimitedFile, pick: Callable[..., Choice], gaps: bool) -> Table:
    choice = pick(str(file.path), file.header, file.n_columns)
    others = [i for i in (choice.index, choice.label) if i is not None]
    rows, values = file.read(choice.features, others, gaps=gaps)
    return _assemble(rows, file.header, choice, dict(zip(others, values, strict=True)))


def _read_parquet(path: Path, pick: Callable[..., Choice], gaps: bool) -> Table:
    frame, stored = read_parquet(path)
    header = list(frame.columns)
    choice = pick(str(path), header, len(header))
    rows, text = frame_as_numbers(frame, choice.features)
    if len(rows) == 0:
        raise DataFileError(f"{path} has no rows: expected rows of numbers")
    for position in text:
        column = frame.iloc[:, position]
        kind = "a date" if column.dtype.kind == "M" else "not a number"
        present = column.dropna()
        value = str(present.iloc[0]) if len(present) else ""
        raise fault_error(f"{path}, column {header[position]!r}", value, kind=kind)
    _check_finite(path, rows, [header[i] for i in choice.features], gaps)
    others = [i for i in (choice.index, choice.label) if i is not None]
    table = _assemble(rows, header, choice, {i: frame.iloc[:, i].to_numpy() for i in others})
    if stored is not None and table.index is None:
        return dataclasses.replace(
            table, index=Column(str(stored.name or "index"), stored.to_numpy())
        )
    return table


def _check_finite(path: Path, rows: Floats, names: Sequence[str], gaps: bool) -> None:
    is_faulty = np.isinf(rows) if gaps else ~np.isfinite(rows)
    if not is_faulty.any():
        return
    row, column = np.argwhere(is_faulty)[0]
    value = rows[row, column]
    where = f"{path}, row {row} (from 0), column {names[column]!r}"
    raise fault_error(where, "NaN" if np.isnan(value) else str(value))


def _from_array(source: str, array: NDArray[Any], layout: Layout) -> Table:
    """Return an array as a table; its columns have no names."""
    if (layout.columns, layout.label, layout.index) == (None, None, None):
        return Table(array)
    if array.ndim != 2:
        raise ValueError(f"{source} has the shape {array.shape}, and so no columns to choose from")
    choice = choose(source, None, array.shape[1], layout)
    others = {i: array[:, i] for i in (choice.index, choice.label) if i is not None}
    return _assemble(np.asarray(array[:, choice.features]), None, choice, others)


def _assemble(
    rows: NDArray[Any],
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


def _natural(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers for text that is nothing else, such as identifiers without zeros."""
    if values.dtype != object or not all(isinstance(value, str) for value in values):
        return values
    try:
        numbers = np.array([int(value) for value in values], dtype=np.int64)
    except (ValueError, OverflowError):
        return values
    return numbers if [str(number) for number in numbers] == values.tolist() else values


def _ending(path: Path) -> str:
    name = path.with_suffix("") if path.suffix == ".gz" else path
    return name.suffix
