r"""Gram matrices that are read block by block, given or computed.

A :class:`Gram` is the matrix :math:`P_{ij} = \kappa(x_i, x_j)` of n fixed rows. It is never held
whole unless a user hands it in whole: training asks for the block of a batch, measures read it
tile by tile. A Gram of your own is a subclass with two methods, ``__len__`` and ``block``.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import safe_sparse_dot

from dkae._support.arrays import (
    MOST,
    REAL_KINDS,
    as_array,
    check_magnitude,
    largest_entry,
    real_numbers,
)
from dkae._support.checks import warn_caller
from dkae.rows import RowArray, indexable

__all__ = ["CombinedGram", "FeatureGram", "Gram", "GramLike", "MatrixGram", "RowsGram", "as_gram"]

Floats = NDArray[np.float32]
Ids = NDArray[np.intp]

#: Rows of the blocks along the diagonal.
N_DIAGONAL_ROWS = 64
#: Rows of a matrix that are compared with its columns together.
N_CHUNK_ROWS = 256
#: A Gram may differ from its transpose by this part of its largest entry (float32 round-off).
SYMMETRY_TOLERANCE = 1e-4
#: Negative eigenvalues below this share of the spectrum's mass are round-off.
NEGATIVE_MASS_TOLERANCE = 1e-4


class Gram(ABC):
    """The Gram matrix of n rows, read block by block.

    ``gram[ids]`` is the Gram of some of the rows; ``a + b``, ``a * b`` and ``0.5 * a`` are computed
    block by block.
    """

    #: Its name in error messages.
    name: str = "gram"
    #: The fitted kernel of the matrix, if known: it can be evaluated on other rows.
    kernel: Any = None

    @abstractmethod
    def __len__(self) -> int:
        """Return the number n of rows."""

    @abstractmethod
    def block(self, rows: Ids, columns: Ids | None = None) -> NDArray[Any]:
        """Return the entries of all pairs of `rows` and `columns`; of `rows` alone without them."""

    def diagonal(self) -> NDArray[Any]:
        """Return the entries on the diagonal, from small blocks along it."""
        n = len(self)
        chunks = (np.arange(i, min(i + N_DIAGONAL_ROWS, n)) for i in range(0, n, N_DIAGONAL_ROWS))
        # Copies: a diagonal is a view, and would keep its block in memory.
        return np.concatenate([self.block(rows).diagonal().copy() for rows in chunks])

    def __getitem__(self, ids: Any) -> Gram:
        rows = np.arange(len(self))[ids]
        if rows.ndim != 1:
            raise TypeError(f"gram[{ids!r}] does not select rows: pass ids, a slice or a mask")
        return _Part(self, rows)

    # Without it Python would call gram[0], gram[1], ... to iterate.
    __iter__ = None
    # Without it NumPy would take np.float64(2) * gram for a product with an array.
    __array_ufunc__ = None

    def __add__(self, other: Gram) -> Gram:
        if not isinstance(other, Gram):
            return NotImplemented
        return CombinedGram([self, other], operator.add)

    def __mul__(self, other: Gram | Real | float) -> Gram:
        if isinstance(other, Gram):
            return CombinedGram([self, other], operator.mul)
        if not isinstance(other, Real):
            return NotImplemented
        # A number of Python leaves the blocks in their own precision.
        return CombinedGram([self], partial(operator.mul, float(other)))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} rows, {self.name}>"


@dataclass(repr=False, eq=False)
class RowsGram(Gram):
    """A function of two rows, on the rows of anything that is indexed by row numbers."""

    #: The rows, or what describes them: features, labels, posteriors.
    rows: Any
    #: ``function(a, b)`` returns the block of all pairs; `b` is None where it is `a` itself.
    function: Callable[[Any, Any], Any]
    name: str
    kernel: Any = None

    def __len__(self) -> int:
        shape = getattr(self.rows, "shape", None)  # a sparse matrix has no length
        return int(shape[0]) if shape else len(self.rows)

    def block(self, rows: Ids, columns: Ids | None = None) -> Floats:
        others = None if columns is None else self.rows[columns]
        return self.between(self.rows[rows], others)

    def between(self, rows: Any, others: Any) -> Floats:
        """Return the block of rows in memory; `others` is None where they are `rows`."""
        return finite_float32(self.function(rows, others), self.name)


class FeatureGram(RowsGram):
    """The Gram matrix ΦΦᵀ of rows whose features Φ are kept: dense, sparse, or on a disk."""

    def __init__(self, features: Any, name: str, kernel: Any = None) -> None:
        # Not every table or sparse format can be indexed by row numbers.
        phi = indexable(features)
        if not sparse.issparse(phi) and not isinstance(phi, RowArray):
            phi = real_numbers(phi, f"Φ of {name}")
        if phi.ndim != 2 or not phi.shape[0]:
            raise ValueError(
                f"Φ of {name} has shape {phi.shape}: features are a matrix with a row for each of "
                "at least one row of X"
            )
        super().__init__(phi, _product, name, kernel)

    def feature_matrix(self) -> Any:
        """Return Φ, dense or sparse in CSR format."""
        return self.rows


class MatrixGram(Gram):
    """A given matrix, in memory or on disk: it is indexed, never copied.

    Parameters
    ----------
    matrix : array of shape (n, n)
        The Gram matrix, of any type of real numbers.
    ids : array of int, optional
        The rows of the matrix to use; all by default.
    """

    def __init__(self, matrix: NDArray[Any], ids: Ids | None = None, kernel: Any = None) -> None:
        self.matrix = matrix
        self.ids = np.arange(len(matrix)) if ids is None else ids
        #: Whether these are all rows of the matrix, in its order.
        self.is_whole = np.array_equal(self.ids, np.arange(len(matrix)))
        self.kernel = kernel

    def __len__(self) -> int:
        return len(self.ids)

    def block(self, rows: Ids, columns: Ids | None = None) -> NDArray[Any]:
        columns = rows if columns is None else columns
        return self.matrix[np.ix_(self.ids[rows], self.ids[columns])]


class CombinedGram(Gram):
    """Grams of the same rows, combined entry by entry by a function of their blocks."""

    def __init__(
        self, grams: Sequence[Gram], combine: Callable[..., Any], kernel: Any = None
    ) -> None:
        lengths = sorted({len(gram) for gram in grams})
        if len(lengths) > 1:
            raise ValueError(
                f"the grams have {' and '.join(map(str, lengths))} rows: combine those of the same "
                "rows"
            )
        self.grams = grams
        self.combine = combine
        self.name = grams[0].name
        self.kernel = kernel

    def __len__(self) -> int:
        return len(self.grams[0])

    def block(self, rows: Ids, columns: Ids | None = None) -> NDArray[Any]:
        blocks = (_as_reals(gram.block(rows, columns)) for gram in self.grams)
        return np.asarray(self.combine(*blocks))


class _Part(Gram):
    """Some rows of a Gram."""

    def __init__(self, gram: Gram, ids: Ids) -> None:
        self.gram = gram
        self.ids = ids
        self.name = gram.name
        self.kernel = gram.kernel

    def __len__(self) -> int:
        return len(self.ids)

    def block(self, rows: Ids, columns: Ids | None = None) -> NDArray[Any]:
        return self.gram.block(self.ids[rows], None if columns is None else self.ids[columns])


class _Blocks(Gram):
    """A custom object with ``__len__`` and ``block``."""

    def __init__(self, source: Any, name: str) -> None:
        self.source = source
        self.name = name
        self.kernel = getattr(source, "kernel", None)

    def __len__(self) -> int:
        return len(self.source)

    def block(self, rows: Ids, columns: Ids | None = None) -> NDArray[Any]:
        return real_numbers(self.source.block(rows, columns), f"{self.name}.block")


#: An (n, n) array, a `Gram`, or any object with ``__len__`` and ``block(rows, columns=None)``.
GramLike: TypeAlias = NDArray[Any] | Gram


def as_gram(value: Any, name: str) -> Gram:
    """Return a matrix, or an object with blocks, as a Gram."""
    if isinstance(value, Gram):
        gram = value
    elif hasattr(value, "block") and hasattr(value, "__len__"):
        gram = _Blocks(value, name)
    else:
        matrix = as_array(value, name)
        if matrix.dtype.kind not in REAL_KINDS:
            raise ValueError(
                f"{name} has entries of type {matrix.dtype}: pass a square NumPy array of real "
                "numbers, or an object with a method block, such as kernel.on(X)"
            )
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                f"{name} has shape {matrix.shape}: pass a square Gram matrix, or code_gram(codes) "
                "if these are codes"
            )
        if len(matrix):
            check_symmetry(*asymmetry_of(matrix), name)
        gram = MatrixGram(matrix)
    if len(gram) == 0:
        raise ValueError(f"{name} is empty: pass the Gram matrix of at least one row")
    return gram


def _product(a: Any, b: Any) -> NDArray[Any]:
    b = a if b is None else b
    return np.asarray(safe_sparse_dot(_as_array(a), _as_array(b).T, dense_output=True))


def _as_array(features: Any) -> Any:
    # A transformer may be set to return data frames.
    return features if sparse.issparse(features) else np.asarray(features)


def _as_reals(block: NDArray[Any]) -> NDArray[Any]:
    """Return a block in its own precision; sums of whole numbers would wrap around."""
    return np.asarray(block, dtype=np.result_type(block, np.float32))


# --- checks --------------------------------------------------------------------------------------


def read_block(gram: Gram, rows: Ids, columns: Ids | None = None) -> Floats:
    """Return the block of some rows and columns in float32, checked."""
    block = finite_float32(gram.block(rows, columns), gram.name)
    check_block_shape(block, rows, columns, gram.name)
    return block


def check_block_shape(block: NDArray[Any], rows: Ids, columns: Ids | None, name: str) -> None:
    """Raise if an array is not the block of these rows and columns."""
    expected = (len(rows), len(rows if columns is None else columns))
    if block.shape != expected:
        raise ValueError(
            f"{name}.block returned shape {block.shape}, expected {expected}: it must return the "
            "entries of all pairs of the rows and the columns asked for"
        )


def check_block(block: NDArray[Any], name: str) -> None:
    """Check the Gram of a sample of rows: symmetric, not zero, and (as a warning) PSD.

    Every principal block of a positive semi-definite matrix is positive semi-definite, so a fault
    in the sample is a fault of the whole matrix; faults elsewhere go unseen.
    """
    sample = block.astype(np.float64)
    largest = np.abs(sample).max()
    if largest == 0:
        raise ValueError(
            f"{name} is zero on all of {len(sample)} sampled rows: there is nothing to align with"
        )
    check_symmetry(np.abs(sample - sample.T).max(), largest, name)
    eigenvalues = np.linalg.eigvalsh(sample)
    negative = -eigenvalues[eigenvalues < 0].sum() / np.abs(eigenvalues).sum()
    if negative > NEGATIVE_MASS_TOLERANCE:
        warn_caller(
            f"{name} is not positive semi-definite: on {len(sample)} sampled rows "
            f"{100 * negative:.3g} % of the mass of its eigenvalues is negative. Inner products "
            "of codes cannot represent that part; the rest is learned."
        )


def check_symmetry(asymmetry: float, largest: float, name: str) -> None:
    """Raise if a Gram with this largest entry differs from its transpose by `asymmetry`."""
    if asymmetry > SYMMETRY_TOLERANCE * largest:
        raise ValueError(
            f"{name} is not symmetric (entries differ from their transposes by up to "
            f"{asymmetry:.3g}): a kernel is symmetric, pass (P + P.T) / 2 if that is what you mean"
        )


def asymmetry_of(matrix: NDArray[Any]) -> tuple[float, float]:
    """Return the largest difference from the transpose and the largest entry, by chunks of rows.

    NaN is ignored here and found when blocks are read.
    """
    largest, asymmetry = 0.0, 0.0
    for start in range(0, len(matrix), N_CHUNK_ROWS):
        chunk = slice(start, start + N_CHUNK_ROWS)
        rows = matrix[chunk].astype(np.float64)
        largest = max(largest, float(np.abs(rows).max()))
        with np.errstate(invalid="ignore", over="ignore"):
            asymmetry = max(asymmetry, float(np.abs(rows - matrix[:, chunk].T).max()))
    return asymmetry, largest


def sample_ids(n: int, at_most: int) -> Ids:
    """Return at most `at_most` distinct ids below n, the same at every call."""
    return np.sort(np.random.default_rng(0).choice(n, min(n, at_most), replace=False))


def finite_float32(gram: Any, name: str) -> Floats:
    """Return a block of a Gram in float32, if its entries are finite and not too large."""
    # torch wants memory that it may write to, without negative strides.
    with np.errstate(over="ignore"):
        numbers = real_numbers(gram, name)
        block: Floats = np.require(numbers, np.float32, ["C_CONTIGUOUS", "WRITEABLE"])
    largest = largest_entry(block) if block.size else 0.0
    if not np.isfinite(largest):
        raise ValueError(
            f"{name} has NaN or infinite values (in float32): check the kernel and its parameters"
        )
    if largest > MOST:
        check_magnitude(block, name, "scale X, or divide the kernel by its largest value")
    return block
