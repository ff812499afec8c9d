"""What needs pandas, the extra ``table``: columns of a frame as numbers."""

from collections.abc import Sequence
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.datasets.errors import DataFileError

Floats = NDArray[np.float32]

INSTALL = "pip install 'dkae[table]'"


def import_pandas() -> Any:
    """Return pandas, or None where it is not installed."""
    try:
        import pandas
    except ImportError:
        return None
    return pandas


def require_pandas(path: Path) -> Any:
    """Return pandas, or say how to get it."""
    pandas = import_pandas()
    if pandas is None:
        raise DataFileError(f"{path} needs pandas: {INSTALL}")
    return pandas


def column_as_numbers(column: Any) -> Floats | None:
    """Return a column of numbers or booleans, with NaN for gaps; None if it holds anything else.

    Dates are not numbers, nor are categories that are text.
    """
    pandas = import_pandas()
    if isinstance(column.dtype, pandas.CategoricalDtype):
        column = pandas.Series(np.asarray(column))
    is_number = pandas.api.types.is_numeric_dtype(column.dtype) and column.dtype.kind != "c"
    if column.dtype == object:  # such as Decimal, or booleans with gaps
        is_number = all(isinstance(value, Number) for value in column.dropna())
    if not is_number:
        return None
    with np.errstate(over="ignore"):  # what is too large is told of as infinite
        return np.asarray(column.to_numpy(np.float32, na_value=np.nan))


def frame_as_numbers(frame: Any, positions: Sequence[int]) -> tuple[Floats, list[int]]:
    """Return columns of a frame as a matrix, and the positions of those that are not numbers."""
    rows = np.empty((len(frame), len(positions)), dtype=np.float32)
    others = []
    for k, position in enumerate(positions):
        numbers = column_as_numbers(frame.iloc[:, position])
        if numbers is None:
            others.append(position)
        else:
            rows[:, k] = numbers
    return rows, others
