r"""Largest eigenvalues of a symmetric matrix, whole or known by its products alone.

The block Lanczos method with full reorthogonalisation. An orthonormal basis :math:`B` grows by one
block at a time, :math:`Q_{j+1} R_{j+1} = (I - B B^\top) K Q_j`, and the eigenpairs of the small
matrix :math:`T = B^\top K B = Y \Theta Y^\top` give those of :math:`K`. Since
:math:`K B = B T + Q_{j+1} R_{j+1} E_j^\top`, the residual of a pair is known without a product:

.. math:: \| K B y - \theta B y \| = \| R_{j+1} y_j \| , \qquad
          y_j \text{ the last block of } y .

scikit-learn's randomised solver multiplies as often as it is told, and does not know how well it
did; ARPACK, which does, multiplies by one vector at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

__all__ = ["Eigenpairs", "dense_eigenpairs", "largest_eigenpairs"]

#: Columns that are multiplied together: at least this many, and this many more than pairs wanted.
N_BLOCK, N_MORE = 32, 8
#: Residuals relative to the largest eigenvalue at which a pair counts as found, by precision.
TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}


class Eigenpairs(NamedTuple):
    """Eigenvalues in descending order, and orthonormal eigenvectors as columns."""

    values: NDArray[np.float64]
    vectors: NDArray[Any]


def dense_eigenpairs(matrix: NDArray[Any]) -> Eigenpairs:
    """Return all eigenpairs of a symmetric matrix."""
    values, vectors = linalg.eigh(matrix.astype(np.float64), overwrite_a=True)
    return Eigenpairs(values[::-1], vectors[:, ::-1])


def largest_eigenpairs(
    multiply: Callable[[NDArray[Any]], NDArray[Any]],
    size: int,
    n_pairs: int,
    *,
    dtype: Any,
    rng: np.random.Generator,
) -> Eigenpairs:
    """Return the largest eigenpairs of a symmetric matrix, positive semi-definite or not.

    Parameters
    ----------
    multiply : callable
        Product of the matrix with an array of shape (size, any).
    size, n_pairs : int
        Rows of the matrix, and how many pairs are wanted.
    dtype : float32 or float64
        Precision of the products, which the tolerance depends on.
    rng : Generator
        Source of the first block and of what is added to it.
    """
    tolerance, eps = TOLERANCE[np.dtype(dtype)], np.finfo(dtype).eps
    # A block never sees more eigenvectors of one eigenvalue than it has columns; narrower than the
    # number of pairs, it could take smaller eigenvalues for the largest ones.
    width = min(size, max(N_BLOCK, n_pairs + N_MORE))
    basis = np.empty((size, min(size, 3 * width)), dtype=dtype)
    projected = np.empty((0, 0))
    block = _orthonormal(_by_chance(rng, size, width, dtype))[0]
    n = 0
    while True:
        start, n = n, n + block.shape[1]
        basis = _with_room(basis, n)
        basis[:, start:n] = block
        known = basis[:, :n]
        product = multiply(block)
        projected = _bordered(projected, (known.T @ product).astype(np.float64))
        values, vectors = linalg.eigh(projected)
        values, vectors = values[::-1], vectors[:, ::-1]
        product -= known @ (known.T @ product)
        block, remainder = _orthonormal(product)
        residuals = np.linalg.norm(remainder @ vectors[start:n, :n_pairs], axis=0)
        scale = np.abs(values).max()
        # The smaller an eigenvalue is, the nearer its vector has to be, as far as round-off allows.
        small = np.maximum(0.01 * np.abs(values[:n_pairs]), 1000 * eps * scale)
        if (residuals <= np.minimum(small, tolerance * scale)).all() or n == size:
            return Eigenpairs(values[:n_pairs], known @ vectors[:, :n_pairs].astype(dtype))
        # Columns that are nothing but round-off make way for directions by chance.
        block = block[:, np.abs(remainder.diagonal()) > 10 * eps * scale]
        others = _by_chance(rng, size, width - block.shape[1], dtype)
        block = np.hstack([block, others])[:, : size - n]
        # Twice is enough: what round-off left of the basis after the first time goes.
        for _ in range(2):
            block = _orthonormal(block - known @ (known.T @ block))[0]


def _by_chance(rng: np.random.Generator, size: int, width: int, dtype: Any) -> NDArray[Any]:
    return rng.standard_normal((size, width)).astype(dtype)


def _orthonormal(columns: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    q, r = linalg.qr(columns, mode="economic", check_finite=False)
    return q, r.astype(np.float64)


def _bordered(matrix: NDArray[np.float64], column: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the symmetric matrix with a block column, and its transpose as a block row."""
    n, width = column.shape
    result = np.empty((n, n))
    result[: n - width, : n - width] = matrix
    result[:, n - width :] = column
    result[n - width :, : n - width] = column[: n - width].T
    corner = column[n - width :]
    result[n - width :, n - width :] = (corner + corner.T) / 2
    return result


def _with_room(basis: NDArray[Any], n: int) -> NDArray[Any]:
    """Return the basis with room for n columns."""
    size, room = basis.shape
    if n <= room:
        return basis
    larger = np.empty((size, min(size, max(n, 3 * room // 2))), dtype=basis.dtype)
    larger[:, :room] = basis
    return larger
