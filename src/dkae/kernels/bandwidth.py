r"""Heuristics that choose γ from the data.

``"median"``
    γ is the inverse of the median, over pairs of rows, of the quantity that γ multiplies:
    the L1 distance of the Laplacian kernel, the χ² distance, the absolute inner product of the
    polynomial and the sigmoid kernel. For the RBF kernel it is the customary
    :math:`1 / (2 \sigma^2)` with σ the median Euclidean distance.
``"scale"``
    :math:`1 / (d \operatorname{Var}(X))`, as in scikit-learn's SVC.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import (
    euclidean_distances,
    linear_kernel,
    manhattan_distances,
    pairwise_kernels,
)

from dkae._runtime.checks import check_choice, check_number
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


def choose_gamma(gamma: str | float | None, metric: str, X: Floats) -> float | None:
    """Return γ for scikit-learn's kernel `metric`, or None if that kernel has no γ.

    `gamma` is a heuristic, a number, or None for 1 / n_features as in scikit-learn.
    """
    if isinstance(gamma, str):
        check_choice("gamma", gamma, HEURISTICS)
    elif gamma is not None:
        gamma = check_number("gamma", gamma, 0, open_low=True)
    if metric not in _QUANTITIES:
        return None
    if gamma == "median":
        return median_gamma(metric, X)
    if gamma == "scale":
        return scale_gamma(X)
    return 1.0 / X.shape[1] if gamma is None else float(gamma)


def median_gamma(metric: str, X: Floats) -> float:
    """Return the inverse of the median of what γ multiplies."""
    quantity = np.abs(_QUANTITIES[metric](X[sample_rows(len(X), N_MEDIAN_ROWS)]))
    return _inverse(_median_of_positive(quantity[np.triu_indices_from(quantity, k=1)]))


def scale_gamma(X: Floats) -> float:
    """Return 1 / (d Var X)."""
    # By chunks of rows: NumPy's var would copy all data to float64.
    starts = range(0, len(X), 1024)
    mean = sum(float(X[i : i + 1024].sum(dtype=np.float64)) for i in starts) / X.size
    squares = sum(float(np.square(X[i : i + 1024] - mean).sum()) for i in starts)
    return _inverse(X.shape[1] * squares / X.size)


def _median_of_positive(values: NDArray[Any]) -> float:
    # Duplicated rows are at distance zero and say nothing about the scale.
    positive = values[values > 0]
    return float(np.median(positive)) if positive.size else 0.0


def _inverse(value: float) -> float:
    # All rows equal: the kernel is constant, whatever γ is.
    return 1.0 / value if value > 0 else 1.0
