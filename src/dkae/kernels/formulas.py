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
χ² kernels have no form in torch.
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
from sklearn.utils.extmath import row_norms
from torch import Tensor
from torch.nn import functional as F

from dkae._support.arrays import naming
from dkae._support.devices import float32_math
from dkae.grams import Floats, finite_float32

Tensors = tuple[Tensor, ...]


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
