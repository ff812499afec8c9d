"""How the Gram matrix of codes compares with a prior, over all pairs of n rows and without n × n.

Both matrices are gone through tile by tile; only three sums are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dkae.kernels.base import Floats, Prior, Rows

__all__ = ["GramComparison", "compare_grams"]

#: Rows of a tile: two tiles of float32 are 8 MB.
N_TILE_ROWS = 1024


@dataclass(frozen=True)
class GramComparison:
    """The three inner products that every measure of the pair (C, P) is made of."""

    code_code: float
    code_prior: float
    prior_prior: float

    @property
    def alignment(self) -> float:
        """A(C, P) of Eq. 7; 0 where one of the matrices is zero."""
        norms = math.sqrt(self.code_code * self.prior_prior)
        return min(1.0, self.code_prior / norms) if norms > 0 else 0.0

    @property
    def alignment_loss(self) -> float:
        """L_c(C, P) of Eq. 6, good to about 1e-4: the codes are float32."""
        return math.sqrt(2 - 2 * self.alignment)

    @property
    def scale(self) -> float:
        """The factor s that makes s C nearest to P: ⟨C, P⟩ / ⟨C, C⟩."""
        return self.code_prior / self.code_code if self.code_code > 0 else 1.0


def compare_grams(codes: Floats, prior: Prior, rows: Rows | None = None) -> GramComparison:
    """Compare the Gram matrix of `codes` with that of the prior.

    Parameters
    ----------
    codes : array of shape (n_rows, n_components)
        Codes of the rows.
    prior : Prior
        Gram matrix that they should represent.
    rows : array of int, optional
        The rows of the prior that the codes belong to; all of them if not given.
    """
    rows = np.arange(len(prior)) if rows is None else rows
    starts = range(0, len(rows), N_TILE_ROWS)
    total = np.zeros(3)
    for i in starts:
        for j in starts[: i // N_TILE_ROWS + 1]:
            a, b = slice(i, i + N_TILE_ROWS), slice(j, j + N_TILE_ROWS)
            prior_tile = prior.block(rows[a], None if i == j else rows[b])
            # Both matrices are symmetric: a tile below the diagonal stands for two.
            total += (1 if i == j else 2) * _inner_products(codes[a] @ codes[b].T, prior_tile)
    return GramComparison(*total.tolist())


def _inner_products(c: Floats, p: Floats) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    # In float64, because squares of entries beyond 1e±19 leave float32; a tile is 8 MB.
    c64, p64 = c.astype(np.float64), p.astype(np.float64)
    return np.array([np.vdot(c64, c64), np.vdot(c64, p64), np.vdot(p64, p64)])
