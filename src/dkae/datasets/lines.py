"""The lines of a text file, plain or gzipped; a line without end is refused before it is held."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

from dkae.datasets.errors import DataFileError

#: A megabyte of gzip may be a gigabyte without a line break; a million numbers stay below this.
LONGEST_LINE = 2**24


class Lines:
    """A text file, to be iterated over or read in parts, as parsers do."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self.path = path
        self._file = file
        self._n_of_line = 0

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(LONGEST_LINE + 1):
            self._check(len(line))
            yield line

    def read(self, size: int = LONGEST_LINE) -> str:
        """Return the next characters."""
        text = self._file.read(size)
        end = max(text.rfind("\n"), text.rfind("\r"))
        self._n_of_line = len(text) - end - 1 + (self._n_of_line if end < 0 else 0)
        self._check(self._n_of_line)
        return text

    def _check(self, n_of_line: int) -> None:
        if n_of_line > LONGEST_LINE:
            raise DataFileError(
                f"{self.path} has a line of more than {LONGEST_LINE} characters: expected rows of "
                "numbers; write so wide a table as .npy"
            )


@contextmanager
def open_lines(path: Path) -> Iterator[Lines]:
    """Open a file for reading; one whose name ends in .gz is gzipped."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="", encoding="utf-8-sig") as file:
        yield Lines(path, cast("TextIO", file))
