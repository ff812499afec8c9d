"""The base class of all kernels.

A :class:`Kernel` is a function κ(x, y); `kernel.on(X)` is its Gram matrix on n fixed rows, read
block by block. A new kernel is a subclass with one method, ``evaluate``. It overrides ``on`` too if
its Gram is cheaper to compute from something that is computed once for all rows.

Rows may be on a disk, in any array with shape, dtype and indexing: those of a block are read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dkae._support.arrays import (
    REAL_KINDS,
    as_array,
    check_magnitude,
    finite_numbers,
    real_numbers,
)
from dkae.grams import Floats, Gram, RowsGram, finite_float32
from dkae.rows import RowArray, as_rows

#: A function of rows (n, d) that returns their kernel values with m fixed rows, (n, m) in float32.
RowsFunction: TypeAlias = Callable[[Any], Floats]


def vectors(X: Any) -> Any:
    """Return rows as vectors: images and sequences are flattened."""
    if len(getattr(X, "shape", ())) <= 2:
        return X
    return X.flattened() if isinstance(X, RowArray) else X.reshape(len(X), -1)


class Kernel(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """A kernel function κ(x, y), with parameters in scikit-learn's convention."""

    #: Whether it takes rows with missing values, NaN; other kernels see means in their place.
    takes_missing: ClassVar[bool] = True
    #: Whether it is an inner product of explicit features, which ``feature_matrix`` returns.
    has_features: ClassVar[bool] = False
    #: Whether it can be evaluated at rows that it was not given before.
    knows_new_rows: ClassVar[bool] = True
    #: Whether `towards` computes it by a formula in torch.
    has_formula: ClassVar[bool] = False
    #: Whether the units of features change it: a feature with large numbers then hides the others.
    depends_on_units: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return the name of the kernel in error messages."""
        return f"kernel {type(self).__name__}"

    @abstractmethod
    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        """Return the matrix κ(x_i, y_j); `Y` is None if it is `X` itself."""

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn parameters from the data, such as a bandwidth.

        Most kernels learn nothing; those do not look at `X`, which may be None.
        """
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether `fit` has learned something; a kernel without parameters never has."""
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def gram(self, X: Floats, Y: Floats | None = None) -> Floats:
        """Return κ(X, Y) in float32, checked for shape and finite values."""
        return finite_float32(self._block(X, Y), str(self))

    def values(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return κ(X, Y) in the precision of its computation, with the same checks."""
        values = real_numbers(self._block(X, Y), str(self))
        finite_numbers(values, str(self), "check the kernel and its parameters, or scale X")
        return values

    def _block(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return the matrix of `evaluate` for rows from anywhere."""
        return self._evaluated(_in_memory(X, "X"), None if Y is None else _in_memory(Y, "Y"))

    def _evaluated(self, X: Any, Y: Any) -> NDArray[Any]:
        """Return the matrix of `evaluate`, checked for shape."""
        gram = as_array(self.evaluate(X, Y), str(self))
        expected = (len(X), len(X if Y is None else Y))
        if gram.shape != expected:
            raise ValueError(
                f"{self} returned an array of shape {gram.shape}, expected {expected}: "
                "it must map the rows X and Y to the Gram block of all their pairs"
            )
        return gram

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        """Return the Gram matrix of the rows of `X`, read block by block.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Rows, in memory or on a disk.
        cache_bytes : float, optional
            Memory for the features of all rows, of kernels that have features. If they would take
            more, they are computed for each block; with 0, always. A quarter of the memory by
            default. Kernels without features ignore it.
        """
        rows = as_rows(X)
        return self._gram_of(_checked(rows, "X") if isinstance(rows, np.ndarray) else rows)

    def towards(self, rows: Any) -> RowsFunction:
        """Return the function κ(·, rows) of other rows.

        Everything that depends on `rows` alone is computed once, and held: norms, features,
        posteriors. The function maps an array (n, d) to a float32 array (n, m).
        """
        describe = self._describer()
        gram = self._gram_of(describe(rows))
        return partial(_with, gram.function, describe, gram.rows, str(self))

    def _describer(self) -> Callable[[Any], Any]:
        """Return the function from rows to what the kernel needs of them: here, the rows."""
        return as_rows

    def _gram_of(self, described: Any) -> RowsGram:
        """Return the Gram matrix of described rows."""
        return RowsGram(described, self._evaluated, str(self), self)

    def __add__(self, other: Kernel) -> Kernel:
        from dkae.kernels.compose import SumKernel

        if not isinstance(other, Kernel):
            return NotImplemented
        return SumKernel([self, other])

    def __mul__(self, other: Kernel | Real | float) -> Kernel:
        from dkae.kernels.compose import ProductKernel, SumKernel

        if isinstance(other, Kernel):
            return ProductKernel([self, other])
        if not isinstance(other, Real):
            return NotImplemented
        return SumKernel([self], [float(other)])

    __rmul__ = __mul__


def _with(function: Any, describe: Callable[[Any], Any], held: Any, name: str, X: Any) -> Floats:
    return finite_float32(function(describe(X), held), name)


def _in_memory(X: Any, name: str) -> NDArray[Any]:
    return _checked(np.asarray(as_rows(X, name)), name)


def _checked(rows: NDArray[Any], name: str) -> NDArray[Any]:
    if rows.dtype.kind in REAL_KINDS:
        check_magnitude(rows, name)
    return rows
