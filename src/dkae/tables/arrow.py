"""Files of named columns, read by pyarrow: .csv and .tsv, plain or gzipped, and .parquet."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.datasets import DataFileError
from dkae.tables.table import GAPS, is_header

#: Bytes of text that pyarrow parses at a time; no line may be longer.
BLOCK_BYTES = 2**24
#: Each takes about a kilobyte.
MOST_COLUMNS = 1_000_000
#: Bytes of a Parquet column that are read at a time; without it whole row groups are held.
BUFFER_BYTES = 2**16
#: What you can do about a column that holds no numbers.
REMEDY = "encode it as numbers, leave it out with --drop, or name it with --label or --index"

_BOOLEANS = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})
#: How pyarrow says where an error is.
_FAULT = re.compile(r"(?:In CSV column #(\d+): |CSV parse error: )Row #(\d+): (.*)", re.DOTALL)
#: The name that pandas gives to an index without one.
_UNNAMED = re.compile(r"__index_level_\d+__")

Piece = tuple[NDArray[Any], list[Any]]


class TextTable:
    """A file of lines that all have the same number of fields.

    The first line is a header if it has no number in it. Empty lines are no rows.

    Parameters
    ----------
    path : Path
        The file, gzipped if it ends in .gz.
    delimiter : str
        The character between two fields.
    """

    n_rows = None  # known only after reading
    index = None

    def __init__(self, path: Path, delimiter: str) -> None:
        require_pyarrow(path)
        self.path, self.delimiter = path, delimiter
        with _reading(self._explain):
            first, second, start = self._first_records()
        self.header = first if is_header(first) else None
        data = first if self.header is None else second
        self.n_columns = len(first)
        if self.n_columns > MOST_COLUMNS:
            raise DataFileError(
                f"{path} has {self.n_columns} columns, more than {MOST_COLUMNS}: write it as .npy"
            )
        if not data:
            raise DataFileError(
                f"{path} has no rows: expected rows of numbers, in lines of at most {BLOCK_BYTES} "
                "bytes"
            )
        self._start = 0 if self.header is None else start
        self._booleans = {i for i, field in enumerate(data) if field in _BOOLEANS}

    def place(self, row: int) -> str:
        """Return where a row is, in words."""
        if self.header is None:
            return f"row {row + 1} (from 1)"
        return f"row {row + 2} (the header is row 1)"

    def pieces(
        self, features: Sequence[int], others: Sequence[int], n_rows: int
    ) -> Iterator[Piece]:
        """Yield columns of numbers as matrices, and other columns as Arrow arrays of text."""
        import pyarrow

        with _reading(self._explain), pyarrow.input_stream(self.path) as stream:
            for batch in self._batches(stream, features, others):
                yield _matrix(batch.columns[: len(features)]), batch.columns[len(features) :]

    def _first_records(self) -> tuple[list[str], list[str], int]:
        """Return the fields of the first two lines that are not empty, and where the first ends."""
        import pyarrow

        with pyarrow.input_stream(self.path) as stream:
            head = io.BytesIO(stream.read(BLOCK_BYTES))
        if head.read(3) != codecs.BOM_UTF8:
            head.seek(0)
        # Any byte can be decoded: the rows are checked when they are read.
        lines = (line.decode("utf-8", "surrogateescape") for line in head)
        records = filter(None, csv.reader(lines, delimiter=self.delimiter))
        first, start = next(records, []), head.tell()
        "".join(first).encode()  # raises if the header is not UTF-8
        return first, next(records, []), start

    def _batches(self, stream: Any, features: Sequence[int], others: Sequence[int]) -> Any:
        import pyarrow
        from pyarrow import csv as arrow_csv

        types = {str(i): pyarrow.string() for i in others} | {
            str(i): pyarrow.bool_() if i in self._booleans else pyarrow.float32() for i in features
        }
        read = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=BLOCK_BYTES,
            column_names=[str(i) for i in range(self.n_columns)],
        )
        parse = arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True)
        convert = arrow_csv.ConvertOptions(
            column_types=types,
            include_columns=[str(i) for i in (*features, *others)],
            null_values=sorted(GAPS),
            strings_can_be_null=False,  # identifiers and labels are copied as they are
        )
        stream.read(self._start)
        return arrow_csv.open_csv(stream, read, parse, convert)

    def _explain(self, message: str) -> str:
        if "straddl" in message:
            return f"{self.path} has a line of more than {BLOCK_BYTES} bytes: write it as .npy"
        fault = _FAULT.match(message)
        if fault is None:
            return f"{self.path} is not a table of numbers: {message}"
        column, row, problem = fault[1], int(fault[2]) - 1, fault[3]
        where = f"{self.path}, {self.place(row)}"
        if column is None:
            return f"{where}: {problem}; a field with {self.delimiter!r} in it needs double quotes"
        name = column if self.header is None else repr(self.header[int(column)])
        value = problem.partition("invalid value ")[2]
        problem = f"{value} is not a number" if value else problem
        if self.header is None and row == 0:
            problem += "; a first line with a number in it is not read as a header"
        return f"{where}, column {name}: {problem}; {REMEDY}"


class ParquetTable:
    """The columns of a file; the index that pandas stored with them is the index.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        require_pyarrow(path)
        from pyarrow import parquet

        self.path = path
        with _reading(self._explain):
            self._file = parquet.ParquetFile(
                path, buffer_size=BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
            )
            self._schema = self._file.schema_arrow
        self.n_rows: int = self._file.metadata.num_rows
        self.header: list[str] = self._schema.names
        self.n_columns = len(self.header)
        self.index = _stored_index(self._schema)
        if self.index is not None and _UNNAMED.fullmatch(self.header[self.index]):
            self.header[self.index] = ""

    def place(self, row: int) -> str:
        """Return where a row is, in words."""
        return f"row {row} (from 0)"

    def pieces(
        self, features: Sequence[int], others: Sequence[int], n_rows: int
    ) -> Iterator[Piece]:
        """Yield columns of numbers as matrices, and other columns as Arrow arrays."""
        self._check_types(features)
        names = [self._schema.names[i] for i in (*features, *others)]
        with _reading(self._explain):
            for batch in self._file.iter_batches(n_rows, columns=names):
                columns = [batch.column(name) for name in names]
                plain = [c.dictionary_decode() if hasattr(c, "dictionary") else c for c in columns]
                yield _matrix(plain[: len(features)]), plain[len(features) :]

    def _check_types(self, features: Sequence[int]) -> None:
        from pyarrow import types

        kinds = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        for i in features:
            kind = self._schema.field(i).type
            value = kind.value_type if types.is_dictionary(kind) else kind
            if not any(check(value) for check in (*kinds, types.is_null)):
                raise DataFileError(
                    f"{self.path}, column {self.header[i]!r}: {value} is not a number; {REMEDY}"
                )

    def _explain(self, message: str) -> str:
        return f"{self.path} cannot be read as Parquet: {message}"


@contextmanager
def _reading(explain: Callable[[str], str]) -> Iterator[None]:
    """Raise errors of Python and pyarrow as errors that name the file."""
    try:
        yield
    except (ValueError, OSError, NotImplementedError, csv.Error) as error:
        raise DataFileError(explain(str(error))) from error


def require_pyarrow(path: Path) -> None:
    """Raise if pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise DataFileError(f"{path} needs pyarrow: pip install 'dkae[table]'")


def _matrix(columns: Sequence[Any]) -> NDArray[np.float32]:
    """Return Arrow columns of numbers as rows, with NaN for gaps."""
    import pyarrow

    rows = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    for k, column in enumerate(columns):
        numbers = column.cast(pyarrow.float32(), safe=False)  # too large becomes infinite
        rows[:, k] = numbers.to_numpy(zero_copy_only=False)
    return rows


def _stored_index(schema: Any) -> int | None:
    """Return the position of the index that pandas has stored; its metadata may hold anything."""
    try:
        stored = [level for level in schema.pandas_metadata["index_columns"] if level is not None]
        positions = [schema.names.index(level) for level in stored]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return positions[0] if len(positions) == 1 else None
