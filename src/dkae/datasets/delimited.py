"""Text files of columns, .csv and .tsv: read by pandas where it is installed, else by NumPy.

A first line without any number is the header. Blank lines do not count as rows. A file may be
gzipped.
"""

import csv
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.datasets.errors import DataFileError
from dkae.datasets.files import is_header
from dkae.datasets.frames import INSTALL, Floats, frame_as_numbers, import_pandas
from dkae.datasets.lines import open_lines

#: Fields that are gaps, by the rules of pandas.
GAPS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    }
)  # fmt: skip
_BOOLEANS = frozenset({"True", "TRUE", "true", "False", "FALSE", "false"})
#: Numbers that are read at a time: only so many are ever held in float64.
_CHUNK = 10_000_000
#: Each takes a tenth of a millisecond, and a kilobyte.
_MOST_COLUMNS = 1_000_000

_UNREADABLE = (ValueError, OSError, EOFError, csv.Error, zlib.error)


class GapError(DataFileError):
    """A field has no number where there must be one."""


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

    def read(
        self, features: Sequence[int], others: Sequence[int], *, gaps: bool
    ) -> tuple[Floats, list[NDArray[Any]]]:
        """Return columns of numbers as a matrix, and other columns as the text of their fields.

        With `gaps`, a field without a number is NaN; else it is an error, as is any text.
        """
        read = self._read_plainly if import_pandas() is None else self._read_by_pandas
        try:
            rows, values = read(features, others, gaps)
        except DataFileError:
            raise
        except _UNREADABLE as error:
            self._check_fields(features, gaps, booleans=import_pandas() is not None)
            raise DataFileError(f"{self.path} is not a table of numbers: {error}") from error
        if len(rows) == 0:
            raise DataFileError(f"{self.path} has a header and no rows: expected rows of numbers")
        is_fine = ~np.isinf(rows) if gaps else np.isfinite(rows)
        if not is_fine.all():
            faulty = [i for k, i in enumerate(features) if not is_fine[:, k].all()]
            self._check_fields(faulty, gaps, booleans=True)
            raise DataFileError(f"{self.path} has fields that are not finite numbers")
        return rows, values

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
    ) -> tuple[Floats, list[NDArray[Any]]]:
        pandas = import_pandas()
        rows, values = [], []
        with warnings.catch_warnings(), open_lines(self.path) as file:
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                chunks = pandas.read_csv(
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
                    chunksize=max(1, _CHUNK // self.n_columns),
                )
                for chunk in chunks:
                    numbers, text = frame_as_numbers(chunk, features)
                    self._check_no_text(text, gaps)
                    rows.append(numbers)
                    values.append([chunk[i].fillna("").to_numpy(object) for i in others])
            except pandas.errors.ParserWarning as error:  # the first row is too long
                raise ValueError(str(error)) from error
        columns = [np.concatenate(parts) for parts in zip(*values, strict=True)]
        return np.concatenate(rows), columns

    def _read_plainly(
        self, features: Sequence[int], others: Sequence[int], gaps: bool
    ) -> tuple[Floats, list[NDArray[Any]]]:
        is_whole = len(features) == self.n_columns  # NumPy then notices a line that is too long
        with (
            warnings.catch_warnings(),
            np.errstate(over="ignore"),
            open_lines(self.path) as file,
        ):
            warnings.filterwarnings("ignore", message=".*input contained no data")
            rows: Floats = np.loadtxt(
                iter(file),
                delimiter=self.delimiter,
                dtype=np.float32,
                ndmin=2,
                skiprows=self.n_header_lines,
                usecols=None if is_whole else features,
                comments=None,
                quotechar='"',
                converters=_number_or_nan if gaps else None,
                encoding=None,
            )
        if is_whole and rows.size > 0:
            if rows.shape[1] != self.n_columns:
                raise ValueError(f"rows have {rows.shape[1]} fields, the header {self.n_columns}")
            rows = rows[:, features]
        if not others:
            return rows, []
        values = []
        for _, fields in self.records():
            if len(fields) > self.n_columns:
                raise ValueError(f"a row has {len(fields)} fields")
            values.append([fields[i] if i < len(fields) else "" for i in others])
        return rows, list(np.array(values, dtype=object).T)

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
        elif fault.text in _BOOLEANS and import_pandas() is None:
            hint = f"; pandas reads booleans: {INSTALL}"
        raise fault_error(f"{where}, column {self.name_of(fault.position)}", fault.text, hint=hint)

    def _find_fault(self, positions: Sequence[int], gaps: bool, booleans: bool) -> Fault | None:
        try:
            for line, fields in self.records():
                if len(fields) > self.n_columns:
                    return Fault(line, self.n_columns, fields[self.n_columns])
                for i in positions:
                    text = fields[i] if i < len(fields) else None
                    if not (_is_fine(text, gaps) or (booleans and text in _BOOLEANS)):
                        return Fault(line, i, text)
        except _UNREADABLE:
            return None
        return None


def fault_error(
    where: str, text: str | None, *, kind: str = "not a number", hint: str = ""
) -> DataFileError:
    """Return an error that says what is wrong with a field, and what to do about it."""
    if text is None or text in GAPS:
        gap = "the line ends before it" if text is None else f"a gap ({text or 'an empty field'})"
        return GapError(
            f"{where}: {gap}; fill it, leave out its row, or its column with --columns{hint}"
        )
    if _is_number(text):
        return DataFileError(
            f"{where}: {text} is not finite in float32; correct it, or leave out its row, or its "
            "column with --columns"
        )
    return DataFileError(
        f"{where}: {text!r} is {kind}; encode the column as numbers, leave it out with --columns, "
        f"or name it with --label or --index{hint}"
    )


def write_delimited(
    path: Path, delimiter: str, columns: Sequence[tuple[str, NDArray[Any]]]
) -> None:
    """Write columns below their names; numbers with the nine digits that float32 needs."""
    names = [name for name, _ in columns]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        if is_header(names):  # one with numbers would be read as a row
            writer.writerow(names)
        for fields in zip(*(values for _, values in columns), strict=True):
            writer.writerow([f"{f:.9g}" if isinstance(f, np.floating) else f for f in fields])


def _is_blank(fields: Sequence[str]) -> bool:
    # A line of one empty field in quotes is a row.
    return not fields or (len(fields) == 1 and fields[0] != "" and not fields[0].strip())


def _is_fine(text: str | None, gaps: bool) -> bool:
    if text is None or text in GAPS:
        return gaps
    return _is_number(text) and bool(np.isfinite(_as_float32(text)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python would allow


def _as_float32(text: str) -> np.float32:
    with np.errstate(over="ignore"):
        return np.float32(float(text))


def _number_or_nan(text: str) -> float:
    return float("nan") if text in GAPS else float(text)
