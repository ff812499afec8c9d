"""Means over seeds, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t

__all__ = ["Estimate", "estimate"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean, and the half-width of its 95 % interval (None for a single value)."""

    mean: float
    half_width: float | None
    n: int

    def format(self, digits: int = 4) -> str:
        """Return the mean, with ± the half-width where there is one, or what it lies below."""
        text, last_digit = f"{self.mean:.{digits}f}".replace("-", "−"), 10.0**-digits
        if self.half_width is None:
            return text
        if 0 < self.half_width < last_digit / 2:  # would read as no uncertainty at all
            return f"{text} ± <{last_digit:.{digits}f}"
        return f"{text} ± {self.half_width:.{digits}f}"

    @property
    def seeds(self) -> str:
        """What the interval rests on, in words."""
        return "one seed, no interval" if self.half_width is None else f"{self.n} seeds"

    @property
    def low(self) -> float:
        """Lower end of the interval; the mean itself for a single value."""
        return self.mean - (self.half_width or 0.0)

    @property
    def high(self) -> float:
        """Upper end of the interval; the mean itself for a single value."""
        return self.mean + (self.half_width or 0.0)

    def is_below(self, value: float) -> bool:
        """Say whether there is an interval, and all of it lies below a value."""
        return self.half_width is not None and self.high < value

    def is_above(self, value: float) -> bool:
        """Say whether there is an interval, and all of it lies above a value."""
        return self.half_width is not None and self.low > value


def estimate(values: Sequence[float]) -> Estimate:
    r"""Return the mean of values and its interval by Student's t.

    .. math:: \bar x \pm t_{n-1, 0.975} \, s / \sqrt n
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n < 2:
        return Estimate(float(x.mean()), None, n)
    half_width = t.ppf((1 + CONFIDENCE) / 2, n - 1) * x.std(ddof=1) / np.sqrt(n)
    return Estimate(float(x.mean()), float(half_width), n)
