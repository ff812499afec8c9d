r"""Kernels made of kernels: weighted sums, products, cosine normalisation.

All work block by block: the block of a sum is the sum of the blocks, and so on. Operators build
them too: ``0.3 * a + b`` and ``a * b``.
"""

from __future__ import annotations

import copy
import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from dkae._support.checks import check_number, check_sequence
from dkae.grams import CombinedGram, Floats, Gram, RowsGram, finite_float32
from dkae.kernels.base import Kernel, RowsFunction


def normalize(kernel: Kernel) -> NormalizedKernel:
    """Return the cosine of the kernel: κ(x, y) / √(κ(x, x) κ(y, y))."""
    return NormalizedKernel(kernel)


class ComposedKernel(Kernel):
    """A kernel made of kernels, its parts: what holds for all of them holds for it."""

    @property
    def parts(self) -> list[Kernel]:
        """The kernels that it is made of, as they were passed."""
        kernels = getattr(self, "kernels", None)
        given = [self.kernel] if kernels is None else check_sequence("kernels", kernels)
        return [_check_kernel(kernel) for kernel in given]

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        return all(kernel.takes_missing for kernel in self.parts)

    @property
    def knows_new_rows(self) -> bool:  # type: ignore[override]
        return all(kernel.knows_new_rows for kernel in self.parts)

    @property
    def depends_on_units(self) -> bool:  # type: ignore[override]
        return any(kernel.depends_on_units for kernel in self.parts)


class _Combination(ComposedKernel):
    """A function of the values of several kernels, entry by entry."""

    kernels: Sequence[Kernel]

    @abstractmethod
    def _combine(self, *blocks: Floats) -> Floats:
        """Return the block of the kernel, given those of its parts."""

    def fit(self, X: Any, y: object = None) -> Self:
        kernels = check_sequence("kernels", self.kernels)
        if not kernels:
            raise ValueError("kernels is empty: pass at least one")
        self.kernels_ = [_fitted(kernel, X, y) for kernel in kernels]
        return self

    def evaluate(self, X: Any, Y: Any) -> Any:
        check_is_fitted(self)
        return self._combine(*(kernel.gram(X, Y) for kernel in self.kernels_))

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        check_is_fitted(self)
        return CombinedGram(_grams(self.kernels_, X, cache_bytes), self._combine, self)

    def towards(self, rows: Any) -> RowsFunction:
        check_is_fitted(self)
        functions = [kernel.towards(rows) for kernel in self.kernels_]
        return partial(_combined, self._combine, functions, str(self))


class SumKernel(_Combination):
    r"""Weighted sum, :math:`\sum_i w_i \kappa_i(x, y)` with :math:`w_i \ge 0`."""

    def __init__(self, kernels: Sequence[Kernel], weights: Sequence[float] | None = None) -> None:
        self.kernels = kernels
        self.weights = weights

    def fit(self, X: Any, y: object = None) -> Self:
        kernels = check_sequence("kernels", self.kernels)
        given = [1.0] * len(kernels) if self.weights is None else self.weights
        weights = check_sequence("weights", given)
        if len(weights) != len(kernels):
            raise ValueError(
                f"weights has {len(weights)} entries for {len(kernels)} kernels: pass as many"
            )
        # With a negative weight the sum need not be positive semi-definite.
        numbers = [np.float32(check_number("each of weights", w, 0)) for w in weights]
        super().fit(X, y)
        self.weights_ = numbers
        return self

    def _combine(self, *blocks: Floats) -> Floats:
        return reduce(operator.add, map(operator.mul, self.weights_, blocks))


class ProductKernel(_Combination):
    r"""Product, :math:`\prod_i \kappa_i(x, y)`."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = kernels

    def _combine(self, *blocks: Floats) -> Floats:
        return _multiply(*blocks)


class NormalizedKernel(ComposedKernel):
    r"""Cosine normalisation, :math:`\kappa(x, y) / \sqrt{\kappa(x, x) \kappa(y, y)}`.

    Where κ(x, x) is not positive, x has no direction and the result is 0.
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def fit(self, X: Any, y: object = None) -> Self:
        self.kernel_ = _fitted(self.kernel, X, y)
        return self

    def evaluate(self, X: Any, Y: Any) -> Any:
        check_is_fitted(self)
        a = _inverse_roots(self.kernel_.on(X))
        b = a if Y is None else _inverse_roots(self.kernel_.on(Y))
        return a[:, None] * self.kernel_.gram(X, Y) * b

    def towards(self, rows: Any) -> RowsFunction:
        check_is_fitted(self)
        return partial(
            self._towards, self.kernel_.towards(rows), _inverse_roots(self.kernel_.on(rows))
        )

    def _towards(self, values: RowsFunction, b: Floats, X: Any) -> Floats:
        a = _inverse_roots(self.kernel_.on(X))
        return finite_float32(a[:, None] * values(X) * b, str(self))

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        check_is_fitted(self)
        (gram,) = _grams([self.kernel_], X, cache_bytes)
        factors = RowsGram(_inverse_roots(gram), _outer, str(self))
        return CombinedGram([gram, factors], _multiply, self)


def _check_kernel(kernel: Any) -> Kernel:
    """Return a kernel if it is one."""
    if isinstance(kernel, Kernel):
        return kernel
    raise TypeError(
        f"kernel is a {type(kernel).__name__}: kernels are made of kernels, pass one of "
        "dkae.kernels, such as PairwiseKernel('rbf') or FunctionKernel(function)"
    )


def _fitted(kernel: Kernel, X: Any, y: object) -> Kernel:
    """Return a fitted kernel as it is, and a fitted copy of any other."""
    _check_kernel(kernel)
    # A shallow copy: scikit-learn's clone would unfit the parts of a sum or product.
    return kernel if kernel.__sklearn_is_fitted__() else copy.copy(kernel).fit(X, y)


def _grams(kernels: Sequence[Kernel], X: Any, cache_bytes: float | None) -> list[Gram]:
    """Return the Gram of each kernel; each may hold an equal share of the bytes."""
    if cache_bytes is None:  # a custom kernel may take nothing but X
        return [kernel.on(X) for kernel in kernels]
    share = check_number("cache_bytes", cache_bytes, 0) / len(kernels)
    return [kernel.on(X, cache_bytes=share) for kernel in kernels]


def _combined(
    combine: Callable[..., Any], functions: Sequence[RowsFunction], name: str, X: Any
) -> Floats:
    return finite_float32(combine(*(function(X) for function in functions)), name)


def _multiply(*blocks: Floats) -> Floats:
    return reduce(operator.mul, blocks)


def _outer(a: Floats, b: Floats | None) -> Any:
    return np.multiply.outer(a, a if b is None else b)


def _inverse_roots(gram: Gram) -> Floats:
    """Return 1 / √κ(x, x) of each row, or 0 where κ(x, x) is not positive."""
    diagonal, tiny = gram.diagonal(), np.finfo(np.float32).tiny
    return np.where(diagonal > 0, 1 / np.sqrt(np.maximum(diagonal, tiny)), 0).astype(np.float32)
