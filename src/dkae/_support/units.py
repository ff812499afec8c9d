"""Powers of two as units: no digit changes, and squares of very large and small numbers exist.

float32 has no squares of numbers beyond 1e±19, float64 none beyond 1e±154. Measures that are free
of scale are computed in a unit near the largest number wherever that matters.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Up to these powers of two, sums of squares need no unit.
WITHIN = {np.dtype(np.float32): 30, np.dtype(np.float64): 256}


def largest_entry(values: NDArray[Any]) -> float:
    """Return the largest absolute value, NaN if there is one, without a copy."""
    return float(np.maximum(float(values.max()), -float(values.min())))


def exponent_of(largest: float, dtype: Any = np.float64) -> int:
    """Return e of the unit 2ᵉ near a number; 0 where squares exist in the type without one."""
    exponent = math.frexp(largest)[1]
    within = WITHIN.get(np.dtype(dtype), WITHIN[np.dtype(np.float64)])
    return exponent if abs(exponent) > within else 0


def in_unit(values: NDArray[Any], exponent: int) -> NDArray[Any]:
    """Return values / 2ᵉ: themselves for e = 0, and exact for floats."""
    return values if exponent == 0 else np.ldexp(values, -exponent)
