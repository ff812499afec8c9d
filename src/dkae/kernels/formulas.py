r"""The kernels by name: each formula is written once, for NumPy and for torch.

A named kernel is a function of one quantity q of two rows:

=====================  =============================  ======================================
Name                   κ(x, y)                        q(x, y)
=====================  =============================  ======================================
rbf                    :math:`e^{-\gamma q}`          :math:`\|x - y\|_2^2`
laplacian              :math:`e^{-\gamma q}`          :math:`\|x - y\|_1`
chi2                   :math:`e^{-\gamma q}`          :math:`\sum_d (x_d-y_d)^2/(x_d+y_d)`
poly, polynomial       :math:`(\gamma q + c_0)^p`     :math:`\langle x, y \rangle`
sigmoid                :math:`\tanh(\gamma q + c_0)`  :math:`\langle x, y \rangle`
linear                 :math:`q`                      :math:`\langle x, y \rangle`
cosine                 :math:`q`                      :math:`\cos(x, y)`
additive_chi2          :math:`-q`                     that of chi2
=====================  =============================  ======================================

scikit-learn computes q of arrays. In torch, q(·, rows) of fixed rows is faster, in float32; the two
χ² kernels have no form in torch. γ may be chosen from the data, see :func:`choose_gamma`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics.pairwise import (
    additive_chi2_kernel,
    check_pairwise_arrays,
    euclidean_distances,
    linear_kernel,
    manhattan_distances,
)
from sklearn.utils import check_array
from sklearn.utils.extmath import row_norms
from torch import Tensor
from torch.nn import functional as F

from dkae._support.arrays import check_magnitude, largest_entry, naming, real_numbers
from dkae._support.checks import check_choice, check_number
from dkae._support.devices import float32_math
from dkae.grams import Floats, finite_float32, sample_ids
from dkae.kernels.base import vectors
from dkae.rows import as_rows

Tensors = tuple[Tensor, ...]

#: Rows whose pairs the median is over: half a million pairs.
N_MEDIAN_ROWS = 1000
#: Rows whose variance is computed together.
N_CHUNK_ROWS = 1024
#: Squares of smaller numbers than this leave float32.
LEAST = 1e-15


class Quantity(NamedTuple):
    """What a formula is a function of, q(X, Y)."""

    #: ``of_arrays(X, Y)``; without Y it is X itself.
    of_arrays: Callable[..., NDArray[Any]]
    #: Computes once what depends on the rows y alone; without it there is no form in torch.
    prepare: Callable[[Tensor], Tensors] | None = None
    #: ``of_tensors(x, *prepared)``.
    of_tensors: Callable[..., Tensor] | None = None


class Formula(NamedTuple):
    """A kernel as ``function(xp, q, **params)``, with xp the module numpy or torch."""

    quantity: Quantity
    function: Callable[..., Any]
    #: The parameters that the kernel has, of gamma, degree and coef0.
    params: tuple[str, ...] = ()
    #: The median heuristic makes γ the inverse of the median of this multiple of \|q\|.
    multiple: float = 1.0


# --- the quantities ------------------------------------------------------------------------------


def _chi2_distances(X: Any, Y: Any = None) -> NDArray[Any]:
    # The loops of scikit-learn need arrays that are writeable.
    X, Y = (None if a is None else np.require(a, requirements=["WRITEABLE"]) for a in (X, Y))
    distances: NDArray[Any] = -additive_chi2_kernel(X, Y)
    return distances


def _cosines(X: Any, Y: Any = None) -> NDArray[Any]:
    X, Y = check_pairwise_arrays(X, Y)
    # Not `normalize`, which takes lengths below 1e-6 for zero.
    a = X / _lengths(X)
    cosines: NDArray[Any] = a @ (a if Y is X else Y / _lengths(Y)).T
    return cosines


def _lengths(rows: NDArray[Any]) -> NDArray[Any]:
    lengths: NDArray[Any] = row_norms(rows)[:, None]
    return np.where(lengths > 0, lengths, lengths.dtype.type(1))


def _center(rows: Tensor) -> Tensors:
    # Around their mean: far from the origin, the squares of float32 would cancel.
    mean = rows.mean(dim=0)
    rows = rows - mean
    return mean, rows.T, rows.square().sum(dim=1)


def _squared_distances(x: Tensor, mean: Tensor, rows: Tensor, squares: Tensor) -> Tensor:
    x = x - mean
    return (x.square().sum(dim=1)[:, None] + squares - 2 * x @ rows).clamp(min=0)


def _unit(rows: Tensor) -> Tensor:
    return F.normalize(rows, eps=torch.finfo(rows.dtype).tiny)  # a row of zeros stays zero


SQUARED_DISTANCE = Quantity(partial(euclidean_distances, squared=True), _center, _squared_distances)
L1_DISTANCE = Quantity(manhattan_distances, lambda y: (y,), lambda x, y: torch.cdist(x, y, p=1))
INNER_PRODUCT = Quantity(linear_kernel, lambda y: (y.T,), torch.matmul)
COSINE = Quantity(_cosines, lambda y: (_unit(y).T,), lambda x, y: _unit(x) @ y)
CHI2_DISTANCE = Quantity(_chi2_distances)


# --- the formulas --------------------------------------------------------------------------------


def _exponential(xp: Any, q: Any, gamma: float) -> Any:
    return xp.exp(-gamma * q)


def _polynomial(xp: Any, q: Any, gamma: float, degree: float, coef0: float) -> Any:
    return (gamma * q + coef0) ** degree


_POLYNOMIAL = Formula(INNER_PRODUCT, _polynomial, ("gamma", "degree", "coef0"))

#: Every kernel of scikit-learn's ``pairwise_kernels``.
FORMULAS: dict[str, Formula] = {
    "additive_chi2": Formula(CHI2_DISTANCE, lambda xp, q: -q),
    "chi2": Formula(CHI2_DISTANCE, _exponential, ("gamma",)),
    "cosine": Formula(COSINE, lambda xp, q: q),
    "laplacian": Formula(L1_DISTANCE, _exponential, ("gamma",)),
    "linear": Formula(INNER_PRODUCT, lambda xp, q: q),
    "poly": _POLYNOMIAL,
    "polynomial": _POLYNOMIAL,
    # γ = 1 / (2 σ²), with σ the median distance.
    "rbf": Formula(SQUARED_DISTANCE, _exponential, ("gamma",), multiple=2.0),
    "sigmoid": Formula(
        INNER_PRODUCT, lambda xp, q, gamma, coef0: xp.tanh(gamma * q + coef0), ("gamma", "coef0")
    ),
}


def values_in_torch(
    metric: str, params: Mapping[str, float], prepared: Tensors, name: str, X: Any
) -> Floats:
    """Return κ(X, rows) of rows that are prepared, in torch and float32."""
    formula = FORMULAS[metric]
    assert formula.quantity.of_tensors is not None
    with naming("X", X), float32_math():
        x = torch.from_numpy(np.require(X, np.float32, ["C_CONTIGUOUS", "WRITEABLE"])).flatten(1)
        values = formula.function(torch, formula.quantity.of_tensors(x, *prepared), **params)
    return finite_float32(values.numpy(), name)


# --- γ -------------------------------------------------------------------------------------------


def choose_gamma(gamma: str | float | None, metric: str, X: Any) -> float | None:
    r"""Return γ for the kernel `metric`, or None if that kernel has no γ.

    Parameters
    ----------
    gamma : {"median", "scale"}, float or None
        "median" is the inverse of the median, over pairs of rows, of the quantity that γ
        multiplies: the L1 distance of the Laplacian kernel, the χ² distance, the absolute inner
        product of the polynomial and the sigmoid kernel. For the RBF kernel it is the customary
        :math:`1 / (2 \sigma^2)` with σ the median Euclidean distance. "scale" is
        :math:`1 / (d \operatorname{Var}(X))`, as in scikit-learn's SVC, and None 1 / n_features.
    metric : str
        The name of the kernel.
    X : array of shape (n_samples, n_features)
        Rows, in memory or on a disk; they are not read if γ is a number.
    """
    if isinstance(gamma, str):
        check_choice("gamma", gamma, ("median", "scale"))
    elif gamma is not None:
        gamma = check_number("gamma", gamma, 0, open_low=True)
    if "gamma" not in FORMULAS[metric].params:
        return None
    if isinstance(gamma, float):
        return gamma
    rows = vectors(as_rows(X))
    if gamma == "median":
        return _median_gamma(FORMULAS[metric], rows)
    return _scale_gamma(rows) if gamma == "scale" else 1.0 / _checked(rows[:1]).shape[1]


def _median_gamma(formula: Formula, X: Floats) -> float:
    """Return the inverse of the median of what γ multiplies."""
    quantity = np.abs(formula.multiple * formula.quantity.of_arrays(_sample(X)))
    pairs = quantity[np.triu_indices_from(quantity, k=1)]
    # Duplicated rows are at distance zero and say nothing about the scale.
    positive = pairs[pairs > 0]
    return _inverse(float(np.median(positive))) if positive.size else 1.0


def _scale_gamma(X: Floats) -> float:
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
    rows = _checked(X[sample_ids(len(X), N_MEDIAN_ROWS)])
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
