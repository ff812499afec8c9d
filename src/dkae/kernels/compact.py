r"""Posteriors of many mixtures in about one byte for each row and mixture.

In high dimension a posterior π is nearly one-hot. It is kept as the number of its largest entry,
:math:`e`, and where its largest entry is below :math:`1 - \varepsilon` also as the sparse remainder
:math:`r = \pi - e` without entries that sum to less than ε. Then
:math:`\| \pi - \hat\pi \|_1 \le 2 \varepsilon`, so for each mixture

.. math:: |\pi_i^\top \pi_j - \hat\pi_i^\top \hat\pi_j| \le 4 \varepsilon ,

and the kernel, a mean over mixtures, is within :math:`4 \varepsilon` of the exact one. With
:math:`\Pi = E + R`, a block of the Gram matrix is
:math:`E E^\top + R (E + R)^\top + E R^\top`: counting agreements, and two small sparse products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from dkae.kernels.base import Floats, Rows
from dkae.kernels.mixtures import by_size
from dkae.kernels.partitions import agreements, smallest_integers

__all__ = ["CompactPosteriors", "compress", "concatenate"]


@dataclass(frozen=True)
class CompactPosteriors:
    """Posteriors of n rows under all mixtures.

    Attributes
    ----------
    top : integer array of shape (n_samples, n_mixtures)
        The most probable component of each mixture, counted within the mixture.
    rest : sparse array of shape (n_samples, n_components)
        What is missing to the posteriors.
    starts : array of shape (n_mixtures,)
        First column of each mixture.
    """

    top: NDArray[np.uint8]
    rest: sparse.csr_array
    starts: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.top)

    @property
    def nbytes(self) -> int:
        rest = self.rest
        return int(self.top.nbytes + rest.data.nbytes + rest.indices.nbytes + rest.indptr.nbytes)

    def __getitem__(self, rows: Rows) -> CompactPosteriors:
        return CompactPosteriors(self.top[rows], self.rest[rows], self.starts)

    def product(self, other: CompactPosteriors) -> Floats:
        """Return the inner products of all rows with all rows of `other`."""
        gram = agreements(self.top, other.top)
        if self.rest.nnz:
            gram += (self.rest @ (other.one_hot() + other.rest).T).toarray()
        if other.rest.nnz:
            gram += (other.rest @ self.one_hot().T).toarray().T
        return gram

    def one_hot(self) -> sparse.csr_array:
        """Return E, with a one at the largest entry of each mixture."""
        n_mixtures = self.top.shape[1]
        columns = (self.starts + self.top).ravel()
        bounds = np.arange(0, columns.size + 1, n_mixtures, dtype=np.int32)
        ones = np.ones(columns.size, dtype=np.float32)
        return sparse.csr_array((ones, columns, bounds), shape=self.rest.shape)

    def dense(self) -> Floats:
        """Return the posteriors as they are approximated, (n_samples, n_components)."""
        array: Floats = (self.one_hot() + self.rest).toarray()
        return array


def compress(posteriors: Tensor, sizes: Sequence[int], epsilon: float) -> CompactPosteriors:
    """Return the compact form of posteriors under mixtures of the given sizes.

    Parameters
    ----------
    posteriors : Tensor of shape (n_samples, sum of sizes)
        Summing to 1 within each mixture.
    sizes : sequence of int
        Components of each mixture, in ascending order.
    epsilon : float
        See the module's formula; the kernel is within 4 ε.
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
    """Return π - e where the mask is true."""
    rows, columns = (t.cpu().numpy() for t in mask.nonzero(as_tuple=True))
    values = posteriors[mask].cpu().numpy().astype(np.float32)
    is_top = np.zeros(mask.shape, dtype=bool)
    np.put_along_axis(is_top, top_columns, True, axis=1)
    values -= is_top[rows, columns]
    bounds = np.zeros(len(mask) + 1, dtype=np.int32)
    np.cumsum(np.bincount(rows, minlength=len(mask)), out=bounds[1:])
    return sparse.csr_array((values, columns.astype(np.int32), bounds), shape=tuple(mask.shape))


def concatenate(parts: Sequence[CompactPosteriors]) -> CompactPosteriors:
    """Return the rows of all parts, one after another."""
    rest = sparse.vstack([part.rest for part in parts], format="csr")
    return CompactPosteriors(
        np.concatenate([part.top for part in parts]), sparse.csr_array(rest), parts[0].starts
    )
