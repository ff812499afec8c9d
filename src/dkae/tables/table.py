"""A table in memory: rows of numbers, the names of their columns, an index and labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae.tables.entries import GAPS

Floats = NDArray[np.float32]


class Column(NamedTuple):
    """A column that is no feature, as a NumPy or an Arrow array."""

    name: str
    values: Any


@dataclass(frozen=True)
class Table:
    """Rows of numbers and the columns that go with them.

    Parameters
    ----------
    rows : array of shape (n_samples, ...)
        The features; float32 if they come from a file of columns. They may be on disk.
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
        values = self.label.values
        if not isinstance(values, np.ndarray):
            values = values.to_numpy(zero_copy_only=False)
        if values.dtype != object:
            return np.asarray(values)
        known = [None if value in GAPS else value for value in values.tolist()]
        try:
            return np.array([np.nan if value is None else float(value) for value in known])
        except (TypeError, ValueError):
            return np.array(known, dtype=object)


def join(pieces: Sequence[Table]) -> Table:
    """Return the pieces of a table as one."""

    def column(parts: Sequence[Column | None]) -> Column | None:
        known = [part for part in parts if part is not None]
        return Column(known[0].name, _join([part.values for part in known])) if known else None

    rows = np.concatenate([piece.rows for piece in pieces])
    index, label = column([p.index for p in pieces]), column([p.label for p in pieces])
    return Table(rows, pieces[0].names, index, label)


def _join(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    import pyarrow

    return pyarrow.concat_arrays(parts)
