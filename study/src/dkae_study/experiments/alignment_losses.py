"""L_c against labels, over blocks and over the number of components: what the paper reports."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae import metrics
from dkae.grams import Gram
from dkae.kernels import ideal_kernel

#: Rows of the prior that are read together.
N_CHUNK_ROWS = 1000


def ideal_loss(gram: Gram, y: Any) -> float:
    """Return L_c of a Gram matrix against the ideal kernel: 1 for the same label, else 0."""
    # Without known rows the kernel uses positions: of X it needs only the length.
    return metrics.alignment_loss(gram, ideal_kernel(y).fit(None).on(range(len(y))))


def mean_over_blocks(a: Gram, b: Gram, block_size: int) -> float:
    """Return the mean L_c over blocks of rows, as training sees the matrices.

    The rows are shuffled and cut into ⌊n/k⌋ blocks; the rest is dropped.
    """
    n = len(a)
    order = np.random.RandomState(0).permutation(n)[: n - n % block_size]
    blocks = order.reshape(-1, block_size)
    return float(np.mean([metrics.alignment_loss(a.block(ids), b.block(ids)) for ids in blocks]))


def alignment_loss_curve(codes: NDArray[Any], prior: Gram) -> NDArray[np.float64]:
    r"""Return L_c of the first m components of the codes, for every m, in one pass over the prior.

    With the components :math:`z_i`, the columns of the codes :math:`Z`, and
    :math:`Z_m = (z_1, \dots, z_m)`,

    .. math::
        \langle Z_m Z_m^\top, P \rangle = \sum_{i \le m} z_i^\top P z_i, \qquad
        \| Z_m Z_m^\top \|^2 = \| Z_m^\top Z_m \|^2 = \sum_{i, j \le m} (z_i^\top z_j)^2 .

    Values below 1e-7 are round-off.
    """
    Z = np.asarray(codes, dtype=np.float64)
    n, m = Z.shape
    with_prior, prior_squares = np.zeros(m), 0.0
    for start in range(0, n, N_CHUNK_ROWS):
        ids = np.arange(start, min(start + N_CHUNK_ROWS, n))
        block = prior.block(ids, np.arange(n)).astype(np.float64)
        with_prior += np.einsum("im,im->m", Z[ids], block @ Z)
        prior_squares += float(np.vdot(block, block))
    code_squares = ((Z.T @ Z) ** 2).cumsum(axis=0).cumsum(axis=1).diagonal()
    cosines = with_prior.cumsum() / np.sqrt(code_squares * prior_squares)
    return np.asarray(np.sqrt(2 - 2 * np.clip(cosines, -1, 1)))
