r"""Compact posteriors of many rows: float32 finds what matters, float64 computes only that.

A component matters to a posterior only if its log-density comes close to the largest one of its
mixture. In high dimension that is nearly always the largest one alone. All log-densities are
computed in float32, at twice the speed of float64; where a second one comes close *within the error
of float32*, those few are computed again in float64.

Close means within :math:`\log (10^3 g / \varepsilon)` in a mixture of g components: the components
left out then sum to a thousandth of :math:`\varepsilon`, the error of the compact form.

With the form :math:`\ell = \langle (x^2, x), a \rangle + c` the terms of a log-density sum up, in
absolute value, to a small multiple of :math:`|\ell| + |c| + \tfrac12 \sum_d \mu_d^2 / \sigma_d^2`
(since :math:`2 |x \mu| \le x^2 + \mu^2`). Its error is taken to be that times the unit round-off
times a factor that grows with the root of the number of terms, as rounding errors of either sign
do. This is an estimate with a margin, not a proven bound: on MNIST the largest error is 0.6 of it.
"""

import math
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from dkae._support.arrays import smallest_integers
from dkae.kernels.cluster.compact import CompactPosteriors, compress
from dkae.kernels.cluster.mixtures import Mixtures, equal_sizes, linear_form, moments_of, posteriors

#: Unit round-off of float32.
ROUND_OFF = 2.0**-24
#: If more than this share of the components matters, float64 for all is faster.
MAX_DOUBTFUL_SHARE = 0.05


class Screening:
    """Computes compact posteriors under mixtures of diagonal or spherical covariance."""

    def __init__(self, mixtures: Mixtures, epsilon: float) -> None:
        _silence_beta_warning()
        self.mixtures = mixtures
        self.epsilon = epsilon
        self.sizes: list[int] = mixtures.sizes.tolist()
        self.slopes, self.constants = linear_form(mixtures)
        # `errors` is of the part of a log-density that depends on the component alone; the error of
        # the rest is relative to the log-density.
        self.relative_error = ROUND_OFF * (16 + self.slopes.shape[1] ** 0.5)
        n_squares = mixtures.covariances.shape[1]
        squares = 0.5 * torch.einsum("kd,kd->k", mixtures.means, self.slopes[:, n_squares:])
        errors = self.relative_error * (squares + self.constants.abs())
        self.errors = errors.float().unsqueeze(1)
        # The constants are one more column and 1 is one more moment, so that one product gives all
        # log-densities; with the errors added, it gives upper bounds.
        self.fast_slopes = torch.empty(
            len(errors), self.slopes.shape[1] + 1, dtype=torch.float32, device=errors.device
        )
        self.fast_slopes[:, :-1] = self.slopes
        self.fast_slopes[:, -1] = self.constants + errors
        sizes = np.asarray(self.sizes)
        self.starts = (np.cumsum(sizes) - sizes).astype(np.int32)
        self.mixture_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        self.negligible = math.log(1e3 * max(self.sizes) / epsilon)

    def compress(self, X: Tensor) -> CompactPosteriors:
        """Return the compact posteriors of the rows."""
        moments = moments_of(X, self.mixtures)
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
        rest = sparse.csr_array(
            (
                (values - is_top)[keep].astype(np.float32),
                (rows[keep].astype(np.int32), columns[keep].astype(np.int32)),
            ),
            shape=(n_rows, len(self.mixture_of)),
        )
        scales = np.ones(n_rows, dtype=np.float32)
        return CompactPosteriors(smallest_integers(top), rest, self.starts, scales)

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
