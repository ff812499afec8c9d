"""Looking up rows, for kernels that are given by values on known rows, not by a function."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae._support.arrays import naming
from dkae.grams import Rows
from dkae.rows import as_rows, chunks_of

#: Numbers that are read together: 4 MB in float32.
N_CHUNK_NUMBERS = 2**20


class RowIndex:
    """Finds rows of X among known ones: by their content, or by their position if `rows` is None.

    `values` has an entry or a row for each known row; equal rows must have equal values, because
    their content does not tell them apart. `what` describes the values in error messages, such as
    "gram has shape (3, 3)".
    """

    def __init__(self, rows: Any, values: NDArray[Any], what: str) -> None:
        self.n_known = len(values)
        self.what = what
        self.numbers: dict[bytes, int] | None = None
        if rows is not None:
            self.numbers = self._number(rows, values)

    def find(self, X: Any) -> Rows:
        """Return the number of each row of X."""
        X = as_rows(X)
        if self.numbers is None:
            if len(X) != self.n_known:
                raise ValueError(
                    f"{self.what}, but X has {len(X)} rows: pass that of the rows of X. In "
                    "cross-validation, use kernel=Precomputed(gram, rows=X), which finds rows by "
                    "their content"
                )
            return np.arange(len(X))
        contents = _contents(X, "X")
        found = np.fromiter((self.numbers.get(row, -1) for row in contents), np.intp, len(X))
        if (found < 0).any():
            raise ValueError(
                f"row {found.argmin()} of X is not among the {self.n_known} known rows: this "
                "kernel has values for those rows only"
            )
        return found

    def _number(self, rows: Any, values: NDArray[Any]) -> dict[bytes, int]:
        rows = as_rows(rows, "rows")
        if len(rows) != self.n_known:
            raise ValueError(
                f"{self.what}, but rows has {len(rows)} rows: pass the vector of each of its "
                "rows, in the same order"
            )
        numbers: dict[bytes, int] = {}
        for i, row in enumerate(_contents(rows, "rows")):
            first = numbers.setdefault(row, i)
            if first != i and not np.array_equal(values[first], values[i]):
                raise ValueError(
                    f"rows {first} and {i} are equal vectors (in float32) with different values or "
                    "labels: their content does not tell them apart"
                )
        return numbers


def _contents(X: Any, name: str) -> Iterator[bytes]:
    """Yield a digest of each row, in the type that the network sees (and -0.0 as 0.0)."""
    for part in chunks_of(X, N_CHUNK_NUMBERS):
        with naming(name, X), np.errstate(over="ignore"):
            rows = np.ascontiguousarray(part, dtype=np.float32) + np.float32(0)
        for row in rows:
            yield blake2b(row, digest_size=16).digest()
