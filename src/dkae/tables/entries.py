"""The entries of a table: numbers, gaps, and the errors that name any other entry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.datasets import DataFileError

#: Numbers of a table that are read at a time.
N_PIECE_NUMBERS = 2**22
#: Fields of text that are gaps, by the rules of pandas.
GAPS = frozenset(
    {
        "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
        "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
    }
)  # fmt: skip
#: What a user can do about a column that holds no numbers.
REMEDY = "encode it as numbers, leave it out with --drop, or name it with --label or --index"


def piece_length(width: int) -> int:
    """Return how many rows of this many numbers make a piece."""
    return max(1, N_PIECE_NUMBERS // max(1, width))


def is_number(text: str) -> bool:
    """Return whether Python reads a field as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_header(fields: Sequence[str]) -> bool:
    """Return whether a first line is a header: not blank, and without a number."""
    return any(field.strip() for field in fields) and not any(map(is_number, fields))


def require_pyarrow(path: Path) -> None:
    """Raise if pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataFileError(f"{path} needs pyarrow: pip install 'dkae[table]'") from error


def as_matrix(columns: Sequence[Any]) -> NDArray[np.float32]:
    """Return Arrow columns of numbers as rows, with NaN for gaps."""
    import pyarrow

    rows = np.empty((len(columns[0]), len(columns)), dtype=np.float32)
    for k, column in enumerate(columns):
        numbers = column.cast(pyarrow.float32(), safe=False)  # too large becomes infinite
        rows[:, k] = numbers.to_numpy(zero_copy_only=False)
    return rows


def first_fault(rows: NDArray[Any], *, gaps: bool) -> tuple[int, ...] | None:
    """Return the position of the first entry that is infinite, or NaN unless gaps are allowed."""
    with np.errstate(over="ignore", invalid="ignore"):
        if rows.dtype.kind != "f" or np.isfinite(rows.sum()):  # NaN and infinity carry over
            return None
    faulty = np.argwhere(np.isinf(rows) if gaps else ~np.isfinite(rows))
    return tuple(faulty[0].tolist()) if len(faulty) else None


def fault_error(where: str, value: float) -> DataFileError:
    """Return the error for an entry that is a gap or infinite."""
    if np.isnan(value):
        return DataFileError(
            f"{where}: a gap; fill it, leave out its row, leave out its column with --drop, or fit "
            "the model with --set missing=mask"
        )
    return DataFileError(
        f"{where}: {value} is not finite in float32; correct it, leave out its row, or leave out "
        "its column with --drop"
    )
