"""Tables are read a piece at a time, from any file or data set."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae._support.arrays import MOST
from dkae._support.checks import check_number
from dkae.datasets import DataFileError
from dkae.rows import RowArray
from dkae.tables.arrays import ArrayTable
from dkae.tables.arrow import ParquetTable, TextTable
from dkae.tables.columns import Choice, Header, Layout, choose
from dkae.tables.table import DELIMITERS, Column, Table, join

#: Numbers of a table that are read at a time.
N_PIECE_NUMBERS = 2**22
#: More rows than this are not held in memory.
HELD_BYTES = 2**28
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
        self.scale = check_number("--scale", scale, 1 / MOST, MOST)
        self._file = file = _open(source)
        self._choice = Choice()
        if isinstance(file, ArrayTable):
            if layout == _ALL:
                return
            wanted = None
            if file.array.ndim != 2:
                raise ValueError(f"{source} has the shape {file.array.shape}: no columns")
        header = Header(source, file.header, file.n_columns, file.index)
        self._choice = choose(header, layout, wanted, by_order=by_order)

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
        features: Any = choice.features
        names = None if header is None else [header[i] for i in features]
        given = {"index": choice.index, "label": choice.label}
        special = {name: i for name, i in given.items() if i is not None}
        width = self._file.n_columns if features is None else len(features)
        start, n_rows = 0, max(1, N_PIECE_NUMBERS // max(1, width))
        for rows, values in self._file.pieces(features, list(special.values()), n_rows):
            scaled = self._scaled(rows)
            self._check(scaled, start)
            columns = {
                name: Column((header[i] if header else "") or name, column)
                for (name, i), column in zip(special.items(), values, strict=True)
            }
            yield Table(scaled, names, **columns)
            start += len(rows)
        if not start:
            raise DataFileError(f"{self.source} has no rows: expected rows of numbers")

    def read(self) -> Table:
        """Return the whole table; a .npy file stays mapped, and many rows are kept on disk."""
        if self._choice.features is None:
            array: Any = self._file.array  # type: ignore[union-attr]
            return Table(
                array if self.scale == 1 else RowArray(array, scale=self.scale, missing=self.gaps)
            )
        pieces, held, n_bytes = iter(self), [], 0
        for piece in pieces:
            held.append(piece)
            n_bytes += piece.rows.nbytes
            if n_bytes > HELD_BYTES:
                return _on_disk(chain(held, pieces))
        return join(held)

    def _check(self, rows: NDArray[Any], start: int) -> None:
        """Raise if an entry is infinite, or a gap unless they are allowed."""
        if rows.dtype.kind != "f":
            return
        faulty = np.isinf(rows) if self.gaps else ~np.isfinite(rows)
        if not faulty.any():
            return
        i, *axes = np.argwhere(faulty)[0].tolist()
        features, header = self._choice.features, self._file.header
        columns = [c if features is None else features[c] for c in axes]
        column = ", ".join(str(c) if header is None else repr(header[c]) for c in columns)
        where = f"{self.source}, {self._file.place(start + i)}, column {column}"
        value = rows[(i, *axes)]
        if np.isnan(value):
            raise DataFileError(
                f"{where}: a gap; fill it, leave out its row, leave out its column with --drop, or "
                "fit the model with --set missing=mask"
            )
        raise DataFileError(
            f"{where}: {value} is not finite in float32; correct it, leave out its row, or leave "
            "out its column with --drop"
        )

    def _scaled(self, rows: NDArray[Any]) -> NDArray[Any]:
        if self.scale == 1:
            return rows
        numbers = rows if rows.dtype == np.float64 else rows.astype(np.float32, copy=False)
        return np.asarray(numbers / numbers.dtype.type(self.scale))


def _open(source: str) -> TextTable | ParquetTable | ArrayTable:
    path = Path(source)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if path.is_file() and suffix in DELIMITERS:
        return TextTable(path, DELIMITERS[suffix])
    is_parquet = path.is_file() and path.suffix == ".parquet"
    return ParquetTable(path) if is_parquet else ArrayTable(source)


def _on_disk(pieces: Iterable[Table]) -> Table:
    """Return a table whose rows are in a file without a name, which is removed with them."""
    beside, n_rows = [], 0
    with tempfile.TemporaryFile() as file:
        for piece in pieces:
            try:
                file.write(np.ascontiguousarray(piece.rows).data)
                file.flush()
            except OSError as error:
                raise OSError(
                    f"rows do not fit into {tempfile.gettempdir()} ({error.strerror}), where they "
                    "are kept meanwhile: set TMPDIR to a folder with more space"
                ) from error
            n_rows += len(piece.rows)
            beside.append(dataclasses.replace(piece, rows=piece.rows[:0]))
        shape = (n_rows, piece.rows.shape[1])
        rows = np.memmap(file, piece.rows.dtype, mode="r", shape=shape)
    return dataclasses.replace(join(beside), rows=rows)
