r"""Posteriors of many mixtures in about one byte for each row and mixture.

In high dimension a posterior π is nearly one-hot. What is stored is the index of its largest entry,
which stands for the one-hot vector :math:`e`, and, if that entry is below :math:`1 - \varepsilon`,
the sparse remainder :math:`r = \pi - e` without entries that sum to less than ε. Then
:math:`\| \pi - \hat\pi \|_1 \le 2 \varepsilon`, so for each mixture

.. math:: |\pi_i^\top \pi_j - \hat\pi_i^\top \hat\pi_j| \le 4 \varepsilon ,

and the kernel, a mean over mixtures, is within :math:`4 \varepsilon` of the exact one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from dkae._support.arrays import smallest_integers
from dkae.grams import Floats, Rows
from dkae.kernels.cluster.mixtures import by_size

#: Columns of the Gram matrix that are computed together: their posteriors fit into the caches.
N_COLUMNS = 256


@dataclass(frozen=True)
class CompactPosteriors:
    """Posteriors of n rows under all mixtures."""

    #: The most probable component, counted within each mixture: (n_samples, n_mixtures).
    top: NDArray[np.uint8]
    #: The remainders r: (n_samples, n_components).
    rest: sparse.csr_array
    #: The first column of each mixture.
    starts: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.top)

    @property
    def nbytes(self) -> int:
        rest = self.rest
        return int(self.top.nbytes + rest.data.nbytes + rest.indices.nbytes + rest.indptr.nbytes)

    def __getitem__(self, rows: Rows | slice) -> CompactPosteriors:
        return CompactPosteriors(self.top[rows], self.rest[rows], self.starts)

    def product(self, other: CompactPosteriors) -> Floats:
        """Return the inner products of all rows with all rows of `other`.

        A row of Π Π'ᵀ is the sum of a few hundred rows of Π'ᵀ, those of its components: torch's bag
        of embeddings. This is faster than a dense product.
        """
        columns = torch.from_numpy((self.starts + self.top).astype(np.int64))
        rest = (self.rest.indptr, self.rest.indices, self.rest.data)
        bounds, indices, weights = map(torch.from_numpy, rest)
        gram = np.empty((len(self), len(other)), dtype=np.float32)
        for start in range(0, len(other), N_COLUMNS):
            part = slice(start, start + N_COLUMNS)
            table = torch.from_numpy(other[part].transposed())
            block = F.embedding_bag(columns, table, mode="sum")
            if len(indices):
                block += F.embedding_bag(
                    indices, table, bounds[:-1], mode="sum", per_sample_weights=weights
                )
            gram[:, part] = block.numpy()
        return gram

    def transposed(self) -> Floats:
        """Return the approximated posteriors as a dense array (n_components, n_samples)."""
        n = len(self)
        table = np.zeros((self.rest.shape[1], n), dtype=np.float32)
        table.ravel()[(self.starts + self.top).astype(np.int64) * n + np.arange(n)[:, None]] = 1
        rest = self.rest.tocoo()
        table[rest.col, rest.row] += rest.data
        return table

    def to_csr(self) -> sparse.csr_array:
        """Return the approximated posteriors as a sparse array, 8 bytes for each entry."""
        columns = (self.starts + self.top).astype(np.int32, copy=False).ravel()
        bounds = np.arange(0, columns.size + 1, self.top.shape[1])
        ones = np.ones(columns.size, dtype=np.float32)
        return sparse.csr_array(
            sparse.csr_array((ones, columns, bounds), shape=self.rest.shape) + self.rest
        )

    def squared_norms(self) -> Floats:
        """Return the squared norm of each row of the approximated posteriors."""
        rest = self.rest.tocoo()
        mixture = np.searchsorted(self.starts, rest.col, side="right") - 1
        is_top = self.starts[mixture] + self.top[rest.row, mixture] == rest.col
        # (e + r)² = e² + r² + 2 e r, and e² sums to the number of mixtures.
        excess = np.bincount(rest.row, rest.data**2 + 2 * rest.data * is_top, len(self))
        norms: Floats = (self.top.shape[1] + excess).astype(np.float32)
        return norms


def compress(posteriors: Tensor, sizes: Sequence[int], epsilon: float) -> CompactPosteriors:
    """Return the compact form of posteriors (n_samples, sum of sizes), with ε as defined above.

    The posteriors sum to 1 within each mixture; `sizes` are in ascending order.
    """
    top, kept = [], []
    for view in by_size(posteriors, sizes):
        largest, where = view.max(dim=2, keepdim=True)
        keep = (view > epsilon / view.shape[2]).scatter_(2, where, True) & (largest < 1 - epsilon)
        top.append(where.squeeze(2))
        kept.append(keep.flatten(1))
    starts = (np.cumsum(sizes) - sizes).astype(np.int32)
    cells = torch.cat(top, dim=1).cpu().numpy()
    mask = torch.cat(kept, dim=1)
    rest = _sparse(posteriors, mask, starts + cells)
    return CompactPosteriors(smallest_integers(cells), rest, starts)


def _sparse(posteriors: Tensor, mask: Tensor, top_columns: NDArray[np.int64]) -> sparse.csr_array:
    """Return r = π - e where the mask is true."""
    rows, columns = (t.cpu().numpy() for t in mask.nonzero(as_tuple=True))
    values = posteriors[mask].cpu().numpy().astype(np.float32)
    is_top = np.zeros(mask.shape, dtype=bool)
    np.put_along_axis(is_top, top_columns, True, axis=1)
    values -= is_top[rows, columns]
    bounds = np.zeros(len(mask) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=len(mask)), out=bounds[1:])
    return sparse.csr_array((values, columns.astype(np.int32), bounds), shape=tuple(mask.shape))


def concatenate(parts: Sequence[CompactPosteriors]) -> CompactPosteriors:
    """Stack the rows of all parts."""
    rest = sparse.vstack([part.rest for part in parts], format="csr")
    return CompactPosteriors(
        np.concatenate([part.top for part in parts]), sparse.csr_array(rest), parts[0].starts
    )
