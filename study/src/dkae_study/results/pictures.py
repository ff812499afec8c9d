"""Arrays to be drawn, as JSON can hold them: 8 bits a value, compressed.

Enough for the eye, and a hundred times smaller than the numbers in full; nothing is computed from
them.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    low, high = packed["low"], packed["high"]
    data = zlib.decompress(base64.b64decode(packed["data"]))
    levels = np.frombuffer(data, dtype=np.uint8).reshape(packed["shape"])
    values: NDArray[np.float64] = levels / 255 * (high - low) + low
    return values
