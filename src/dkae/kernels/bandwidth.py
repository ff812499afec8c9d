r"""Heuristics that choose γ from the data.

``"median"``
    γ is the inverse of the median, over pairs of rows, of the quantity that γ multiplies:
    the L1 distance of the Laplacian kernel, the χ² distance, the absolute inner product of the
    polynomial and the sigmoid kernel. For the RBF kernel it is the customary
    :math:`1 / (2 \sigma^2)` with σ the median Euclidean distance.
``"scale"``
    :math:`1 / (d \operatorname{Var}(X))`, as in scikit-learn's SVC.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import (
    euclidean_distances,
    linear_kernel,
    manhattan_distances,
    pairwise_kernels,
)
from sklearn.utils import check_array

from dkae._support.arrays import naming, real_numbers
from dkae._support.checks import check_choice, check_number
from dkae._support.units import exponent_of, in_unit, largest_entry
from dkae.grams import Floats, sample_rows

HEURISTICS = ("median", "scale")

#: Rows whose pairs the median is over: half a million pairs.
N_MEDIAN_ROWS = 1000

#: What γ multiplies in each kernel that has one.
_QUANTITIES = {
    "rbf": lambda X: 2 * euclidean_distances(X, squared=True),
    "laplacian": manhattan_distances,
    "chi2": lambda X: -pairwise_kernels(X, metric="additive_chi2"),
    "poly": linear_kernel,
    "polynomial": linear_kernel,
    "sigmoid": linear_kernel,
}
#: The power of the rows that it grows with.
_POWERS = {"rbf": 2, "laplacian": 1, "chi2": 1, "poly": 2, "polynomial": 2, "sigmoid": 2}
#: 2¹²⁷ is the last power of two of float32.
MOST = 120


def has_gamma(metric: str) -> bool:
    """Say whether one of scikit-learn's kernels has a γ."""
    return metric in _QUANTITIES


def choose_gamma(gamma: str | float | None, metric: str, X: Floats) -> float | None:
    """Return γ for scikit-learn's kernel `metric`, or None if that kernel has no γ.

    `gamma` is a heuristic, a number, or None for 1 / n_features as in scikit-learn.
    """
    if isinstance(gamma, str):
        check_choice("gamma", gamma, HEURISTICS)
    elif gamma is not None:
        gamma = check_number("gamma", gamma, 0, open_low=True)
    if not has_gamma(metric):
        return None
    if gamma == "median":
        return median_gamma(metric, X)
    if gamma == "scale":
        return scale_gamma(X)
    return 1.0 / X.shape[1] if gamma is None else float(gamma)


def median_gamma(metric: str, X: Floats) -> float:
    """Return the inverse of the median of what γ multiplies."""
    rows = _sample(X)
    # In a unit near a typical row: in that of the largest, most rows might be zero.
    lengths = np.abs(rows).max(axis=1)
    exponent = exponent_of(_median_of_positive(lengths), np.float32)
    with np.errstate(over="ignore"):
        quantity = np.abs(_QUANTITIES[metric](in_unit(rows, exponent)))
    median = _median_of_positive(quantity[np.triu_indices_from(quantity, k=1)])
    return _inverse(median, _POWERS[metric] * exponent)


def scale_gamma(X: Floats) -> float:
    """Return 1 / (d Var X)."""
    exponent = exponent_of(largest_entry(_sample(X)), np.float32)
    # By chunks of rows: NumPy's var would copy all data to float64.
    starts = range(0, len(X), 1024)
    chunks = (in_unit(X[i : i + 1024], exponent) for i in starts)
    mean = sum(float(chunk.sum(dtype=np.float64)) for chunk in chunks) / X.size
    chunks = (in_unit(X[i : i + 1024], exponent) for i in starts)
    with np.errstate(over="ignore"):
        squares = sum(float(np.square(chunk - mean).sum()) for chunk in chunks)
    return _inverse(X.shape[1] * squares / X.size, 2 * exponent)


def in_units(metric: str, X: Any, Y: Any, gamma: float | None) -> tuple[Any, Any, float | None]:
    r"""Return rows and γ in a unit u, a power of two, in which the kernel does not change.

    .. math:: \gamma \|x - y\|^2 = (\gamma u^2) \, \| x / u - y / u \|^2

    It is near the length at which the kernel falls, and 1 if squares of that are in float32. Rows
    may be arrays or tensors.
    """
    if gamma is None or metric not in _POWERS:
        return X, Y, gamma
    exponent = exponent_of(gamma ** (-1 / _POWERS[metric]), np.float32)
    if exponent == 0:
        return X, Y, gamma
    exponent = max(-MOST, min(MOST, exponent))
    per_unit = 2.0**-exponent
    gamma = math.ldexp(gamma, _POWERS[metric] * exponent)
    return X * per_unit, None if Y is None else Y * per_unit, gamma


def _sample(X: Floats) -> NDArray[Any]:
    """Return a sample of the rows, and refuse what are none."""
    rows = real_numbers(X[sample_rows(len(X), N_MEDIAN_ROWS)], "X")
    with naming("X", rows):
        return np.asarray(check_array(rows, dtype=[np.float64, np.float32]))


def _median_of_positive(values: NDArray[Any]) -> float:
    # Duplicated rows are at distance zero and say nothing about the scale.
    positive = values[values > 0]
    return float(np.median(positive)) if positive.size else 0.0


def _inverse(value: float, exponent: int) -> float:
    """Return 1 / (2ᵉ · value)."""
    if not math.isfinite(value):
        raise ValueError(
            "X has rows so far apart that their distances leave float32: leave out such rows, "
            "scale X, or pass gamma as a number"
        )
    if value == 0:
        return 1.0  # all rows are equal: the kernel is constant, whatever γ is
    mantissa, own = math.frexp(1.0 / value)
    if abs(own - exponent) > 1000:
        raise ValueError(
            "X has entries so large or small (beyond 1e±150) that γ is no number in float64: scale "
            "X, for example to [0, 1]"
        )
    return math.ldexp(mantissa, own - exponent)
