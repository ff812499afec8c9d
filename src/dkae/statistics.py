"""Mean, variance and range of each feature, and warnings of what they tell; gaps are left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae._support.checks import warn_caller
from dkae._support.processes import present
from dkae.rows import chunks_of

Ids = NDArray[np.integer[Any]]

#: Features share a unit if the tenth percentile of their ranges is this part of the largest one.
#: Images and series have 0.3 to 1 (a border pixel is seldom hit, but then in full); tables of
#: several units 0.001 and less.
SHARED_RANGE = 0.1
#: A deviation below this part of the mean is round-off of float32.
ROUND_OFF = 1e-6
#: Numbers that are summed together, in float64.
N_CHUNK_NUMBERS = 2**18
#: A kernel that sees fewer effective features than one and this part of all is warned of.
FEW_FEATURES = 0.1
#: The features that a warning names have this share of the squared distances between rows, and
#: there are so many at most.
NAMED_SHARE, N_NAMED = 0.9, 5
#: Features are warned of whose range is less than this part of their size, but no round-off of
#: float64: products of rows keep few digits of what differs between them.
LOST_RANGE, LEAST_RANGE = 5e-5, 1e-12


class Statistics(NamedTuple):
    """What one pass over the rows tells of each feature."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    low: NDArray[Any]
    high: NDArray[Any]
    #: The number of known values.
    n: NDArray[np.float64]
    #: The number of rows.
    n_rows: Any

    @classmethod
    def of(cls, X: Any, ids: Ids | None = None) -> Statistics:
        """Read the rows, or those of some ids, once, chunk by chunk; each process its share."""
        n_rows = len(X) if ids is None else len(ids)
        own = present().part(n_rows)
        if ids is None or n_rows == len(X):
            chunks = chunks_of(X, N_CHUNK_NUMBERS, own)
        else:
            chunks = (X[part] for part in _in_parts(np.sort(ids)[own], X.shape[1:]))
        mine = cls.of_chunks(chunks, X.shape[1:])
        arrays = {name: np.asarray(value) for name, value in mine._asdict().items()}
        parts = present().gather_arrays(arrays)
        return reduce(cls.merged, (cls(**part) for part in parts))

    @classmethod
    def of_chunks(cls, chunks: Iterable[Any], shape: tuple[int, ...]) -> Statistics:
        """Return the statistics of rows of this shape that come in chunks."""
        zero, infinity = np.zeros(shape), np.full(shape, np.inf)
        nothing = cls(zero, zero, infinity, -infinity, zero, 0)
        return reduce(cls.merged, map(cls._of_chunk, chunks), nothing)

    @classmethod
    def _of_chunk(cls, part: Any) -> Statistics:
        chunk = part.astype(np.float64)
        known = np.isfinite(chunk)
        n = known.sum(axis=0, dtype=np.float64)
        mean = np.where(known, chunk, 0).sum(axis=0) / np.maximum(n, 1)
        squares = np.square(np.where(known, chunk - mean, 0)).sum(axis=0)
        low, high = np.fmin.reduce(chunk, axis=0), np.fmax.reduce(chunk, axis=0)
        return cls(mean, squares / np.maximum(n, 1), low, high, n, len(chunk))

    def merged(self, other: Statistics) -> Statistics:
        """Return the statistics of the rows of both."""
        n, gap = self.n + other.n, other.mean - self.mean
        share = other.n / np.maximum(n, 1)
        variance = (1 - share) * self.variance + share * other.variance
        return Statistics(
            self.mean + share * gap,
            variance + share * (1 - share) * np.square(gap),
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            n,
            self.n_rows + other.n_rows,
        )

    def standardized(self) -> Statistics:
        """Return the statistics of the same rows with mean 0 and variance 1."""
        center, scale = self.units
        return self._replace(
            mean=np.zeros_like(self.mean),
            variance=np.square(self.deviation / scale),
            low=(self.low - center) / scale,
            high=(self.high - center) / scale,
        )

    @property
    def units(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The mean and the deviation of each feature; 1 in place of a deviation of 0."""
        deviation = self.deviation
        return self.mean, np.where(deviation > 0, deviation, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self.mean.shape

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
        """The standard deviation of each feature; 0 if it is round-off of a constant."""
        deviation = np.sqrt(self.variance)
        return np.where(deviation > ROUND_OFF * np.abs(self.mean), deviation, 0.0)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The part of each feature in the squared distances between rows; they add up to 1."""
        variance = np.square(self.deviation).ravel()
        total = variance.sum()
        return variance / total if total > 0 else np.full(len(variance), 1 / len(variance))

    @property
    def n_effective(self) -> float:
        r"""The effective number of features, :math:`1 / \sum_j s_j^2` of the shares s."""
        return float(1 / np.square(self.shares).sum())


def _in_parts(ids: Ids, shape: tuple[int, ...]) -> Iterator[Ids]:
    n = max(1, N_CHUNK_NUMBERS // max(1, int(np.prod(shape))))
    return (ids[i : i + n] for i in range(0, len(ids), n))


def warn_of_units(known: Statistics, kernel: Any, names: Any) -> None:
    """Warn if a kernel of distances hardly sees most of the features, for their units.

    `names` are those of the features, or None.
    """
    n_varying, n_effective = int(np.count_nonzero(known.deviation)), known.n_effective
    if known.share_a_unit or n_varying < 2 or n_effective >= 1 + FEW_FEATURES * n_varying:
        return
    shares = known.shares
    order = np.argsort(-shares)
    n_named = int(np.searchsorted(np.cumsum(shares[order]), NAMED_SHARE)) + 1
    carriers = order[: min(n_named, N_NAMED)]
    labels = [str(j) if names is None else repr(names[j]) for j in carriers]
    warn_caller(
        f"{kernel} sees {n_effective:.2g} effective features of {n_varying}: feature "
        f"{', '.join(labels)} {'has' if len(labels) == 1 else 'have'} "
        f"{100 * shares[carriers].sum():.3g} % of the squared distances between rows. Set "
        "standardize=True (`dkae fit --standardize`), or scale X"
    )


def warn_of_digits(rows: Any) -> None:
    """Warn if few digits are left of what differs between rows."""
    if rows.dtype.kind not in "iuf" or rows.dtype.itemsize <= 4:
        return
    low, high = (np.asarray(f.reduce(rows, axis=0), dtype=np.float64) for f in (np.fmin, np.fmax))
    size, spread = np.fmax(np.abs(low), np.abs(high)), high - low
    lost = (spread > LEAST_RANGE * size) & (spread < LOST_RANGE * size)
    if lost.any():
        warn_caller(
            f"{lost.sum()} of {lost.size} features of X range over less than {LOST_RANGE:g} of "
            "their size, and few digits of that are kept: subtract the mean of X first, as with "
            "StandardScaler()"
        )
