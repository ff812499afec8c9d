"""A table in memory: rows of numbers, the names of their columns, an index and labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: The endings of text files, and what separates their fields.
DELIMITERS = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
#: Fields of text that are gaps, by the rules of pandas.
GAPS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    }
)  # fmt: skip


class Column(NamedTuple):
    """A column that is no feature, as a NumPy or an Arrow array."""

    name: str
    values: Any


@dataclass(frozen=True)
class Table:
    """Rows of numbers and the columns that go with them.

    Parameters
    ----------
    rows : array of shape (n, ...)
        The features, float32 if they come from a file of columns. They may be on disk.
    names : list of str, optional
        Names of the features.
    index, label : Column, optional
        A column that identifies the rows, and one of labels.
    """

    rows: Any
    names: list[str] | None = None
    index: Column | None = None
    label: Column | None = None

    def with_rows(self, rows: Any, names: Sequence[str]) -> Table:
        """Return other features of the same samples."""
        return dataclasses.replace(self, rows=rows, names=list(names))

    def labels(self) -> NDArray[Any] | None:
        """Return the labels: numbers if all of them are, else objects; NaN or None for a gap."""
        if self.label is None:
            return None
        values = np.asarray(self.label.values)
        if values.dtype != object:
            return values
        known = [None if value in GAPS else value for value in values.tolist()]
        try:
            return np.array([np.nan if value is None else float(value) for value in known])
        except (TypeError, ValueError):
            return np.array(known, dtype=object)


def join(pieces: Sequence[Table]) -> Table:
    """Return the pieces of a table as one."""
    rows = np.concatenate([piece.rows for piece in pieces])
    index, label = (_joined([getattr(p, name) for p in pieces]) for name in ("index", "label"))
    return Table(rows, pieces[0].names, index, label)


def _joined(parts: Sequence[Any]) -> Column | None:
    if parts[0] is None:
        return None
    return Column(parts[0].name, np.concatenate([part.values for part in parts]))


def is_header(fields: Sequence[str]) -> bool:
    """Return whether a first line is a header: not blank, and without a number."""
    return any(field.strip() for field in fields) and not any(map(_is_number, fields))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
