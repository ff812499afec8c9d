r"""Products with Gram matrices, without n × n numbers at once, and with features.

The Gram of a kernel function is computed tile by tile. Centring subtracts means of columns:
:math:`H K H` with :math:`H = I - 1 1^\top / n`.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch.nn import functional as F

from dkae._support.arrays import finite_numbers, real_numbers
from dkae.grams import Gram

#: Rows of a tile of the Gram matrix.
N_TILE_ROWS = 1024


def mean_of_rows(features: Any) -> NDArray[np.float64]:
    """Return the mean of the rows, summed in float64; SciPy's sums in the type of the entries."""
    if not sparse.issparse(features):
        return np.asarray(features.mean(axis=0, dtype=np.float64))
    n, d = features.shape
    mean: NDArray[np.float64] = np.bincount(features.indices, features.data, minlength=d) / n
    return mean


def gram_product(gram: NDArray[Any] | Gram, vectors: NDArray[Any]) -> NDArray[Any]:
    """Return K V of a matrix, or of a Gram that is computed anew."""
    if not isinstance(gram, np.ndarray):
        return tiled_product(gram, vectors)
    if gram.dtype == vectors.dtype:
        return np.asarray(gram @ vectors)
    # With another type, NumPy would first copy the whole matrix.
    chunks = range(0, len(gram), N_TILE_ROWS)
    return np.concatenate([gram[i : i + N_TILE_ROWS] @ vectors for i in chunks])


def centered_product(gram: NDArray[Any] | Gram, vectors: NDArray[Any]) -> NDArray[Any]:
    """Return H K H V."""
    product = gram_product(gram, vectors - vectors.mean(axis=0))
    return np.asarray(product - product.mean(axis=0))


def tiled_product(gram: Gram, vectors: NDArray[Any]) -> NDArray[Any]:
    """Return K V with one tile of K at a time."""
    n, result = len(gram), np.zeros_like(vectors)
    tiles = [np.arange(i, min(i + N_TILE_ROWS, n)) for i in range(0, n, N_TILE_ROWS)]
    for i, a in enumerate(tiles):
        result[a] += real_numbers(gram.block(a), gram.name) @ vectors[a]
        for b in tiles[:i]:
            # The matrix is symmetric: a tile below the diagonal stands for two.
            tile = real_numbers(gram.block(a, b), gram.name)
            result[a] += tile @ vectors[b]
            result[b] += tile.T @ vectors[a]
    # One entry of the matrix that is not finite spoils its row of the product.
    finite_numbers(result, gram.name, "check the kernel and the rows that it was computed from")
    return result


def times(matrix: Any, vectors: NDArray[Any]) -> NDArray[Any]:
    """Return the product of a matrix, dense or sparse by rows, with a dense one."""
    if not sparse.issparse(matrix) or matrix.dtype != np.float32:
        return np.asarray(matrix @ vectors)
    # Each row of the result is a sum of a few rows of the dense matrix: a bag of embeddings, which
    # torch computes on all cores, four times as fast as SciPy's product in float32.
    parts = (matrix.indptr, matrix.indices, matrix.data, vectors.astype(np.float32, copy=False))
    bounds, indices, weights, table = (
        # torch warns of read-only arrays, such as those that joblib passes to its workers.
        torch.from_numpy(np.require(part, requirements=["C_CONTIGUOUS", "WRITEABLE"]))
        for part in parts
    )
    bags = F.embedding_bag(
        indices, table, bounds, mode="sum", per_sample_weights=weights, include_last_offset=True
    )
    return bags.numpy()
