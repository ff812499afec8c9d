r"""Posteriors of many mixtures in about one byte for each row and mixture.

In high dimension a posterior π is nearly one-hot. It is stored as the index of its largest entry,
which stands for the one-hot vector :math:`e`, and, if that entry is below :math:`1 - \varepsilon`,
the sparse remainder :math:`r = \pi - e` without entries that sum to less than ε. Then
:math:`\| \pi - \hat\pi \|_1 \le 2 \varepsilon`, so for each mixture

.. math:: |\pi_i^\top \pi_j - \hat\pi_i^\top \hat\pi_j| \le 4 \varepsilon ,

and the kernel, a mean over mixtures, is within :math:`4 \varepsilon` of the exact one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from dkae._support.arrays import smallest_integers
from dkae.grams import Floats, Rows
from dkae.kernels.cluster.mixtures import by_size
from dkae.kernels.features import from_arrays, to_arrays

#: Columns of the Gram matrix that are computed together: their posteriors fit into the caches.
N_COLUMNS = 256


@dataclass(frozen=True)
class CompactPosteriors:
    """Posteriors of n rows under all mixtures, with a factor for each row."""

    #: The most probable component, counted within each mixture: (n_samples, n_mixtures).
    top: NDArray[np.uint8]
    #: The remainders r: (n_samples, n_components).
    rest: sparse.csr_array
    #: The first column of each mixture.
    starts: NDArray[np.int32]
    #: The factors of the rows, in all products: (n_samples,).
    scales: Floats

    def __len__(self) -> int:
        return len(self.top)

    @property
    def nbytes(self) -> int:
        rest = self.rest
        arrays = (self.top, rest.data, rest.indices, rest.indptr, self.scales)
        return sum(a.nbytes for a in arrays)

    def __getitem__(self, rows: Rows | slice) -> CompactPosteriors:
        return CompactPosteriors(self.top[rows], self.rest[rows], self.starts, self.scales[rows])

    @staticmethod
    def joined(parts: Sequence[CompactPosteriors]) -> CompactPosteriors:
        """Return the rows of all parts."""
        rest = sparse.csr_array(sparse.vstack([part.rest for part in parts], format="csr"))
        top, scales = (np.concatenate([getattr(p, a) for p in parts]) for a in ("top", "scales"))
        return CompactPosteriors(top, rest, parts[0].starts, scales)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays, which processes can send to each other."""
        arrays: dict[str, Any] = {"top": self.top, "starts": self.starts, "scales": self.scales}
        return arrays | {f"rest {name}": a for name, a in to_arrays(self.rest).items()}

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> CompactPosteriors:
        """Return posteriors of other rows under the same mixtures."""
        rest = {name.removeprefix("rest "): array for name, array in arrays.items()}
        return CompactPosteriors(
            arrays["top"], from_arrays(rest, self.rest), arrays["starts"], arrays["scales"]
        )

    def product(self, other: CompactPosteriors) -> Floats:
        """Return the scaled inner products of all rows with all rows of `other`.

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
        gram *= self.scales[:, None]
        gram *= other.scales
        return gram

    def transposed(self) -> Floats:
        """Return the posteriors as a dense array (n_components, n_samples), not scaled."""
        n = len(self)
        table = np.zeros((self.rest.shape[1], n), dtype=np.float32)
        table.ravel()[(self.starts + self.top).astype(np.int64) * n + np.arange(n)[:, None]] = 1
        rest = self.rest.tocoo()
        table[rest.col, rest.row] += rest.data
        return table

    def to_csr(self) -> sparse.csr_array:
        """Return the scaled posteriors as a sparse array, 8 bytes for each entry."""
        columns = (self.starts + self.top).astype(np.int32, copy=False).ravel()
        bounds = np.arange(0, columns.size + 1, self.top.shape[1])
        ones = np.ones(columns.size, dtype=np.float32)
        top = sparse.csr_array((ones, columns, bounds), shape=self.rest.shape)
        phi = sparse.csr_array(top + self.rest)
        phi.data *= np.repeat(self.scales, np.diff(phi.indptr))
        return phi

    def squared_norms(self) -> Floats:
        """Return the squared norm of each row of the posteriors, not scaled."""
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
    return CompactPosteriors(
        smallest_integers(cells), rest, starts, np.ones(len(cells), np.float32)
    )


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
