"""The base class of all kernels.

A :class:`Kernel` is a function κ(x, y); `kernel.on(X)` is its Gram matrix on n fixed rows, read
block by block. A new kernel is a subclass with one method, ``evaluate``. It overrides ``on`` too if
its Gram is cheaper to compute from something that is computed once for all rows.

Rows may be on a disk, in any array with shape, dtype and indexing: those of a block are read.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from dkae._support.arrays import as_array, finite_numbers, real_numbers
from dkae._support.states import StateMixin
from dkae.grams import Floats, Gram, RowsGram, finite_float32
from dkae.rows import RowArray, as_rows


def vectors(X: Any) -> Any:
    """Return rows as vectors: images and sequences are flattened."""
    if len(getattr(X, "shape", ())) <= 2:
        return X
    return X.flattened() if isinstance(X, RowArray) else X.reshape(len(X), -1)


def check_kernel(kernel: Any) -> Kernel:
    """Return a kernel, and refuse what is none."""
    if isinstance(kernel, Kernel):
        return kernel
    raise TypeError(
        f"kernel is a {type(kernel).__name__}: kernels are made of kernels, pass one of "
        "dkae.kernels, such as PairwiseKernel('rbf') or FunctionKernel(function)"
    )


def fitted(kernel: Kernel, X: Any, y: object) -> Kernel:
    """Return a kernel that is fitted as it is, and a fitted copy of any other."""
    check_kernel(kernel)
    # A shallow copy: scikit-learn's clone would unfit the parts of a sum or product.
    return kernel if kernel.__sklearn_is_fitted__() else copy.copy(kernel).fit(X, y)


class Kernel(StateMixin, BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """A kernel function κ(x, y), with parameters in scikit-learn's convention."""

    #: Whether it takes rows with missing values, NaN; one that does not sees means in their place.
    takes_missing: ClassVar[bool] = True
    #: Whether it is an inner product of explicit features, which ``feature_matrix`` returns.
    has_features: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return its name in error messages."""
        return f"kernel {type(self).__name__}"

    @abstractmethod
    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        """Return the matrix κ(x_i, y_j); `Y` is None if it is `X` itself."""

    def fit(self, X: Floats, y: object = None) -> Self:
        """Learn what depends on the data, such as a bandwidth. Most kernels learn nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Say whether `fit` has learnt something; a kernel that learns nothing is never fitted."""
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
        """Return what `evaluate` gives for rows, checked for shape."""
        X, Y = np.asarray(as_rows(X)), None if Y is None else np.asarray(as_rows(Y, "Y"))
        gram = as_array(self.evaluate(X, Y), str(self))
        expected = (len(X), len(X if Y is None else Y))
        if gram.shape != expected:
            raise ValueError(
                f"{self} returned an array of shape {gram.shape}, expected {expected}: "
                "it must map the rows X and Y to the Gram block of all their pairs"
            )
        return gram

    def diag(self, X: Floats) -> Floats:
        """Return κ(x, x) of each row, from blocks along the diagonal."""
        return self.on(X).diagonal()

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        """Return the Gram matrix of the rows of `X`, read block by block.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Rows, in memory or on a disk.
        cache_bytes : float, optional
            What a kernel with features or other descriptions of rows may hold of them. If those of
            all rows would take more, they are computed for each block. 0 is never to hold them;
            by default it is a quarter of the memory. Kernels that hold nothing ignore it.
        """
        return RowsGram(as_rows(X), self._block, str(self), self)

    def towards(self, rows: Any) -> KernelRows:
        """Return κ(·, rows) as a function of other rows; what it needs of `rows` is kept."""
        return KernelRows(self, rows)

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


class KernelRows:
    """The function κ(·, rows) of a fitted kernel and fixed rows."""

    def __init__(self, kernel: Kernel, rows: Any) -> None:
        self.kernel = kernel
        gram = kernel.on(rows)
        self.function = gram.function if isinstance(gram, RowsGram) else None
        # Posteriors and other features of the rows are computed here, once, and held.
        self.kept = gram.kept() if isinstance(gram, RowsGram) else rows

    def __call__(self, X: Any) -> Floats:
        if self.function is None:
            return self.kernel.gram(X, self.kept)
        others = self.kernel.on(X).kept()  # type: ignore[attr-defined]
        return finite_float32(self.function(others, self.kept), str(self.kernel))
