"""Which of the known rows is it? For kernels that are given by values, not by a function."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.grams import Rows


class RowIndex:
    """Finds rows of X among n known ones: by their content, or by their order if none are given.

    Parameters
    ----------
    rows : array of shape (n_known, n_features) or None
        The known rows.
    values : array with n_known entries or rows
        What belongs to the rows. Equal rows must have equal values, or their content could not
        tell them apart.
    what : str
        How error messages say what was given, such as "gram has shape (3, 3)".
    """

    def __init__(self, rows: Any, values: NDArray[Any], what: str) -> None:
        self.n_known = len(values)
        self.what = what
        self.numbers: dict[bytes, int] | None = None
        if rows is not None:
            self.numbers = self._number(rows, values)

    def find(self, X: Any) -> Rows:
        """Return the number of each row of X."""
        if self.numbers is None:
            if len(X) != self.n_known:
                raise ValueError(
                    f"{self.what}, but X has {len(X)} rows: pass that of the same rows as X. In "
                    "cross-validation, use kernel=Precomputed(gram, rows=X), which finds rows by "
                    "their content"
                )
            return np.arange(len(X))
        found = [self.numbers.get(row, -1) for row in _contents(X)]
        if -1 in found:
            raise ValueError(
                f"row {found.index(-1)} of X is none of the {self.n_known} rows that were given: "
                "this kernel is known on its own rows only"
            )
        return np.asarray(found, dtype=np.intp)

    def _number(self, rows: Any, values: NDArray[Any]) -> dict[bytes, int]:
        if len(rows) != self.n_known:
            raise ValueError(
                f"{self.what}, but rows has {len(rows)} rows: pass the vectors that it belongs to, "
                "in its order"
            )
        numbers: dict[bytes, int] = {}
        for i, row in enumerate(_contents(rows)):
            first = numbers.setdefault(row, i)
            if first != i and not np.array_equal(values[first], values[i]):
                raise ValueError(
                    f"rows {first} and {i} are equal vectors (in float32) with different values or "
                    "labels: rows cannot be told apart by their content here"
                )
        return numbers


def _contents(X: Any) -> list[bytes]:
    """Return a digest of each row, in the type that the network sees (and -0.0 as 0.0)."""
    rows = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)
    return [blake2b(row, digest_size=16).digest() for row in rows]
