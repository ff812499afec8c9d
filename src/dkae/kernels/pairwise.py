"""Kernels that are functions of two vectors: by name, any callable, any Gaussian-process kernel."""

import math
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

import numpy as np
from sklearn.metrics.pairwise import check_pairwise_arrays, kernel_metrics, pairwise_kernels
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import naming
from dkae._support.checks import check_choice, check_mapping, check_number, check_takes
from dkae._support.states import check_finite_number
from dkae.grams import Floats
from dkae.kernels.bandwidth import choose_gamma, in_units
from dkae.kernels.base import Kernel, vectors
from dkae.rows import as_rows


def pairwise_names() -> list[str]:
    """Return the names that scikit-learn's ``pairwise_kernels`` knows."""
    return sorted(kernel_metrics())


class PairwiseKernel(Kernel):
    """A kernel of scikit-learn's ``pairwise_kernels``, by name.

    Parameters
    ----------
    metric : str, default="rbf"
        One of :func:`pairwise_names`.
    gamma : {"median", "scale"}, float or None, default="median"
        See :mod:`dkae.kernels.bandwidth`. Kernels without a γ ignore it.
    degree, coef0 : float
        Parameters of the polynomial and the sigmoid kernel; others ignore them.

    Attributes
    ----------
    gamma_ : float or None
        The chosen γ; None for a kernel without one.
    """

    takes_missing = False

    def __init__(
        self,
        metric: str = "rbf",
        *,
        gamma: str | float | None = "median",
        degree: float = 3,
        coef0: float = 1,
    ) -> None:
        self.metric = metric
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __str__(self) -> str:
        return f"kernel {self.metric!r}"

    def fit(self, X: Floats, y: object = None) -> Self:
        check_choice("kernel", self.metric, pairwise_names())
        check_number("degree", self.degree, 0)
        check_number("coef0", self.coef0, -math.inf)
        self.gamma_ = choose_gamma(self.gamma, self.metric, vectors(as_rows(X)))
        return self

    def _check_state(self) -> None:
        check_choice("kernel", self.metric, pairwise_names())
        for name in ("degree", "coef0"):
            check_finite_number(name, getattr(self, name))
        if getattr(self, "gamma_", None) is not None:
            check_number("gamma_", self.gamma_, 0)

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        check_is_fitted(self)
        X, Y = vectors(X), None if Y is None else vectors(Y)
        with _naming(X, Y):
            if self.metric == "cosine":
                X, Y = _unit_rows(X), None if Y is None else _unit_rows(Y)
            if self.metric.endswith("chi2"):  # scikit-learn's loops take no read-only arrays
                X, Y = _writeable(X), None if Y is None else _writeable(Y)
            X, Y, gamma = in_units(self.metric, X, Y, self.gamma_)
            params = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
            return pairwise_kernels(X, Y, metric=self.metric, filter_params=True, **params)


def _naming(X: Any, Y: Any) -> AbstractContextManager[None]:
    """Name the rows in errors of scikit-learn, which checks both and does not say which it was."""
    return naming("X", X) if Y is None else naming("X or Y", X, "X", "Y")


def _unit_rows(X: Any) -> Any:
    """Return rows in units, powers of two, of their largest entries: lengths need squares."""
    rows = check_array(X, dtype=[np.float64, np.float32])
    return np.ldexp(rows, -np.frexp(np.abs(rows).max(axis=1, keepdims=True))[1])


def _writeable(X: Any) -> Any:
    return np.require(X, requirements=["WRITEABLE"])


class FunctionKernel(Kernel):
    """Any callable ``(X, Y, **params) -> Gram`` on the rows of two arrays.

    Unlike scikit-learn's kernel callables it takes whole arrays, not single rows: one call a batch.
    """

    def __init__(
        self, function: Callable[..., Any], params: Mapping[str, Any] | None = None
    ) -> None:
        self.function = function
        self.params = params

    def __str__(self) -> str:
        return f"kernel {getattr(self.function, '__name__', repr(self.function))}"

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        params = check_mapping("params", self.params)
        check_takes("kernel", self.function, "two arrays of rows", 2, params)
        return self.function(X, X if Y is None else Y, **params)


class GaussianProcessKernel(Kernel):
    """A kernel of ``sklearn.gaussian_process.kernels``, sums and products included."""

    takes_missing = False

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __str__(self) -> str:
        return f"kernel {self.kernel}"

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        check_takes("kernel", self.kernel, "two arrays of rows", 2)
        if getattr(self.kernel, "requires_vector_input", True):  # others take what they like
            with _naming(X, Y):
                X, other = check_pairwise_arrays(X, Y)
            Y = None if Y is None else other
        return self.kernel(X, Y)
