r"""Largest eigenvalues of a symmetric matrix, from the matrix or from its products alone.

The block Lanczos method with full reorthogonalisation. An orthonormal basis :math:`B` grows by one
block at a time, :math:`Q_{j+1} R_{j+1} = (I - B B^\top) K Q_j`, and the eigenpairs of the small
matrix :math:`T = B^\top K B = Y \Theta Y^\top` give those of :math:`K`. Since
:math:`K B = B T + Q_{j+1} R_{j+1} E_j^\top`, the residual of a pair is known without a product:

.. math:: \| K B y - \theta B y \| = \| R_{j+1} y_j \| , \qquad
          y_j \text{ the last block of } y .

scikit-learn's randomised solver multiplies a fixed number of times and does not know its error;
ARPACK does, but multiplies by one vector at a time.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import linalg
from torch import Tensor

#: The product of a symmetric matrix with an array of shape (size, any).
Multiply: TypeAlias = Callable[[NDArray[Any]], NDArray[Any]]

#: Columns that are multiplied together. The fewer they are, the fewer products it takes in all.
N_BLOCK = 32
#: A pair is found if its residual is below this part of the largest eigenvalue, by precision.
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
    multiply: Multiply, size: int, n_pairs: int, *, dtype: Any, rng: np.random.Generator
) -> Eigenpairs:
    """Return the largest eigenpairs of a symmetric matrix, positive semi-definite or not.

    `dtype` is the precision of the products, float32 or float64; the tolerance depends on it. `rng`
    draws the first block and the directions that are added to it.
    """
    width = min(size, N_BLOCK)
    while True:
        pairs = _lanczos(multiply, size, n_pairs, width, np.dtype(dtype), rng)
        # A block finds at most as many eigenvectors of one eigenvalue as it has columns. If there
        # are that many there may be more, and the eigenvalues found in their place are too small.
        first, last = pairs.values[: n_pairs - width + 1], pairs.values[width - 1 :]
        near = TOLERANCE[np.dtype(dtype)] * np.abs(pairs.values).max()
        if width >= min(size, n_pairs) or (first - last > near).all():
            return pairs
        width = min(size, 2 * width)


def _lanczos(
    multiply: Multiply,
    size: int,
    n_pairs: int,
    width: int,
    dtype: np.dtype[Any],
    rng: np.random.Generator,
) -> Eigenpairs:
    """Return the largest pairs that a block of the given width finds.

    All products are torch's: with some of NumPy's, the threads of two libraries would wait for
    each other.
    """
    room = min(size, 2 * n_pairs + 4 * width)
    basis = torch.from_numpy(np.empty((size, room), dtype=dtype))
    projected = torch.empty(0, 0, dtype=torch.float64)
    block = torch.linalg.qr(_random(rng, size, width, dtype)).Q
    n, eps = 0, float(np.finfo(dtype).eps)
    while True:
        start, n = n, n + block.shape[1]
        basis = _with_room(basis, n)
        basis[:, start:n] = block
        known = basis[:, :n]
        product = torch.from_numpy(multiply(basis[:, start:n].numpy()))
        projected = _bordered(projected, (known.T @ product).double())
        if not projected.isfinite().all():
            raise ValueError("products with the Gram matrix are not finite: check the kernel")
        block, remainder = torch.linalg.qr(product - known @ (known.T @ product))
        if n >= n_pairs:
            values, vectors = (t.flip(-1) for t in torch.linalg.eigh(projected))
            last = remainder.double() @ vectors[start:n, :n_pairs]
            if n == size or _are_found(last.norm(dim=0).numpy(), values.numpy(), dtype):
                found = known @ vectors[:, :n_pairs].to(known.dtype)
                return Eigenpairs(values[:n_pairs].numpy(), found.numpy())
        # Random directions replace columns that are only round-off.
        real = remainder.diagonal().abs() > 10 * eps * projected.abs().max()
        others = _random(rng, size, width - int(real.sum()), dtype)
        block = torch.hstack([block[:, real], others])[:, : size - n]
        # Twice is enough: the second time removes what round-off left of the basis.
        for _ in range(2):
            block = torch.linalg.qr(block - known @ (known.T @ block)).Q


def _are_found(
    residuals: NDArray[np.float64], values: NDArray[np.float64], dtype: np.dtype[Any]
) -> bool:
    largest = np.abs(values).max()
    # The smaller an eigenvalue, the smaller its residual must be, as far as round-off allows.
    small = np.maximum(
        0.01 * np.abs(values[: len(residuals)]), 1000 * np.finfo(dtype).eps * largest
    )
    return bool((residuals <= np.minimum(small, TOLERANCE[dtype] * largest)).all())


def _random(rng: np.random.Generator, size: int, width: int, dtype: np.dtype[Any]) -> Tensor:
    return torch.from_numpy(rng.standard_normal((size, width)).astype(dtype))


def _bordered(matrix: Tensor, column: Tensor) -> Tensor:
    """Return the symmetric matrix with a block column, and its transpose as a block row."""
    inner, corner = column.split([len(matrix), column.shape[1]])  # type: ignore[no-untyped-call]
    left = torch.vstack([matrix, inner.T])
    return torch.hstack([left, torch.vstack([inner, (corner + corner.T) / 2])])


def _with_room(basis: Tensor, n: int) -> Tensor:
    """Return the basis with room for n columns."""
    size, room = basis.shape
    if n <= room:
        return basis
    larger = basis.new_empty(size, min(size, max(n, 3 * room // 2)))
    larger[:, :room] = basis
    return larger
