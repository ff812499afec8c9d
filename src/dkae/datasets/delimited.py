"""Text files of columns, .csv and .tsv: read by pandas where it is installed, else by NumPy.

A first line without any number is the header. Blank lines do not count as rows. A file may be
gzipped.
"""

import csv
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.datasets.errors import DataFileError
from dkae.datasets.fields import BOOLEANS, GAPS, fault_error, is_fine, number_or_nan
from dkae.datasets.files import is_header
from dkae.datasets.frames import INSTALL, Floats, frame_as_numbers, import_pandas
from dkae.datasets.lines import Lines, open_lines
from dkae.datasets.sizes import N_PIECE_NUMBERS

#: Numbers that are read at a time: only so many are ever held in float64.
_CHUNK = N_PIECE_NUMBERS
#: Each takes a tenth of a millisecond, and a kilobyte.
_MOST_COLUMNS = 1_000_000

#: Rows of numbers, and the text of each column beside them.
Piece = tuple[Floats, list[NDArray[Any]]]

_UNREADABLE = (ValueError, OSError, EOFError, csv.Error, zlib.error)


class Fault(NamedTuple):
    """A field that is not a finite number: where it stands, and what is wrong with it."""

    line: int
    position: int
    #: None if the line ends before the field.
    text: str | None


class DelimitedFile:
    """A file of lines with as many fields each.

    Parameters
    ----------
    path : Path
        The file.
    delimiter : str
        What stands between two fields.
    """

    def __init__(self, path: Path, delimiter: str) -> None:
        self.path = path
        self.delimiter = delimiter
        self.header: list[str] | None = None
        self.n_header_lines = 0
        try:
            with open_lines(self.path) as file:
                reader = csv.reader(file, delimiter=delimiter)
                first = next((fields for fields in reader if not _is_blank(fields)), [])
                if is_header(first):
                    self.header, self.n_header_lines = first, reader.line_num
        except DataFileError:
            raise
        except _UNREADABLE as error:
            raise DataFileError(f"{path} is not a table of numbers: {error}") from error
        if not first:
            raise DataFileError(f"{path} has no rows: expected a header, and rows of numbers")
        if len(first) > _MOST_COLUMNS:
            raise DataFileError(
                f"{path} has {len(first)} columns: expected {_MOST_COLUMNS} at most; write so wide "
                "a table as .npy"
            )
        self.n_columns = len(first)

    def pieces(
        self, features: Sequence[int], others: Sequence[int], *, gaps: bool
    ) -> Iterator[Piece]:
        """Yield columns of numbers as matrices, and other columns as the text of their fields.

        With `gaps`, a field without a number is NaN; else it is an error, as is any text.
        """
        read = self._read_plainly if import_pandas() is None else self._read_by_pandas
        is_empty = True
        try:
            for rows, values in read(features, others, gaps):
                self._check_finite(rows, features, gaps)
                is_empty = is_empty and len(rows) == 0
                yield rows, values
        except DataFileError:
            raise
        except _UNREADABLE as error:
            self._check_fields(features, gaps, booleans=import_pandas() is not None)
            raise DataFileError(f"{self.path} is not a table of numbers: {error}") from error
        if is_empty:
            raise DataFileError(f"{self.path} has a header and no rows: expected rows of numbers")

    def name_of(self, position: int) -> str:
        """Return how to speak of a column."""
        return str(position) if self.header is None else repr(self.header[position])

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows below the header as text, each with the number of its first line."""
        with open_lines(self.path) as file:
            reader = csv.reader(file, delimiter=self.delimiter)
            line = 1
            for fields in reader:
                if line > self.n_header_lines and not _is_blank(fields):
                    yield line, fields
                line = reader.line_num + 1

    def _read_by_pandas(
        self, features: Sequence[int], others: Sequence[int], gaps: bool
    ) -> Iterator[Piece]:
        with open_lines(self.path) as file:
            reader = _strictly(lambda: self._open_by_pandas(file, features, others))
            while (chunk := _strictly(lambda: next(reader, None))) is not None:
                numbers, text = frame_as_numbers(chunk, features)
                self._check_no_text(text, gaps)
                yield numbers, [chunk[i].fillna("").to_numpy(object) for i in others]

    def _open_by_pandas(self, file: Lines, features: Sequence[int], others: Sequence[int]) -> Any:
        return import_pandas().read_csv(
            file,
            sep=self.delimiter,
            header=None if self.header is None else 0,
            names=range(self.n_columns),
            index_col=False,
            dtype=dict.fromkeys(others, str),
            # Only for features: the names of rows are copied as they are.
            na_values=dict.fromkeys(features, sorted(GAPS)),
            keep_default_na=False,
            low_memory=False,
            chunksize=self._n_rows_of_piece,
        )

    def _read_plainly(
        self, features: Sequence[int], others: Sequence[int], gaps: bool
    ) -> Iterator[Piece]:
        records = self.records()
        with open_lines(self.path) as file:
            lines, n_skipped, n_rows = iter(file), self.n_header_lines, self._n_rows_of_piece
            while len(rows := self._load(lines, features, gaps, n_skipped)):
                yield rows, self._text_of(islice(records, len(rows)) if others else (), others)
                if len(rows) < n_rows:
                    break
                n_skipped = 0

    def _load(
        self, lines: Iterator[str], features: Sequence[int], gaps: bool, n_skipped: int
    ) -> Floats:
        """Return the next rows, by NumPy."""
        is_whole = len(features) == self.n_columns  # NumPy then notices a line that is too long
        with warnings.catch_warnings(), np.errstate(over="ignore"):
            warnings.filterwarnings("ignore", message=".*input.* contained no data")
            rows: Floats = np.loadtxt(
                lines,
                delimiter=self.delimiter,
                dtype=np.float32,
                ndmin=2,
                skiprows=n_skipped,
                max_rows=self._n_rows_of_piece,
                usecols=None if is_whole else features,
                comments=None,
                quotechar='"',
                converters=number_or_nan if gaps else None,
                encoding=None,
            )
        if rows.size == 0:
            return np.empty((0, len(features)), dtype=np.float32)
        if is_whole and rows.shape[1] != self.n_columns:
            raise ValueError(f"rows have {rows.shape[1]} fields, the header {self.n_columns}")
        return rows[:, features] if is_whole else rows

    def _text_of(
        self, records: Iterable[tuple[int, list[str]]], others: Sequence[int]
    ) -> list[NDArray[Any]]:
        """Return the text of columns; a line may end before them, but have no more."""
        values = []
        for _, fields in records:
            if len(fields) > self.n_columns:
                raise ValueError(f"a row has {len(fields)} fields")
            values.append([fields[i] if i < len(fields) else "" for i in others])
        return list(np.array(values, dtype=object).T)

    @property
    def _n_rows_of_piece(self) -> int:
        return max(1, _CHUNK // self.n_columns)

    def _check_finite(self, rows: Floats, features: Sequence[int], gaps: bool) -> None:
        is_fine = ~np.isinf(rows) if gaps else np.isfinite(rows)
        if not is_fine.all():
            faulty = [i for k, i in enumerate(features) if not is_fine[:, k].all()]
            self._check_fields(faulty, gaps, booleans=True)
            raise DataFileError(f"{self.path} has fields that are not finite numbers")

    def _check_no_text(self, positions: Sequence[int], gaps: bool) -> None:
        """Refuse columns that pandas takes for text."""
        if not positions:
            return
        self._check_fields(positions, gaps, booleans=False)
        raise DataFileError(f"{self.path}, column {self.name_of(positions[0])}: not a number")

    def _check_fields(self, positions: Sequence[int], gaps: bool, *, booleans: bool) -> None:
        """Raise an error that names the first field that is not a number, if there is one."""
        fault = self._find_fault(positions, gaps, booleans)
        if fault is None:
            return
        where = f"{self.path}, line {fault.line}"
        if fault.position == self.n_columns:
            raise DataFileError(
                f"{where}: more fields than the first line, which has {self.n_columns}; a field "
                f"with {self.delimiter!r} in it stands in double quotes"
            )
        hint = ""
        if self.header is None and fault.line == 1:
            hint = "; a first line that has a number in it is not taken for a header"
        elif fault.text in BOOLEANS and import_pandas() is None:
            hint = f"; pandas reads booleans: {INSTALL}"
        raise fault_error(f"{where}, column {self.name_of(fault.position)}", fault.text, hint=hint)

    def _find_fault(self, positions: Sequence[int], gaps: bool, booleans: bool) -> Fault | None:
        try:
            for line, fields in self.records():
                if len(fields) > self.n_columns:
                    return Fault(line, self.n_columns, fields[self.n_columns])
                for i in positions:
                    text = fields[i] if i < len(fields) else None
                    if not (is_fine(text, gaps) or (booleans and text in BOOLEANS)):
                        return Fault(line, i, text)
        except _UNREADABLE:
            return None
        return None


def _is_blank(fields: Sequence[str]) -> bool:
    # A line of one empty field in quotes is a row.
    return not fields or (len(fields) == 1 and fields[0] != "" and not fields[0].strip())


def _strictly(step: Callable[[], Any]) -> Any:
    """Take a step of pandas; what it warns of is an error.

    Not around all steps: between two pieces, warnings are somebody else's.
    """
    warning = import_pandas().errors.ParserWarning
    with warnings.catch_warnings():
        warnings.simplefilter("error", warning)
        try:
            return step()
        except warning as error:  # the first row is too long
            raise ValueError(str(error)) from error
