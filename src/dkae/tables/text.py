"""Text tables, .csv and .tsv, plain or gzipped: read by pyarrow, which needs explicit types.

A first line without any number is the header. Empty lines are no rows.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from dkae.datasets import DataFileError
from dkae.tables.entries import (
    GAPS,
    REMEDY,
    as_matrix,
    fault_error,
    first_fault,
    is_header,
    require_pyarrow,
)

#: Bytes that pyarrow parses at a time; no line may be longer.
BLOCK_BYTES = 2**24
#: Each takes about a kilobyte.
MOST_COLUMNS = 1_000_000

_BOOLEANS = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})
_UNREADABLE = (ValueError, OSError, EOFError, csv.Error, zlib.error)
#: How pyarrow says where an error is.
_FAULT = re.compile(r"(?:In CSV column #(\d+): |CSV parse error: )Row #(\d+): (.*)", re.DOTALL)


class TextTable:
    """A file of lines that all have the same number of fields.

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
        self.header: list[str] | None = None
        self._start = 0
        with self._reading(), self._open() as file:
            records = self._records(file)
            _, first = next(records, (0, []))
            if not first:
                raise DataFileError(f"{path} has no rows: expected a header and rows of numbers")
            if is_header(first):
                self.header, self._start = first, file.tell()
                _, first = next(records, (0, first))
            self._booleans = {i for i, field in enumerate(first) if field in _BOOLEANS}
        self.n_columns = len(self.header or first)
        if self.n_columns > MOST_COLUMNS:
            raise DataFileError(
                f"{path} has {self.n_columns} columns, more than {MOST_COLUMNS}: write it as .npy"
            )

    def pieces(
        self, features: Sequence[int], others: Sequence[int], *, gaps: bool
    ) -> Iterator[tuple[NDArray[np.float32], list[Any]]]:
        """Yield columns of numbers as matrices, and other columns as Arrow arrays of text."""
        start = 0
        with self._reading(), self._open() as file:
            file.seek(self._start)
            for batch in self._batches(file, features, others):
                rows = as_matrix(batch.columns[: len(features)])
                if (fault := first_fault(rows, gaps=gaps)) is not None:
                    where = self._where(start + fault[0] + 1, features[fault[1]])
                    raise fault_error(where, rows[fault])
                yield rows, batch.columns[len(features) :]
                start += len(rows)
        if not start:
            raise self._no_rows()

    def _batches(
        self, file: IO[bytes], features: Sequence[int], others: Sequence[int]
    ) -> Iterator[Any]:
        """Return what pyarrow reads, block after block."""
        import pyarrow
        from pyarrow import csv as arrow_csv

        types = {str(i): pyarrow.string() for i in others} | {
            str(i): pyarrow.bool_() if i in self._booleans else pyarrow.float32() for i in features
        }
        try:
            reader: Iterator[Any] = arrow_csv.open_csv(
                file,
                arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=BLOCK_BYTES,
                    column_names=[str(i) for i in range(self.n_columns)],
                ),
                arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=[str(i) for i in (*features, *others)],
                    null_values=sorted(GAPS),
                    strings_can_be_null=False,  # identifiers and labels are copied as they are
                ),
            )
        except pyarrow.ArrowInvalid as error:
            raise self._no_rows() if "Empty CSV" in str(error) else error from error
        return reader

    def _no_rows(self) -> DataFileError:
        return DataFileError(f"{self.path} has a header and no rows: expected rows of numbers")

    def _open(self) -> IO[bytes]:
        if self.path.suffix == ".gz":
            return cast("IO[bytes]", gzip.open(self.path, "rb"))
        return self.path.open("rb")

    def _records(self, file: IO[bytes], errors: str = "strict") -> Iterator[tuple[int, list[str]]]:
        """Yield the fields of each record, and the line on which it starts."""
        reader, line = csv.reader(_lines(file, errors), delimiter=self.delimiter), 1
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise errors of Python and pyarrow as errors that name the file, line and column."""
        try:
            yield
        except DataFileError:
            raise
        except _UNREADABLE as error:
            raise DataFileError(self._explain(str(error))) from error

    def _explain(self, message: str) -> str:
        if "straddl" in message:
            return f"{self.path} has a line of more than {BLOCK_BYTES} bytes: write it as .npy"
        fault = _FAULT.match(message)
        if fault is None:
            return f"{self.path} is not a table of numbers: {message}"
        column, row, problem = fault[1], int(fault[2]), fault[3]
        if column is None:
            return (
                f"{self._where(row)}: {problem}; a field with {self.delimiter!r} in it needs "
                "double quotes"
            )
        value = problem.partition("invalid value ")[2]
        problem = f"{value} is not a number" if value else problem
        hint = "; a first line with a number in it is not read as a header"
        hint = hint if self.header is None and row == 1 else ""
        return f"{self._where(row, int(column))}: {problem}; {REMEDY}{hint}"

    def _where(self, row: int, column: int | None = None) -> str:
        """Return the place of a row, counted from 1: values may span lines, so it is read again."""
        place = f"row {row}"
        try:
            with self._open() as file:
                n = row - (self.header is None)
                line, _ = next(islice(self._records(file, "replace"), n, None))
                place = f"line {line}"
        except (*_UNREADABLE, StopIteration):
            pass
        if column is None:
            return f"{self.path}, {place}"
        name = column if self.header is None else repr(self.header[column])
        return f"{self.path}, {place}, column {name}"


def _lines(file: IO[bytes], errors: str) -> Iterator[str]:
    """Yield lines of text; a line without an end is an error before it fills the memory."""
    while line := file.readline(BLOCK_BYTES):
        if len(line) == BLOCK_BYTES:
            raise ValueError("straddles blocks")
        yield line.decode("utf-8-sig", errors)
