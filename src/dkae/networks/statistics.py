"""What is known of each feature of the data, and the scaling that follows from it.

A table needs a scale for each feature. Where features share a unit, as pixels and the points of a
spectrum do, one scale serves all: dividing a border pixel by its tiny deviation would only amplify
noise. The rule looks at ranges, see `SHARED_RANGE`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dkae._runtime.checks import check_choice
from dkae.grams import Floats
from dkae.networks.scaling import Scaling

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

    @classmethod
    def of(cls, X: Floats) -> Self:
        """Read the rows once, chunk by chunk; no float64 copy of them all."""
        n, mean, squares = (np.zeros(X.shape[1:]) for _ in range(3))
        low, high = np.full(X.shape[1:], np.inf), np.full(X.shape[1:], -np.inf)
        for part in _chunks(X):
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
        return cls(mean, squares / np.maximum(n, 1), low, high)

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
    X: Floats, standardize: Any, *, fills: bool = False, scales_output: bool = True
) -> Scaling:
    """Return the scaling "features", "shared" or "auto", by the rule; False changes no unit.

    A constant feature is only centred. With `fills`, missing values are taken for the mean.
    """
    how = False if standardize is False else check_choice("standardize", standardize, STANDARDIZE)
    statistics = Statistics.of(X)
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


def value_range(X: Floats) -> tuple[float, float]:
    """Return the least and the largest value; missing ones do not count."""
    ranges = [(np.fmin.reduce(c, axis=None), np.fmax.reduce(c, axis=None)) for c in _chunks(X)]
    low, high = zip(*ranges, strict=True)
    return float(np.fmin.reduce(low)), float(np.fmax.reduce(high))


def _chunks(X: Floats) -> Iterator[Floats]:
    n = max(1, N_CHUNK_NUMBERS // int(np.prod(X.shape[1:])))
    return (X[i : i + n] for i in range(0, len(X), n))
