"""Parquet files, read and written a piece at a time; they need pandas and pyarrow.

The index that pandas stores with a frame is a column that is no feature. Row numbers from 0 are no
index.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dkae.datasets.errors import DataFileError
from dkae.datasets.fields import fault_error
from dkae.datasets.frames import INSTALL, Floats, frame_as_numbers, require_pandas
from dkae.datasets.sizes import check_fits, n_rows_of_piece

#: Bytes of a column that are read at a time: else all columns of all row groups so far are held.
_BUFFER = 2**16
_UNNAMED = re.compile(r"__index_level_\d+__")


class ParquetTable:
    """The columns of a file, and after them the index that is stored with it, if there is one.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with _reading(path):
            from pyarrow import parquet

            self._file = parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
            self._schema = self._file.schema_arrow
            stored = (self._schema.pandas_metadata or {}).get("index_columns", [])
        self.n_rows: int = self._file.metadata.num_rows
        names: list[str] = self._schema.names
        #: Levels of the index that are not stored, but described: they stand after all columns.
        self._ranges: list[Any] = [level for level in stored if isinstance(level, dict)]
        levels = [names.index(level) for level in stored if level in names]
        levels += range(len(names), len(names) + len(self._ranges))
        columns = [i for i in range(len(names)) if i not in levels]
        if len(levels) > 1:  # columns like others
            columns, levels = [*levels, *columns], []
        #: Names of the columns, without the index.
        self.header = [self._name(i, f"level_{k}") for k, i in enumerate(columns)]
        #: Where a column stands in the file.
        self._places = [*columns, *levels]
        #: Name of the index; None if there is none.
        self.index_name = self._find_index(levels)

    def check_fits(self) -> None:
        """Refuse a table that is larger than the memory of this machine."""
        n_bytes = self.n_rows * self._file.metadata.num_columns * np.float32().nbytes
        check_fits(self.path, n_bytes)

    def pieces(
        self, features: Sequence[int], others: Sequence[int], *, gaps: bool
    ) -> Iterator[tuple[Floats, list[NDArray[Any]]]]:
        """Yield columns of numbers as matrices, and other columns as they are.

        With `gaps`, a gap is NaN; else it is an error, as is any text.
        """
        if self.n_rows == 0:
            raise DataFileError(f"{self.path} has no rows: expected rows of numbers")
        nullable = {i for i in others if self._is_whole_with_gaps(i)}
        places = [self._places[i] for i in features]
        start = 0
        for batch in self._batches():
            frame = self._frame(batch, start)
            rows, text = frame_as_numbers(frame, places)
            for place in text:
                self._refuse_text(frame.iloc[:, place], self.header[self._places.index(place)])
            self._check_finite(rows, [self.header[i] for i in features], start, gaps)
            yield rows, [self._values(batch, frame, i, i in nullable) for i in others]
            start += len(rows)

    def _name(self, place: int, unnamed: str) -> str:
        if place >= len(self._schema.names):
            return str(self._ranges[place - len(self._schema.names)].get("name") or unnamed)
        name: str = self._schema.names[place]
        return unnamed if _UNNAMED.fullmatch(name) else name

    def _find_index(self, levels: Sequence[int]) -> str | None:
        if not levels:
            return None
        name = self._name(levels[0], "")
        return None if not name and self._holds_row_numbers(levels[0]) else name

    def _batches(self, *places: int) -> Iterator[Any]:
        """Yield rows as they come, of all columns or of some."""
        names = [self._schema.names[i] for i in places]
        n = n_rows_of_piece(len(places) or len(self._schema.names))
        with _reading(self.path):
            yield from self._file.iter_batches(batch_size=n, columns=names or None)

    def _frame(self, batch: Any, start: int) -> Any:
        """Return rows as a frame; levels that are described come last."""
        frame = batch.to_pandas(ignore_metadata=True)
        numbers = np.arange(start, start + len(frame), dtype=np.int64)
        for k, level in enumerate(self._ranges):
            values = level["start"] + level["step"] * numbers
            frame.insert(frame.shape[1], f"range {k}", values, allow_duplicates=True)
        return frame

    def _holds_row_numbers(self, place: int) -> bool:
        if self._ranges:
            return (self._ranges[0]["start"], self._ranges[0]["step"]) == (0, 1)
        start = 0
        for batch in self._batches(place):
            values = batch.column(0).to_numpy(zero_copy_only=False)
            if not np.array_equal(values, np.arange(start, start + len(values))):
                return False
            start += len(values)
        return True

    def _is_whole_with_gaps(self, position: int) -> bool:
        """Say whether pandas would make floats or objects of whole numbers, in some pieces."""
        from pyarrow import types

        place = self._places[position]
        if place >= len(self._schema.names):
            return False
        kind = self._schema.types[place]
        if not (types.is_integer(kind) or types.is_boolean(kind)):
            return False
        return any(batch.column(0).null_count for batch in self._batches(place))

    def _values(self, batch: Any, frame: Any, position: int, is_nullable: bool) -> NDArray[Any]:
        place = self._places[position]
        if is_nullable:
            return np.array(batch.column(place).to_pylist(), dtype=object)
        column = frame.iloc[:, place]
        values: NDArray[Any] = column.to_numpy()
        if values.dtype == object:
            values = np.where(column.isna(), np.array(None), values)
        return values

    def _refuse_text(self, column: Any, name: str) -> None:
        kind = "a date" if column.dtype.kind == "M" else "not a number"
        present = column.dropna()
        value = str(present.iloc[0]) if len(present) else ""
        raise fault_error(f"{self.path}, column {name!r}", value, kind=kind)

    def _check_finite(self, rows: Floats, names: Sequence[str], start: int, gaps: bool) -> None:
        is_faulty = np.isinf(rows) if gaps else ~np.isfinite(rows)
        if is_faulty.any():
            row, column = np.argwhere(is_faulty)[0]
            where = f"{self.path}, row {start + row} (from 0), column {names[column]!r}"
            value = rows[row, column]
            raise fault_error(where, "NaN" if np.isnan(value) else str(value))


class ParquetWriter:
    """Writes columns whose pieces come one by one.

    Text that is nothing but whole numbers, such as identifiers without zeros, is written as
    numbers. If it is not so in a later piece, what is written is written anew, as text.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        require_pandas(path)
        try:
            import pyarrow.parquet  # noqa: F401
        except ImportError as error:
            raise DataFileError(f"{path} needs pyarrow: {INSTALL}") from error
        self.path = path
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def append(self, columns: Sequence[tuple[str, NDArray[Any]]]) -> None:
        """Write rows below those that are there."""
        import pyarrow

        arrays = [pyarrow.array(_natural(values), from_pandas=True) for _, values in columns]
        table = pyarrow.table(arrays, [name for name, _ in columns])
        if self._writer is None:
            self._open(table.schema)
        schema = _common(self._writer.schema, table.schema)
        if schema != self._writer.schema:
            self._write_anew(schema)
        self._writer.write_table(table.cast(schema))

    def _open(self, schema: Any) -> None:
        from pyarrow import parquet

        self._writer = parquet.ParquetWriter(self.path, schema)

    def _write_anew(self, schema: Any) -> None:
        from pyarrow import Table, parquet

        self._writer.close()
        # Named so that it is found as a leftover, should the process be killed.
        old = self.path.with_name(f"{self.path.stem}_old{self.path.suffix}")
        self.path.replace(old)
        try:
            self._open(schema)
            with parquet.ParquetFile(old) as file:
                for batch in file.iter_batches():
                    self._writer.write_table(Table.from_batches([batch]).cast(schema))
        finally:
            old.unlink()


def _common(old: Any, new: Any) -> Any:
    """Return types that hold the columns of two pieces."""
    import pyarrow

    fields = []
    for a, b in zip(old, new, strict=True):
        kinds = {a.type, b.type} - {pyarrow.null()} or {pyarrow.null()}
        if kinds == {pyarrow.int64(), pyarrow.string()}:
            kinds = {pyarrow.string()}
        if len(kinds) > 1:
            raise ValueError(
                f"column {a.name!r} holds {a.type} in some rows and {b.type} in others: give all "
                "of them one type, or leave it out"
            )
        fields.append(pyarrow.field(a.name, kinds.pop()))
    return pyarrow.schema(fields)


def _natural(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers for text that is nothing else, such as identifiers without zeros."""
    if values.dtype != object or not all(isinstance(value, str) for value in values):
        return values
    try:
        numbers = np.array([int(value) for value in values], dtype=np.int64)
    except (ValueError, OverflowError):
        return values
    return numbers if [str(number) for number in numbers] == values.tolist() else values


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say of errors of pyarrow which file they are of, and of a lack of it how to get it."""
    require_pandas(path)
    try:
        yield
    except ImportError as error:
        raise DataFileError(f"{path} needs pyarrow: {INSTALL}") from error
    except DataFileError:
        raise
    except (ValueError, OSError, NotImplementedError) as error:
        raise DataFileError(f"{path} cannot be read as Parquet: {error}") from error
