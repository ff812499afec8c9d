"""Arrays to be drawn, as JSON can hold them: 8 bits a value, compressed.

Enough for the eye, and a hundred times smaller than the numbers in full; nothing is computed from
them.
"""

from __future__ import annotations

import base64
import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Those of the study have 90,000.
_MOST_VALUES = 2**24
_MOST_DIMENSIONS = 8


def pack(
    array: NDArray[Any], low: float | None = None, high: float | None = None
) -> dict[str, Any]:
    """Return the array in 256 levels from `low` to `high`, by default its own range."""
    low = float(array.min()) if low is None else low
    high = float(array.max()) if high is None else high
    levels = (np.clip(array, low, high) - low) * (255 / max(high - low, 1e-12))
    data = zlib.compress(np.rint(levels).astype(np.uint8).tobytes(), 9)
    return {
        "shape": list(array.shape),
        "low": low,
        "high": high,
        "data": base64.b64encode(data).decode("ascii"),
    }


def unpack(packed: dict[str, Any]) -> NDArray[np.float64]:
    """Return the array that `pack` was given, to 1/510 of its range."""
    shape, low, high = packed["shape"], packed["low"], packed["high"]
    n = _count(shape)
    # One byte more than announced tells whether there are more; no further one is decompressed.
    data = zlib.decompressobj().decompress(base64.b64decode(packed["data"]), n + 1)
    if len(data) != n:
        raise ValueError(f"its shape {shape} is not that of its data")
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        raise TypeError(f"its range is {low!r} to {high!r}: expected two numbers")
    levels = np.frombuffer(data, dtype=np.uint8).reshape(shape)
    values: NDArray[np.float64] = levels / 255 * (high - low) + low
    return values


def _count(shape: Any) -> int:
    """Return how many values a shape has, before memory is taken for them."""
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise TypeError(f"its shape is {str(shape)[:100]}: expected whole numbers")
    if len(shape) > _MOST_DIMENSIONS or math.prod(shape) > _MOST_VALUES:
        raise ValueError(f"its shape is {str(shape)[:100]}, of more than {_MOST_VALUES} values")
    return math.prod(shape)
