"""Names that kernels and maps import until they no longer describe their own state: goes then."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor


class StateMixin:
    """Nothing: what a file holds is declared in `dkae.persistence.schemas`."""


def check_type(state: Mapping[str, Any], name: str, kind: Any) -> Any:
    """Return an entry of a state."""
    if not isinstance(state.get(name), kind):
        raise ValueError(f"the entry {name!r} is a {type(state.get(name)).__name__}")
    return state[name]


def check_array(
    name: str, value: Any, shape: Iterable[int | None], *, may_be_missing: bool = False
) -> Any:
    """Return an array of this shape; None fits any length."""
    expected = tuple(shape)
    if not isinstance(value, np.ndarray | Tensor) or len(value.shape) != len(expected):
        raise ValueError(f"{name} is no array of {len(expected)} dimensions")
    if any(b not in (None, a) for a, b in zip(value.shape, expected, strict=True)):
        raise ValueError(f"{name} has the shape {tuple(value.shape)}, expected {expected}")
    return value


def check_finite_number(name: str, value: Any) -> float:
    """Return a finite number."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name} is {str(value)[:80]!r}, expected a number")
    return float(value)
