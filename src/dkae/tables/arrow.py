"""Files of named columns, by pyarrow: .csv and .tsv, plain or gzipped to read, and .parquet."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The endings of text files, and what separates their fields.
DELIMITERS = {".csv": ",", ".tsv": "\t"}
#: Bytes of text that pyarrow parses at a time; no line may be longer.
BLOCK_BYTES = 2**24
#: Each takes about a kilobyte.
MOST_COLUMNS = 1_000_000
#: Bytes of a Parquet column that are read at a time; without it whole row groups are held.
BUFFER_BYTES = 2**16

_BOOLEANS = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})
_REMEDY = "encode it as numbers, leave it out with --drop, or name it with --label or --index"
#: How pyarrow says where an error is.
_FAULT = re.compile(r"(?:In CSV column #(\d+): |CSV parse error: )Row #(\d+): (.*)", re.DOTALL)

Piece = tuple[NDArray[Any], list[Any]]


class Column(NamedTuple):
    """A column with its name, as a NumPy or an Arrow array."""

    name: str
    values: Any


class TextFile:
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

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path, self.delimiter = path, delimiter
        with _reading(self._explain):
            first, second, start = self._first_records()
        self.header = first if _is_header(first) else None
        data = first if self.header is None else second
        self.n_columns = len(first)
        if self.n_columns > MOST_COLUMNS:
            raise ValueError(
                f"{path} has {self.n_columns} columns, more than {MOST_COLUMNS}: write it as .npy"
            )
        if not data:
            raise ValueError(
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
        for batch in self._batches(features, others):
            columns = batch.columns
            yield _matrix(self.path, columns[: len(features)]), columns[len(features) :]

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

    def _batches(self, features: Sequence[int], others: Sequence[int]) -> Iterator[Any]:
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
            strings_can_be_null=False,  # identifiers and labels are copied as they are
        )
        with _reading(self._explain), pyarrow.input_stream(self.path) as stream:
            stream.read(self._start)
            yield from arrow_csv.open_csv(stream, read, parse, convert)

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
        return f"{where}, column {name}: {problem}; {_REMEDY}"


class ParquetFile:
    """The columns of a file.

    Parameters
    ----------
    path : Path
        The file.
    """

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self.path = path
        with _reading(self._explain):
            self._file = parquet.ParquetFile(
                path, buffer_size=BUFFER_BYTES, pre_buffer=False, page_checksum_verification=True
            )
            self.header: list[str] = self._file.schema_arrow.names
        self.n_rows: int = self._file.metadata.num_rows
        self.n_columns = len(self.header)

    def place(self, row: int) -> str:
        """Return where a row is, in words."""
        return f"row {row} (from 0)"

    def pieces(
        self, features: Sequence[int], others: Sequence[int], n_rows: int
    ) -> Iterator[Piece]:
        """Yield columns of numbers as matrices, and other columns as Arrow arrays."""
        names = [self.header[i] for i in (*features, *others)]
        for columns in self._batches(names, n_rows):
            numbers = columns[: len(features)]
            yield _matrix(self.path, numbers, names), columns[len(features) :]

    def _batches(self, names: Sequence[str], n_rows: int) -> Iterator[list[Any]]:
        with _reading(self._explain):
            for batch in self._file.iter_batches(n_rows, columns=names):
                columns = [batch.column(name) for name in names]
                yield [c.dictionary_decode() if hasattr(c, "dictionary") else c for c in columns]

    def _explain(self, message: str) -> str:
        return f"{self.path} cannot be read as Parquet: {message}"


@contextmanager
def _reading(explain: Callable[[str], str]) -> Iterator[None]:
    """Raise errors of Python and pyarrow as errors that name the file."""
    try:
        yield
    except (ValueError, OSError, NotImplementedError, csv.Error) as error:
        raise ValueError(explain(str(error))) from error


def require_pyarrow(path: Path) -> None:
    """Raise if pyarrow is missing."""
    if find_spec("pyarrow") is None:
        raise ValueError(f"{path} needs pyarrow: pip install 'dkae[table]'")


def _matrix(
    path: Path, columns: Sequence[Any], names: Sequence[str] | None = None
) -> NDArray[np.float32]:
    """Return Arrow columns of numbers as rows, with NaN for gaps."""
    import pyarrow

    rows = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    for k, column in enumerate(columns):
        try:
            numbers = column.cast(pyarrow.float32(), safe=False)  # too large becomes infinite
        except (ValueError, NotImplementedError) as error:
            name = names[k] if names else k
            raise ValueError(
                f"{path}, column {name!r}: {column.type} is not a number; {_REMEDY}"
            ) from error
        rows[:, k] = numbers.to_numpy(zero_copy_only=False)
    return rows


def _is_header(fields: Sequence[str]) -> bool:
    """Return whether a first line is a header: not blank, and without a number."""
    return any(field.strip() for field in fields) and not any(map(_is_number, fields))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# --- writing -------------------------------------------------------------------------------------


def write_columns(path: Path, tables: Iterable[Sequence[Column]]) -> int:
    """Write columns below each other, and return how many rows there are.

    The first table decides their types. A text file has no header if a name is a number: it would
    be read as a row.
    """
    pieces = map(_arrow_table, tables)
    first = next(pieces)
    n_rows = 0
    with _writer(path, first.schema) as writer:
        for piece in chain([first], pieces):
            writer.write_table(piece)
            n_rows += len(piece)
    return n_rows


def _arrow_table(columns: Sequence[Column]) -> Any:
    import pyarrow

    names = [column.name for column in columns]
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise ValueError(f"two columns would have the name {twice[0]!r}: rename the column")
    values = [np.ascontiguousarray(v) if isinstance(v, np.ndarray) else v for _, v in columns]
    return pyarrow.table([pyarrow.array(v) for v in values], names)


def _writer(path: Path, schema: Any) -> Any:
    """Return the writer of pyarrow for these columns."""
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    if path.suffix == ".parquet":
        return parquet.ParquetWriter(path, schema, write_page_checksum=True)
    options = arrow_csv.WriteOptions(
        include_header=_is_header(schema.names), delimiter=DELIMITERS[path.suffix]
    )
    return arrow_csv.CSVWriter(path, schema, write_options=options)
