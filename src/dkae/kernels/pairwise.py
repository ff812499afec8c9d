"""Kernels that are functions of two vectors: by name, any callable, any Gaussian-process kernel."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from sklearn.metrics.pairwise import check_pairwise_arrays
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import naming
from dkae._support.checks import check_choice, check_number, check_takes, shown
from dkae.grams import Floats
from dkae.kernels.base import Kernel, RowsFunction, vectors
from dkae.kernels.formulas import FORMULAS, Formula, choose_gamma, values_in_torch
from dkae.rows import as_rows


def pairwise_names() -> list[str]:
    """Return the names of kernels, those of scikit-learn's ``pairwise_kernels``."""
    return sorted(FORMULAS)


class PairwiseKernel(Kernel):
    """A kernel by name, one of scikit-learn's ``pairwise_kernels``.

    Parameters
    ----------
    metric : str, default="rbf"
        One of :func:`pairwise_names`; their formulas are in :mod:`dkae.kernels.formulas`.
    gamma : {"median", "scale"}, float or None, default="median"
        See :func:`dkae.kernels.choose_gamma`. The kernels "linear", "cosine" and "additive_chi2"
        have no γ and take no value but the default.
    degree : float, optional
        Degree of the polynomial kernel, 3 if not given. Other kernels have none.
    coef0 : float, optional
        The constant of the polynomial and the sigmoid kernel, 1 if not given. Others have none.

    Attributes
    ----------
    gamma_ : float or None
        The chosen γ; None for a kernel without one.
    """

    takes_missing = False
    depends_on_units = True

    def __init__(
        self,
        metric: str = "rbf",
        *,
        gamma: str | float | None = "median",
        degree: float | None = None,
        coef0: float | None = None,
    ) -> None:
        self.metric = metric
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __str__(self) -> str:
        return f"kernel {self.metric!r}"

    @property
    def _formula(self) -> Formula:
        return FORMULAS[check_choice("kernel", self.metric, FORMULAS)]

    @property
    def has_formula(self) -> bool:  # type: ignore[override]
        # A subclass may compute something else.
        return type(self) is PairwiseKernel and self._formula.quantity.prepare is not None

    def fit(self, X: Any, y: object = None) -> Self:
        self.check_params()
        self.gamma_ = choose_gamma(self.gamma, self.metric, X)
        return self

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        check_is_fitted(self)
        X, Y = vectors(X), None if Y is None else vectors(Y)
        with _naming(X, Y):
            return self._formula.function(
                np, self._formula.quantity.of_arrays(X, Y), **self._params()
            )

    def towards(self, rows: Any) -> RowsFunction:
        """Return κ(·, rows), by the formula in torch and float32 if the kernel has one."""
        check_is_fitted(self)
        prepare = self._formula.quantity.prepare
        if prepare is None or not self.has_formula:
            return super().towards(rows)
        with naming("rows", rows):
            held = check_array(
                np.asarray(vectors(as_rows(rows, "rows"))), dtype=np.float32, copy=True
            )
        prepared = prepare(torch.from_numpy(held))
        return partial(values_in_torch, self.metric, self._params(), prepared, str(self))

    def check_params(self) -> None:
        """Raise if a parameter is out of range, or one that the kernel does not have."""
        known = self._formula.params
        for name, low in (("degree", 0), ("coef0", -math.inf)):
            if getattr(self, name) is not None:
                check_number(name, getattr(self, name), low)
        for name, default in (("gamma", "median"), ("degree", None), ("coef0", None)):
            value = shown(getattr(self, name))
            if value != repr(default) and name not in known:
                has = " and ".join(known) if known else "no parameters"
                raise ValueError(
                    f"{name}={value} is not a parameter of {self}, which has {has}: leave it out"
                )

    def _params(self) -> dict[str, float]:
        """Return the parameters of the formula."""
        values: dict[str, Any] = {
            "gamma": self.gamma_,
            "degree": 3 if self.degree is None else self.degree,
            "coef0": 1 if self.coef0 is None else self.coef0,
        }
        return {name: values[name] for name in self._formula.params}


def _naming(X: Any, Y: Any) -> AbstractContextManager[None]:
    """Name the rows in errors of scikit-learn, which do not tell X from Y."""
    return naming("X", X) if Y is None else naming("X or Y", X, "X", "Y")


class FunctionKernel(Kernel):
    """Any callable ``(X, Y) -> Gram`` on the rows of two arrays.

    Unlike scikit-learn's kernel callables it takes whole arrays, not single rows: one call a batch.
    ``functools.partial`` gives it parameters.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __str__(self) -> str:
        return f"kernel {getattr(self.function, '__name__', repr(self.function))}"

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        check_takes("kernel", self.function, "two arrays of rows", 2)
        return self.function(X, X if Y is None else Y)


class GaussianProcessKernel(Kernel):
    """A kernel of ``sklearn.gaussian_process.kernels``, sums and products included."""

    takes_missing = False

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel

    def __str__(self) -> str:
        return f"kernel {self.kernel}"

    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        check_takes("kernel", self.kernel, "two arrays of rows", 2)
        if getattr(self.kernel, "requires_vector_input", True):  # others take rows of any kind
            with _naming(X, Y):
                X, other = check_pairwise_arrays(X, Y)
            Y = None if Y is None else other
        return self.kernel(X, Y)
