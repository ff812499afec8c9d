"""Parquet files, read by pyarrow a piece at a time, with the checksums of their pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.datasets import DataFileError
from dkae.tables.entries import (
    REMEDY,
    as_matrix,
    fault_error,
    first_fault,
    piece_length,
    require_pyarrow,
)

#: Bytes of a column that are read at a time; without it whole row groups are held.
_BUFFER_BYTES = 2**16
#: The name that pandas gives to an index without one.
_UNNAMED = re.compile(r"__index_level_\d+__")


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
        with self._reading():
            self._file = parquet.ParquetFile(
                path,
                buffer_size=_BUFFER_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
            )
            self._schema = self._file.schema_arrow
        self.n_rows: int = self._file.metadata.num_rows
        self._names: list[str] = self._schema.names
        self.n_columns = len(self._names)
        self.index = _stored_index(self._schema)
        self.header = list(self._names)
        if self.index is not None and _UNNAMED.fullmatch(self.header[self.index]):
            self.header[self.index] = ""

    def pieces(
        self, features: Sequence[int], others: Sequence[int], *, gaps: bool
    ) -> Iterator[tuple[NDArray[np.float32], list[Any]]]:
        """Yield columns of numbers as matrices, and other columns as Arrow arrays."""
        self._check_types(features)
        if not self.n_rows:
            raise DataFileError(f"{self.path} has no rows: expected rows of numbers")
        start = 0
        for batch in self._batches([*features, *others]):
            rows = as_matrix([batch.column(self._names[i]) for i in features])
            if (fault := first_fault(rows, gaps=gaps)) is not None:
                name = self._names[features[fault[1]]]
                where = f"{self.path}, row {start + fault[0]} (from 0), column {name!r}"
                raise fault_error(where, rows[fault])
            yield rows, [_plain(batch.column(self._names[i])) for i in others]
            start += len(rows)

    def _batches(self, columns: Sequence[int]) -> Iterator[Any]:
        names = [self._names[i] for i in columns]
        with self._reading():
            yield from self._file.iter_batches(piece_length(len(names)), columns=names)

    def _check_types(self, features: Sequence[int]) -> None:
        from pyarrow import types

        is_number = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
        for i in features:
            kind = self._schema.field(i).type
            value = kind.value_type if types.is_dictionary(kind) else kind
            if not any(check(value) for check in (*is_number, types.is_null)):
                raise DataFileError(
                    f"{self.path}, column {self._names[i]!r}: {value} is not a number; {REMEDY}"
                )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, OSError, NotImplementedError) as error:
            raise DataFileError(f"{self.path} cannot be read as Parquet: {error}") from error


def _stored_index(schema: Any) -> int | None:
    """Return the position of the index that pandas has stored; its metadata may hold anything."""
    try:
        stored = [level for level in schema.pandas_metadata["index_columns"] if level is not None]
        positions = [schema.names.index(level) for level in stored]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return positions[0] if len(positions) == 1 else None


def _plain(column: Any) -> Any:
    """Return a column without a dictionary, which is another one in each piece."""
    return column.dictionary_decode() if hasattr(column, "dictionary") else column
