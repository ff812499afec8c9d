"""What is known of each feature of the data, and the scaling that follows from it.

A table needs a scale for each feature. Where features share a unit, as pixels and the points of a
spectrum do, one scale serves all: dividing a border pixel by its tiny deviation would only amplify
noise. The rule looks at ranges, see `SHARED_RANGE`.
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dkae._support.checks import check_choice
from dkae._support.processes import present
from dkae.grams import Floats
from dkae.networks.scaling import Scaling
from dkae.rows import chunks_of

#: Choices of `standardize` besides False.
STANDARDIZE = ("auto", "features", "shared")
#: Features share a unit if the tenth percentile of their ranges is this part of the largest one.
#: Images and series have 0.3 to 1 (a border pixel is seldom hit, but then in full); tables of
#: several units 0.001 and less.
SHARED_RANGE = 0.1
#: A deviation below this part of the mean is round-off of float32.
ROUND_OFF = 1e-6
#: Numbers that are summed together, in float64.
N_CHUNK_NUMBERS = 2**18


class Statistics(NamedTuple):
    """What is known of each feature of the data; missing values do not count."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    low: NDArray[Any]
    high: NDArray[Any]
    #: How many values are known.
    n: NDArray[np.float64]

    @classmethod
    def of(cls, X: Any) -> "Statistics":
        """Read the rows once, chunk by chunk, each process its share of them."""
        parts: list[Statistics] = present().gather(cls._of_rows(X, present().part(len(X))))
        return reduce(cls.merged, parts)

    @classmethod
    def _of_rows(cls, X: Any, own: slice) -> "Statistics":
        n, mean, squares = (np.zeros(X.shape[1:]) for _ in range(3))
        low, high = np.full(X.shape[1:], np.inf), np.full(X.shape[1:], -np.inf)
        for part in chunks_of(X, N_CHUNK_NUMBERS, own):
            chunk = part.astype(np.float64)
            low = np.fmin(low, np.fmin.reduce(chunk, axis=0))
            high = np.fmax(high, np.fmax.reduce(chunk, axis=0))
            known = np.isfinite(chunk)
            m = known.sum(axis=0)
            shift = np.where(known, chunk - mean, 0).sum(axis=0) / np.maximum(m, 1)
            # As two samples are merged: their own squares, and those of the gap of their means.
            squares += np.square(np.where(known, chunk - mean - shift, 0)).sum(axis=0)
            squares += shift**2 * n * m / np.maximum(n + m, 1)
            mean += shift * m / np.maximum(n + m, 1)
            n += m
        return cls(mean, squares / np.maximum(n, 1), low, high, n)

    def merged(self, other: "Statistics") -> "Statistics":
        """Return what is known of the rows of both."""
        n, gap = self.n + other.n, other.mean - self.mean
        share = other.n / np.maximum(n, 1)
        variance = (1 - share) * self.variance + share * other.variance
        return Statistics(
            self.mean + share * gap,
            variance + share * (1 - share) * np.square(gap),
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            n,
        )

    @property
    def range(self) -> tuple[float, float]:
        """The least and the largest value of all features."""
        return float(np.fmin.reduce(self.low, axis=None)), float(
            np.fmax.reduce(self.high, axis=None)
        )

    @property
    def share_a_unit(self) -> bool:
        """Whether features share a unit, as pixels and the points of a spectrum do."""
        ranges = (self.high - self.low)[self.high > self.low]
        return not len(ranges) or bool(np.quantile(ranges, 0.1) >= SHARED_RANGE * ranges.max())

    @property
    def deviation(self) -> NDArray[np.float64]:
        """The standard deviation of each feature; 0 for what is round-off of a constant."""
        deviation = np.sqrt(self.variance)
        return np.where(deviation > ROUND_OFF * np.abs(self.mean), deviation, 0.0)

    @property
    def largest_share(self) -> tuple[int, float]:
        """The feature with the largest part of the squared distances between rows, and its part."""
        total = self.variance.sum()
        j = int(self.variance.argmax())
        return j, float(self.variance.flat[j] / total) if total > 0 else 0.0


def learn_scaling(
    X: Floats | Statistics, standardize: Any, *, fills: bool = False, scales_output: bool = True
) -> Scaling:
    """Return the scaling "features", "shared" or "auto", by the rule; False changes no unit.

    A constant feature is only centred. With `fills`, missing values are taken for the mean.
    """
    how = False if standardize is False else check_choice("standardize", standardize, STANDARDIZE)
    statistics = X if isinstance(X, Statistics) else Statistics.of(X)
    if how == "auto":
        how = "shared" if statistics.share_a_unit else "features"
    deviation = statistics.deviation
    scale = np.sqrt(np.square(deviation).mean()) if how == "shared" else deviation
    mean, scale = _tensor(statistics.mean), _tensor(np.where(scale > 0, scale, 1.0))
    fill = mean.clone() if fills else None
    if how is False:
        mean, scale = torch.zeros_like(mean), torch.tensor(1.0)
    return Scaling(mean, scale, fill, scales_output=scales_output)


def _tensor(values: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float32))
