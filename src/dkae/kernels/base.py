"""What a kernel is to dkae, and how its Gram matrix is read block by block.

A :class:`Kernel` is a function κ(x, y). A :class:`Prior` is the Gram matrix P of that function on
n fixed rows, which is never held whole: training asks for the block of the rows of a batch.
A new kernel is one class with one method, ``evaluate``; one whose Gram is cheaper from something
computed once for all rows overrides ``on`` as well.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from numbers import Real
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

__all__ = [
    "FixedPrior",
    "Floats",
    "Kernel",
    "Prior",
    "Rows",
    "RowsPrior",
    "check_block",
    "check_symmetry",
    "diagonal_of",
    "finite_float32",
    "sample_rows",
]

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]

#: Rows of the blocks along the diagonal.
N_DIAGONAL_ROWS = 64
#: A Gram may differ from its transpose by this part of its largest entry (float32 round-off).
SYMMETRY_TOLERANCE = 1e-4
#: Negative eigenvalues below this share of the spectrum's mass are round-off.
NEGATIVE_MASS_TOLERANCE = 1e-4


class Prior(Protocol):
    """The Gram matrix P of n fixed rows, read block by block."""

    def __len__(self) -> int:
        """Return the number n of rows."""
        ...

    def block(self, rows: Rows, columns: Rows | None = None) -> Floats:
        """Return P[rows][:, columns] in float32; without `columns`, the square block of `rows`."""
        ...


class Kernel(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is untyped
    """A kernel function κ(x, y), with its parameters as a scikit-learn estimator has them."""

    def __str__(self) -> str:
        """Return how error messages call it."""
        return f"kernel {type(self).__name__}"

    @abstractmethod
    def evaluate(self, X: Floats, Y: Floats | None) -> Any:
        """Return the matrix κ(x_i, y_j); `Y` is None where it is `X` itself."""

    def fit(self, X: Floats, y: object = None) -> Self:
        """Learn what depends on the data, such as a bandwidth. Most kernels learn nothing."""
        return self

    def gram(self, X: Floats, Y: Floats | None = None) -> Floats:
        """Return κ(X, Y) in float32, checked for shape and finite values."""
        return finite_float32(self.values(X, Y), str(self))

    def values(self, X: Any, Y: Any = None) -> NDArray[Any]:
        """Return κ(X, Y) in the precision that it is computed in, checked for shape."""
        gram = np.asarray(self.evaluate(X, Y))
        expected = (len(X), len(X if Y is None else Y))
        if gram.shape != expected:
            raise ValueError(
                f"{self} returned an array of shape {gram.shape}, expected {expected}: "
                "it must map the rows X and Y to the Gram block of all their pairs"
            )
        return gram

    def diag(self, X: Floats) -> Floats:
        """Return κ(x, x) of each row, from blocks along the diagonal."""
        return diagonal_of(self.on(X))

    def on(self, X: Floats) -> Prior:
        """Return the Gram matrix of the rows of `X`, to be read block by block."""
        return RowsPrior(self, X)

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


class RowsPrior:
    """The prior of a kernel that is evaluated anew for each block."""

    def __init__(self, kernel: Kernel, X: Floats) -> None:
        self.kernel = kernel
        self.X = X

    def __len__(self) -> int:
        return len(self.X)

    def block(self, rows: Rows, columns: Rows | None = None) -> Floats:
        return self.kernel.gram(self.X[rows], None if columns is None else self.X[columns])


def diagonal_of(prior: Prior) -> Floats:
    """Return the diagonal of the Gram matrix, from small blocks along it."""
    n = len(prior)
    chunks = [np.arange(i, min(i + N_DIAGONAL_ROWS, n)) for i in range(0, n, N_DIAGONAL_ROWS)]
    return np.concatenate([prior.block(rows).diagonal() for rows in chunks])


class FixedPrior:
    """The prior of rows whose Gram matrix is at hand."""

    def __init__(self, gram: Floats) -> None:
        self.gram = gram

    def __len__(self) -> int:
        return len(self.gram)

    def block(self, rows: Rows, columns: Rows | None = None) -> Floats:
        return self.gram[np.ix_(rows, rows if columns is None else columns)]


def check_block(block: Floats, name: str) -> None:
    """Look at the Gram of a sample of rows: refuse what is not a kernel, warn of what is not PSD.

    Every principal block of a positive semi-definite matrix is positive semi-definite, so what is
    wrong in the sample is wrong in the whole; what is wrong elsewhere goes unseen.
    """
    sample = block.astype(np.float64)
    largest = np.abs(sample).max()
    if largest == 0:
        raise ValueError(
            f"{name} is zero on all of {len(sample)} sampled rows: there is nothing to align with"
        )
    check_symmetry(np.abs(sample - sample.T).max(), largest, name)
    negative = negative_mass(sample)
    if negative > NEGATIVE_MASS_TOLERANCE:
        warnings.warn(
            f"{name} is not positive semi-definite: on {len(sample)} sampled rows "
            f"{100 * negative:.3g} % of the mass of its eigenvalues is negative. Inner products "
            "of codes cannot represent that part; the rest is learnt.",
            UserWarning,
            stacklevel=4,
        )


def check_symmetry(asymmetry: float, largest: float, name: str) -> None:
    """Refuse a Gram that differs from its transpose by `asymmetry`, with `largest` entry."""
    if asymmetry > SYMMETRY_TOLERANCE * largest:
        raise ValueError(
            f"{name} is not symmetric (entries differ from their transposes by up to "
            f"{asymmetry:.3g}): a kernel is symmetric, pass (P + P.T) / 2 if that is what you mean"
        )


def negative_mass(gram: NDArray[np.float64]) -> float:
    r"""Return :math:`\sum_{\lambda_i < 0} |\lambda_i| / \sum_i |\lambda_i|` of the eigenvalues."""
    eigenvalues = np.linalg.eigvalsh(gram)
    return float(-eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum())


def sample_rows(n: int, at_most: int) -> Rows:
    """Return at most `at_most` distinct row numbers below n, the same ones at every call."""
    return np.sort(np.random.default_rng(0).choice(n, min(n, at_most), replace=False))


def finite_float32(gram: NDArray[Any], name: str) -> Floats:
    """Return a block of a Gram in float32, and refuse one that is not finite."""
    # torch wants memory that it may write to, without negative strides. What overflows is found.
    with np.errstate(over="ignore"):
        gram = np.require(gram, np.float32, ["C_CONTIGUOUS", "WRITEABLE"])
    if not np.isfinite(gram).all():
        raise ValueError(
            f"{name} has NaN or infinite values (in float32): check the kernel and its parameters"
        )
    return gram
