"""Tables are read and written a piece at a time, in the format of the path's ending."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae._support.arrays import MOST
from dkae._support.checks import check_number
from dkae.files import replacing
from dkae.rows import RowArray
from dkae.tables.arrays import ArrayFile, write_array
from dkae.tables.arrow import (
    DELIMITERS,
    Column,
    ParquetFile,
    TextFile,
    require_pyarrow,
    write_columns,
)
from dkae.tables.columns import Header, choose

#: Numbers of a table that are read at a time.
N_PIECE_NUMBERS = 2**22


@dataclass(frozen=True)
class Table:
    """Rows of numbers and the columns that go with them.

    Parameters
    ----------
    rows : array of shape (n, ...)
        The features, float32 if they come from a file of columns. They may be on disk.
    names : sequence of str, optional
        Names of the features; in files x0, x1, ... by default.
    index, label : Column, optional
        A column that identifies the rows, and one of labels.
    """

    rows: Any
    names: Sequence[str] | None = None
    index: Column | None = None
    label: Column | None = None

    def columns(self) -> list[Column]:
        """Return all columns: the index first, and the label last."""
        if self.rows.ndim != 2:
            raise ValueError(
                f"rows of the shape {self.rows.shape[1:]} are no table with columns: write .npy"
            )
        names = self.names
        if names is None:
            names = [f"x{i}" for i in range(self.rows.shape[1])]
        features = [Column(name, values) for name, values in zip(names, self.rows.T, strict=True)]
        return [*filter(None, [self.index]), *features, *filter(None, [self.label])]

    def labels(self) -> NDArray[Any] | None:
        """Return the labels: numbers if all of them are, else objects; NaN or None for a gap."""
        if self.label is None:
            return None
        values = np.asarray(self.label.values)
        if values.dtype != object:
            return values
        from pyarrow.csv import ConvertOptions

        gaps = {None, *ConvertOptions().null_values}  # as in features
        known = [None if value in gaps else value for value in values.tolist()]
        try:
            return np.array([np.nan if value is None else float(value) for value in known])
        except (TypeError, ValueError):
            return np.array(known, dtype=object)


class TableReader:
    """A table that is read a piece at a time, as often as it is iterated over.

    Parameters
    ----------
    source : str
        A file .csv, .tsv (also .gz), .parquet or .npy, or a built-in data set.
    wanted : sequence of str or int, optional
        Names of the features of a model, or how many it has.
    gaps : bool, default=False
        Whether gaps are NaN. If not, they are an error.
    scale : float, default=1
        A number that features are divided by.
    columns, drop, label, index : str, optional
        Which columns are features, label and index; see `choose`. By default all are features.
    """

    def __init__(
        self,
        source: str,
        *,
        wanted: Sequence[str] | int | None = None,
        gaps: bool = False,
        scale: float = 1.0,
        **layout: str | None,
    ) -> None:
        self.source, self.gaps = source, gaps
        self.scale = check_number("--scale", scale, 1 / MOST, MOST)
        self._file = file = _open(source)
        self.n_rows: int | None = file.n_rows
        self._features: list[int] | None = None
        self._special: dict[str, int] = {}
        self.unused: list[str] = []
        if isinstance(file, ArrayFile):
            if set(layout.values()) <= {None}:
                return  # the model checks the shape
            if file.array.ndim != 2:
                raise ValueError(f"{source} has the shape {file.array.shape}: no columns")
        header = Header(source, file.header, file.n_columns)
        self._features, self._special, self.unused = choose(header, wanted, **layout)

    def __iter__(self) -> Iterator[Table]:
        features, header = self._features, self._file.header
        names = None if header is None or features is None else [header[i] for i in features]
        width = self._file.n_columns if features is None else len(features)
        start, n_rows = 0, max(1, N_PIECE_NUMBERS // max(1, width))
        file: Any = self._file
        for rows, values in file.pieces(features, list(self._special.values()), n_rows):
            if self.scale != 1:
                rows = rows.astype(np.float32) / np.float32(self.scale)
            self._check(rows, start)
            columns = {
                name: Column((header[i] if header else "") or name, column)
                for (name, i), column in zip(self._special.items(), values, strict=True)
            }
            yield Table(rows, names, **columns)
            start += len(rows)
        if not start:
            raise ValueError(f"{self.source} has no rows: expected rows of numbers")

    def read(self) -> Table:
        """Return the whole table, whose rows are mapped from their file or from a temporary one."""
        if self._features is None:
            array: Any = self._file.array  # type: ignore[union-attr]
            return Table(
                array if self.scale == 1 else RowArray(array, scale=self.scale, missing=self.gaps)
            )
        parts, n_rows = [], 0
        try:
            with tempfile.TemporaryFile() as file:
                for part in self:
                    file.write(np.ascontiguousarray(part.rows).data)
                    parts.append(dataclasses.replace(part, rows=part.rows[:0]))
                    n_rows += len(part.rows)
                file.flush()
                rows = np.memmap(file, part.rows.dtype, "r", shape=(n_rows, part.rows.shape[1]))
        except OSError as error:
            raise OSError(
                f"rows do not fit into {tempfile.gettempdir()} ({error.strerror}), where they are "
                "kept meanwhile: set TMPDIR to a folder with more space"
            ) from error
        index, label = (_joined([getattr(p, name) for p in parts]) for name in ("index", "label"))
        return Table(rows, part.names, index, label)

    def _check(self, rows: NDArray[Any], start: int) -> None:
        """Raise if an entry is infinite, or a gap unless they are allowed."""
        if rows.dtype.kind != "f":
            return
        faulty = np.isinf(rows) if self.gaps else ~np.isfinite(rows)
        if not faulty.any():
            return
        i, *axes = np.argwhere(faulty)[0].tolist()
        header = self._file.header
        columns = [c if self._features is None else self._features[c] for c in axes]
        column = ", ".join(str(c) if header is None else repr(header[c]) for c in columns)
        where = f"{self.source}, {self._file.place(start + i)}, column {column}"
        value = rows[(i, *axes)]
        if np.isnan(value):
            raise ValueError(
                f"{where}: a gap; fill it, leave out its row, leave out its column with --drop, or "
                "fit the model with --set missing=mask"
            )
        raise ValueError(
            f"{where}: {value} is not finite in float32; correct it, leave out its row, or leave "
            "out its column with --drop"
        )


def _joined(parts: Sequence[Column | None]) -> Column | None:
    columns = [part for part in parts if part is not None]
    if not columns:
        return None
    return Column(columns[0].name, np.concatenate([column.values for column in columns]))


def _open(source: str) -> ArrayFile | TextFile | ParquetFile:
    path = Path(source)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if not path.is_file() or (suffix not in DELIMITERS and path.suffix != ".parquet"):
        return ArrayFile(source)
    require_pyarrow(path)
    return TextFile(path, DELIMITERS[suffix]) if suffix in DELIMITERS else ParquetFile(path)


def write(path: Path, tables: Iterable[Table]) -> int:
    """Write tables below each other, and return how many rows there are.

    In a file of columns the index comes first and the label last; a .npy file has the rows without
    them. The file appears when it is complete.
    """
    if path.suffix != ".npy":
        require_pyarrow(path)
    with replacing(path) as temporary:
        if path.suffix == ".npy":
            return write_array(temporary, (table.rows for table in tables))
        return write_columns(temporary, (table.columns() for table in tables))
