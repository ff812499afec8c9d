r"""Heuristics that choose γ from the data.

``"median"``
    γ is the inverse of the median, over pairs of rows, of the quantity that γ multiplies (see
    :mod:`dkae.kernels.formulas`): the L1 distance of the Laplacian kernel, the χ² distance, the
    absolute inner product of the polynomial and the sigmoid kernel. For the RBF kernel it is the
    customary :math:`1 / (2 \sigma^2)` with σ the median Euclidean distance.
``"scale"``
    :math:`1 / (d \operatorname{Var}(X))`, as in scikit-learn's SVC.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from dkae._support.arrays import check_magnitude, largest_entry, naming, real_numbers
from dkae._support.checks import check_choice, check_number
from dkae.grams import Floats, sample_rows
from dkae.kernels.formulas import FORMULAS

HEURISTICS = ("median", "scale")

#: Rows whose pairs the median is over: half a million pairs.
N_MEDIAN_ROWS = 1000
#: Rows whose variance is computed together.
N_CHUNK_ROWS = 1024
#: Squares of smaller numbers than this leave float32.
LEAST = 1e-15


def choose_gamma(gamma: str | float | None, metric: str, X: Floats) -> float | None:
    """Return γ for the kernel `metric`, or None if that kernel has no γ.

    `gamma` is a heuristic, a number, or None for 1 / n_features as in scikit-learn.
    """
    if isinstance(gamma, str):
        check_choice("gamma", gamma, HEURISTICS)
    elif gamma is not None:
        gamma = check_number("gamma", gamma, 0, open_low=True)
    if "gamma" not in FORMULAS[metric].params:
        return None
    if gamma == "median":
        return median_gamma(metric, X)
    if gamma == "scale":
        return scale_gamma(X)
    return 1.0 / _checked(X[:1]).shape[1] if gamma is None else float(gamma)


def median_gamma(metric: str, X: Floats) -> float:
    """Return the inverse of the median of what γ multiplies."""
    formula = FORMULAS[metric]
    quantity = np.abs(formula.multiple * formula.quantity.of_arrays(_sample(X)))
    pairs = quantity[np.triu_indices_from(quantity, k=1)]
    # Duplicated rows are at distance zero and say nothing about the scale.
    positive = pairs[pairs > 0]
    return _inverse(float(np.median(positive))) if positive.size else 1.0


def scale_gamma(X: Floats) -> float:
    """Return 1 / (d Var X)."""
    _sample(X)  # checked
    # By chunks of rows: NumPy's var would copy all data to float64.
    starts = range(0, len(X), N_CHUNK_ROWS)
    chunks = (X[i : i + N_CHUNK_ROWS] for i in starts)
    mean = sum(float(chunk.sum(dtype=np.float64)) for chunk in chunks) / X.size
    chunks = (X[i : i + N_CHUNK_ROWS] for i in starts)
    with np.errstate(over="ignore"):
        squares = sum(float(np.square(chunk - mean).sum()) for chunk in chunks)
    return _inverse(X.shape[1] * squares / X.size)


def _sample(X: Floats) -> NDArray[Any]:
    """Return a sample of the rows, checked."""
    rows = _checked(X[sample_rows(len(X), N_MEDIAN_ROWS)])
    check_magnitude(rows, "X")
    if 0 < largest_entry(rows) < LEAST:
        raise ValueError(
            f"X has entries up to {largest_entry(rows):.3g}: squares of numbers below {LEAST:g} "
            "leave float32 arithmetic, scale X (for example with standardize=True)"
        )
    return rows


def _checked(rows: Any) -> NDArray[Any]:
    numbers = real_numbers(rows, "X")
    with naming("X", rows):
        return np.asarray(check_array(numbers, dtype=[np.float64, np.float32]))


def _inverse(value: float) -> float:
    if not np.isfinite(value):
        raise ValueError(
            "X has rows so far apart that their distances leave float32: leave out such rows, "
            "scale X, or pass gamma as a number"
        )
    return 1.0 / value if value else 1.0  # all rows are equal: the kernel is constant anyway
