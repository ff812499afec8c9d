r"""Posteriors of many rows under many mixtures, in about one byte for each row and mixture.

**Compact.** In high dimension a posterior π is nearly one-hot. It is stored as the index of its
largest entry, which stands for the one-hot vector :math:`e`, and, if that entry is below
:math:`1 - \varepsilon`, the sparse remainder :math:`r = \pi - e` without entries that sum to less
than ε. Then :math:`\| \pi - \hat\pi \|_1 \le 2 \varepsilon`, so for each mixture

.. math:: |\pi_i^\top \pi_j - \hat\pi_i^\top \hat\pi_j| \le 4 \varepsilon ,

and the kernel, a mean over mixtures, is within :math:`4 \varepsilon` of the exact one.

**Fast.** A component matters to a posterior only if its log-density comes close to the largest one
of its mixture, and nearly always that is the largest one alone. All log-densities are computed in
float32, at twice the speed of float64; where a second one comes close *within the error of
float32*, those few are computed again in float64. Close means within
:math:`\log (10^3 g / \varepsilon)` in a mixture of g components: the components left out then sum
to a thousandth of :math:`\varepsilon`, the error of the compact form.

With the form :math:`\ell = \langle (x^2, x), a \rangle + c` the terms of a log-density sum up, in
absolute value, to a small multiple of :math:`|\ell| + |c| + \tfrac12 \sum_d \mu_d^2 / \sigma_d^2`
(since :math:`2 |x \mu| \le x^2 + \mu^2`). Its error is taken to be that times the unit round-off
times a factor that grows with the root of the number of terms, as rounding errors of either sign
do. This is an estimate with a margin, not a proven bound: on MNIST the largest error is 0.6 of it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch.nn import functional as F

from dkae._support.arrays import smallest_integers
from dkae.grams import Floats, Ids
from dkae.kernels.features import from_arrays, to_arrays
from dkae.kernels.mixtures import Mixtures, equal_sizes, linear_form, moments_of, posteriors

#: Columns of the Gram matrix that are computed together: their posteriors fit into the caches.
N_COLUMNS = 256
#: Unit round-off of float32.
ROUND_OFF = 2.0**-24
#: If more than this share of the components matters, float64 for all is faster.
MAX_DOUBTFUL_SHARE = 0.05


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
        return sum(array.nbytes for array in self.to_arrays().values())

    @property
    def scale(self) -> np.float32:
        """1 / √Z, with Z the number of mixtures."""
        return np.float32(1 / math.sqrt(self.top.shape[1]))

    def __getitem__(self, rows: Ids | slice) -> CompactPosteriors:
        return replace(self, top=self.top[rows], rest=self.rest[rows])

    @staticmethod
    def joined(parts: Sequence[CompactPosteriors]) -> CompactPosteriors:
        """Return the rows of all parts."""
        rest = sparse.csr_array(sparse.vstack([part.rest for part in parts], format="csr"))
        return replace(parts[0], top=np.concatenate([part.top for part in parts]), rest=rest)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return plain arrays, which processes can send to each other."""
        return {"top": self.top} | to_arrays(self.rest)

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> CompactPosteriors:
        """Return posteriors of other rows under the same mixtures."""
        return replace(self, top=arrays["top"], rest=from_arrays(arrays, self.rest))

    def product(self, other: CompactPosteriors) -> Floats:
        """Return κ of all rows with all rows of `other`: ⟨Π, Π'⟩ / Z.

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
        # As the product of features that are scaled, to the last digit.
        gram *= self.scale
        gram *= self.scale
        return gram

    def transposed(self) -> Floats:
        """Return Πᵀ as a dense array (n_components, n_samples)."""
        n = len(self)
        table = np.zeros((self.rest.shape[1], n), dtype=np.float32)
        table.ravel()[(self.starts + self.top).astype(np.int64) * n + np.arange(n)[:, None]] = 1
        rest = self.rest.tocoo()
        table[rest.col, rest.row] += rest.data
        return table

    def features(self) -> sparse.csr_array:
        """Return Φ = Π / √Z as a sparse array, 8 bytes for each entry."""
        columns = (self.starts + self.top).astype(np.int32, copy=False).ravel()
        bounds = np.arange(0, columns.size + 1, self.top.shape[1])
        ones = np.ones(columns.size, dtype=np.float32)
        top = sparse.csr_array((ones, columns, bounds), shape=self.rest.shape)
        phi = sparse.csr_array(top + self.rest)
        phi.data *= self.scale
        return phi


def compress(posteriors: Tensor, sizes: Sequence[int], epsilon: float) -> CompactPosteriors:
    """Return the compact form of posteriors (n_samples, sum of sizes), with ε as defined above.

    The posteriors sum to 1 within each mixture; `sizes` are in ascending order.
    """
    tops, kept = [], []
    for part, count, size in equal_sizes(sizes):
        view = posteriors[:, part].view(len(posteriors), count, size)
        largest, where = view.max(dim=2, keepdim=True)
        keep = (view > epsilon / size).scatter_(2, where, True) & (largest < 1 - epsilon)
        tops.append(where.squeeze(2))
        kept.append(keep.flatten(1))
    top, mask = torch.cat(tops, dim=1).cpu().numpy(), torch.cat(kept, dim=1)
    starts = (np.cumsum(sizes) - sizes).astype(np.int32)
    rows, columns = (t.cpu().numpy().astype(np.int32) for t in mask.nonzero(as_tuple=True))
    values = posteriors[mask].cpu().numpy().astype(np.float32)
    mixtures = np.repeat(np.arange(len(sizes)), sizes)[columns]
    values -= (starts + top)[rows, mixtures] == columns
    rest = sparse.csr_array((values, (rows, columns)), shape=tuple(mask.shape))
    return CompactPosteriors(smallest_integers(top), rest, starts)


class Screening:
    """Computes compact posteriors: float32 finds what matters, float64 computes only that."""

    def __init__(self, mixtures: Mixtures, epsilon: float) -> None:
        _silence_beta_warning()
        self.mixtures = mixtures
        self.epsilon = epsilon
        self.sizes: list[int] = mixtures.sizes.tolist()
        self.slopes, self.constants = linear_form(*mixtures.components)
        # `errors` is of the part of a log-density that depends on the component alone; the error of
        # the rest is relative to the log-density.
        n_moments, d = self.slopes.shape[1], mixtures.means.shape[1]
        self.relative_error = ROUND_OFF * (16 + n_moments**0.5)
        squares = 0.5 * torch.einsum("kd,kd->k", mixtures.means, self.slopes[:, d:])
        errors = self.relative_error * (squares + self.constants.abs())
        self.errors = errors.float().unsqueeze(1)
        # The constants are one more column and 1 is one more moment, so that one product gives all
        # log-densities; with the errors added, it gives upper bounds.
        self.fast_slopes = torch.empty(
            len(errors), n_moments + 1, dtype=torch.float32, device=errors.device
        )
        self.fast_slopes[:, :-1] = self.slopes
        self.fast_slopes[:, -1] = self.constants + errors
        sizes = np.asarray(self.sizes)
        self.starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        self.mixture_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.negligible = math.log(1e3 * max(self.sizes) / epsilon)

    def compress(self, X: Tensor) -> CompactPosteriors:
        """Return the compact posteriors of the rows."""
        moments = moments_of(X)
        found = self._screen(moments)
        if found is None:
            return compress(posteriors(X, self.mixtures), self.sizes, self.epsilon)
        return self._compress(moments, *self._top_and_doubtful(*found, len(X)))

    def _upper_bounds(self, moments: Tensor) -> Iterator[tuple[slice, Tensor]]:
        """Yield bounds on log-densities, (mixtures, components, rows), for each size of mixtures.

        One size at a time, so that they are still in the caches when they are read.
        """
        ones = torch.ones(len(moments), 1, dtype=moments.dtype, device=moments.device)
        fast = torch.cat([moments, ones], dim=1).float().T
        for part, count, size in equal_sizes(self.sizes):
            # Also if the caller uses autocast: the errors are those of float32, not of bfloat16.
            with torch.autocast(fast.device.type, enabled=False):
                upper = torch.mm(self.fast_slopes[part], fast)
            yield part, upper.view(count, size, -1)

    def _screen(self, moments: Tensor) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return components and the rows that they may matter to; None if float64 is needed."""
        most = len(moments) * (len(self.sizes) + MAX_DOUBTFUL_SHARE * len(self.constants))
        found, n_found = [], 0
        for part, upper in self._upper_bounds(moments):
            if not upper.sum().isfinite():  # beyond the range of float32
                return None
            errors = self.errors[part].view(*upper.shape[:2], 1)
            best = torch.sub(upper, errors, alpha=2).amax(dim=1, keepdim=True)
            bound = best - self.negligible - 2 * self.relative_error * best.abs()
            columns, rows = (upper > bound).flatten(0, 1).nonzero(as_tuple=True)
            n_found += len(rows)
            if n_found > most:
                return None
            found.append((columns + part.start, rows))
        columns, rows = (torch.cat(t) for t in zip(*found, strict=True))
        return columns.cpu().numpy(), rows.cpu().numpy()

    def _top_and_doubtful(
        self, columns: NDArray[np.int64], rows: NDArray[np.int64], n_rows: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the largest component of each row and mixture, and the cells to compute exactly.

        Those are all that may matter in a mixture where more than one may, by rows, then columns.
        """
        n_mixtures, n_components = len(self.sizes), len(self.mixture_of)
        mixtures = self.mixture_of[columns]
        pairs = rows * n_mixtures + mixtures
        top = np.empty((n_rows, n_mixtures), dtype=np.int64)
        top.ravel()[pairs] = columns - self.starts[mixtures]
        doubtful = np.bincount(pairs, minlength=top.size)[pairs] > 1
        cells = np.sort(rows[doubtful] * n_components + columns[doubtful])
        return top, *np.divmod(cells, n_components)

    def _compress(
        self,
        moments: Tensor,
        top: NDArray[np.int64],
        rows: NDArray[np.int64],
        columns: NDArray[np.int64],
    ) -> CompactPosteriors:
        """Return the compact form, with exact posteriors of the given components."""
        n_rows, n_mixtures = top.shape
        joint = self._exact(moments, rows, columns)
        mixtures = self.mixture_of[columns]
        first = np.flatnonzero(np.diff(rows * n_mixtures + mixtures, prepend=-1))
        group = np.repeat(np.arange(len(first)), np.diff(first, append=len(rows)))
        # Soft-max within each group of neighbours, which is one mixture of one row.
        values = np.exp(joint - _reduce(np.maximum, joint, first)[group])
        values /= _reduce(np.add, values, first)[group]
        largest = _reduce(np.maximum, values, first)
        winners = np.flatnonzero(values == largest[group])
        is_top = np.zeros(len(rows), dtype=bool)
        is_top[winners[np.unique(group[winners], return_index=True)[1]]] = True
        top[rows[is_top], mixtures[is_top]] = columns[is_top] - self.starts[mixtures[is_top]]
        small = self.epsilon / np.asarray(self.sizes)[mixtures]
        keep = (largest[group] < 1 - self.epsilon) & (is_top | (values > small))
        cells = rows[keep].astype(np.int32), columns[keep].astype(np.int32)
        rest = sparse.csr_array(
            ((values - is_top)[keep].astype(np.float32), cells),
            shape=(n_rows, len(self.mixture_of)),
        )
        return CompactPosteriors(smallest_integers(top), rest, self.starts)

    def _exact(
        self, moments: Tensor, rows: NDArray[np.int64], columns: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the log-densities of the given rows and components in float64."""
        bounds = np.zeros(len(moments) + 1, dtype=np.int64)
        np.cumsum(np.bincount(rows, minlength=len(moments)), out=bounds[1:])
        device = moments.device
        pattern = torch.sparse_csr_tensor(
            torch.from_numpy(bounds).to(device),
            torch.from_numpy(columns).to(device),
            torch.zeros(len(columns), dtype=moments.dtype, device=device),
            (len(moments), len(self.constants)),
            check_invariants=False,
        )
        products = torch.sparse.sampled_addmm(pattern, moments, self.slopes.T, beta=0.0)
        values: NDArray[np.float64] = products.values().cpu().numpy()
        values += self.constants.cpu().numpy()[columns]
        return values


def _silence_beta_warning() -> None:
    """Trigger and ignore torch's one-time warning that sparse tensors are in beta.

    Not where they are made: several threads do that, and they share the warning filters.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        torch.sparse_csr_tensor([0, 0], [], [], (1, 1), check_invariants=False)


def _reduce(
    function: np.ufunc, values: NDArray[np.float64], first: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Reduce each group of neighbours; there may be none, which ``reduceat`` rejects."""
    return function.reduceat(values, first) if len(first) else values
