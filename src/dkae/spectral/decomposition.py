r"""The largest components of a Gram matrix, from the matrix, from a kernel or from features.

Scores are linear, :math:`Z = M(x) A - b`: for a Gram matrix :math:`M(x) = K(x, X_\text{train})` and
:math:`A = E \Lambda^{-1/2}`, for explicit features :math:`M(x) = \Phi(x)` and :math:`A = V`, the
eigenvectors of :math:`\Phi^\top \Phi`. Centring changes only the offset b.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dkae._support.arrays import finite_numbers
from dkae._support.checks import warn_caller
from dkae.grams import (
    NEGATIVE_MASS_TOLERANCE,
    Gram,
    asymmetry_of,
    check_symmetry,
    read_block,
    sample_ids,
)
from dkae.spectral.eigensolver import Eigenpairs, Multiply, dense_eigenpairs, largest_eigenpairs
from dkae.spectral.operators import centered_product, gram_product, mean_of_rows, times

SOLVERS = ("auto", "dense", "lanczos")
#: Up to this size a matrix is decomposed whole: it takes less than a second.
N_DENSE = 1024
#: Rows on which a Gram that is not decomposed whole is checked.
N_SAMPLE_ROWS = 512
#: Columns that are multiplied together to form a matrix from its products.
N_COLUMNS = 128
#: Eigenvalues below this part of the largest one are round-off, by the precision of the Gram. The
#: largest one before centring counts: what centring removes leaves its round-off.
RANK_TOLERANCE = {np.dtype(np.float32): 2e-7, np.dtype(np.float64): 1e-12}
#: In place of zero in a denominator.
TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class Components:
    """Eigenvalues in descending order, A and b of the module's formula, scores of the rows."""

    eigenvalues: NDArray[np.float64]
    coefficients: NDArray[Any]
    offset: NDArray[Any]
    scores: NDArray[Any]


@dataclass(frozen=True)
class Decomposition:
    """How to find components: the settings of `KernelPCA`."""

    name: str  # of the kernel in error messages
    n_components: int | None  # None for all of positive eigenvalue
    center: bool
    solver: str
    rng: np.random.Generator  # for the first vectors of "lanczos"

    def is_dense(self, size: int) -> bool:
        """Return whether a matrix of this size is decomposed whole."""
        if self.solver != "auto":
            return self.solver == "dense"
        return size <= N_DENSE or self.n_components is None or 2 * self.n_components > size

    def of_gram(self, matrix: NDArray[Any] | Gram, dtype: Any) -> Components:
        """Decompose a Gram matrix, an array or a Gram, whose entries have this precision.

        Products are always float64: in the scores, errors in the eigenvector of a small eigenvalue
        are multiplied by much larger ones.
        """
        n = len(matrix)
        if self.is_dense(n):
            pairs = self._whole(_block(matrix, np.arange(n)), dtype)
        else:
            self._whole(_block(matrix, sample_ids(n, N_SAMPLE_ROWS)), dtype)
            product = partial(centered_product if self.center else gram_product, matrix)
            pairs = self._largest(product, n, np.float64)
        # Centred eigenvectors sum to 0: of all the terms of a centred Gram only the means of its
        # columns are left. Their sum 1ᵀ K 1 / n is the part of the spectrum that centring removes.
        means = gram_product(matrix, np.ones((n, 1)))[:, 0] / n if self.center else np.zeros(n)
        values, vectors = self._keep_positive(pairs, _round_off(pairs, means.sum(), dtype))
        roots = np.sqrt(values)
        with np.errstate(over="ignore"):
            coefficients = (vectors / roots).astype(dtype)
        remedy = f"its eigenvalues, near {values[0]:.3g}, are too small; scale it up"
        finite_numbers(coefficients, f"1 / √λ of {self.name}", remedy)
        scores = (vectors * roots).astype(dtype)
        return Components(values, coefficients, _offset(means, coefficients), scores)

    def of_features(self, phi: Any) -> Components:
        """Decompose the Gram matrix of explicit features, dense or sparse by rows."""
        if phi.dtype not in (np.float32, np.float64):
            phi = phi.astype(np.float64)
        n, d = phi.shape
        if d == 0:
            raise ValueError(f"{self.name} has no features on these rows: it is zero")
        mean = (mean_of_rows(phi) if self.center else np.zeros(d)).astype(phi.dtype)
        # CSR matrices multiply along their rows; the transpose needs its own.
        transposed = phi.T.tocsr() if sparse.issparse(phi) else phi.T

        def project(vectors: NDArray[Any]) -> NDArray[Any]:
            """Return Φ V, with Φ of mean zero if it is centred."""
            return np.asarray(times(phi, vectors) - mean @ vectors)

        def back(vectors: NDArray[Any]) -> NDArray[Any]:
            """Return Φᵀ U."""
            return times(transposed, vectors) - np.outer(mean, vectors.sum(axis=0))

        def multiply(vectors: NDArray[Any]) -> NDArray[Any]:
            """Return the product with the smaller of Φ Φᵀ and Φᵀ Φ: their eigenvalues agree."""
            with np.errstate(over="ignore", invalid="ignore"):
                product = back(project(vectors)) if d <= n else project(back(vectors))
            remedy = "products of features leave their type; scale X, or pass it in float64"
            return np.asarray(finite_numbers(product, f"the Gram matrix of {self.name}", remedy))

        if self.is_dense(min(n, d)):
            pairs = dense_eigenpairs(_matrix_of(multiply, min(n, d), phi.dtype))
        else:
            pairs = self._largest(multiply, min(n, d), phi.dtype)
        # Centring subtracts the mean μ before anything is squared: the round-off grows with |μ|.
        removed = np.sqrt(np.abs(pairs.values[0]) * n) * np.linalg.norm(mean)
        values, vectors = self._keep_positive(pairs, _round_off(pairs, removed, phi.dtype))
        vectors = vectors.astype(phi.dtype, copy=False)
        if d > n:
            vectors = back(vectors) / np.sqrt(values).astype(phi.dtype)
        return Components(values, vectors, _offset(mean, vectors), project(vectors))

    def _whole(self, gram: NDArray[Any], dtype: Any) -> Eigenpairs:
        """Decompose a Gram, all of it or that of a sample of rows; warn if it is not PSD."""
        gram = gram.astype(dtype, copy=False)  # integers wrap, booleans do not subtract
        check_symmetry(*asymmetry_of(gram), self.name)
        pairs = dense_eigenpairs(_doubly_centered(gram) if self.center else gram)
        values = pairs.values
        removed = len(gram) * gram.mean(dtype=np.float64) if self.center else 0.0
        negative = values < -_round_off(pairs, removed, dtype)
        share = np.abs(values[negative]).sum() / max(np.abs(values).sum(), TINY)
        if share > NEGATIVE_MASS_TOLERANCE:
            warn_caller(
                f"{self.name} is not positive semi-definite: {100 * share:.3g} % of the mass of "
                f"its eigenvalues on {len(gram)} rows is negative. No component can represent "
                "that part; it is left out."
            )
        return pairs

    def _largest(self, multiply: Multiply, size: int, dtype: Any) -> Eigenpairs:
        n_pairs = size if self.n_components is None else min(size, self.n_components)
        return largest_eigenpairs(multiply, size, n_pairs, dtype=dtype, rng=self.rng)

    def _keep_positive(self, pairs: Eigenpairs, round_off: float) -> Eigenpairs:
        """Keep at most `n_components` pairs of positive eigenvalue; fix their signs."""
        values, vectors = pairs
        rank = int((values > round_off).sum())
        if rank == 0:
            zero = "it does not tell them apart" if self.center else "it is zero"
            raise ValueError(
                f"{self.name} has no component of positive eigenvalue on these rows: {zero}, or "
                "negative"
            )
        if self.n_components is not None and rank < self.n_components:
            warn_caller(
                f"n_components={self.n_components}, but {self.name} has only {rank} positive "
                f"eigenvalues on these rows: {rank} components are kept"
            )
        m = min(rank, self.n_components or rank)
        values, vectors = values[:m].copy(), vectors[:, :m]
        largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(m)]
        return Eigenpairs(values, vectors * np.sign(largest))


def _round_off(pairs: Eigenpairs, removed: float, dtype: Any) -> float:
    """Return what an eigenvalue must exceed, if centring took `removed` away."""
    largest = max(np.abs(pairs.values[[0, -1]]).max(), abs(removed))
    return float(RANK_TOLERANCE[np.dtype(dtype)] * largest)


def _offset(means: NDArray[Any], coefficients: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(means.astype(coefficients.dtype) @ coefficients)


def _matrix_of(multiply: Multiply, size: int, dtype: Any) -> NDArray[Any]:
    """Form a matrix from its products, a few columns at a time: `multiply` may need much memory."""
    eye = np.eye(size, dtype=dtype)
    return np.hstack([multiply(eye[:, i : i + N_COLUMNS]) for i in range(0, size, N_COLUMNS)])


def _block(matrix: NDArray[Any] | Gram, rows: NDArray[np.intp]) -> NDArray[Any]:
    if not isinstance(matrix, np.ndarray):
        return read_block(matrix, rows)
    return matrix if len(rows) == len(matrix) else matrix[np.ix_(rows, rows)]


def _doubly_centered(gram: NDArray[Any]) -> NDArray[np.float64]:
    """Return H K H, in which rows and columns have mean 0."""
    means = gram.mean(axis=0, dtype=np.float64)
    return np.asarray(gram - means - means[:, None] + means.mean())
