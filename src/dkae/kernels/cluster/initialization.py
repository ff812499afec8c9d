"""The first steps of the mixtures of the Probabilistic Cluster Kernel.

The means are g distinct rows, the weights are equal, and the covariances are the mean variance of
all rows in all directions. Each mixture (q, g) has its own seed and does not depend on the others.
"""

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import kmeans_plusplus
from torch import Tensor

from dkae.kernels.cluster.mixtures import Mixtures, log_joint

INITS = ("random", "k-means++")
#: Rows whose standard deviation is this times a number from √0.1 to √10 have the unit 1: pixels in
#: [0, 1] (about 0.3) and standardised rows (1).
TYPICAL = 0.45


def initial_mixtures(
    rows: Tensor,
    max_components: int,
    n_initializations: int,
    *,
    init: str,
    reg_covar: float,
    seed: int,
) -> tuple[Tensor, Callable[[slice], Tensor]]:
    """Return the sizes of all mixtures, and a function for log w N(x) before the first step."""
    chosen = [
        first_means(rows, g, init, [seed, q, g])
        for g in range(2, max_components + 1)
        for q in range(n_initializations)
    ]
    sizes = torch.tensor([len(c) for c in chosen], device=rows.device)
    weights = torch.repeat_interleave(1 / sizes.to(rows.dtype), sizes).unsqueeze(1)
    # One table of log-densities around all first means serves every mixture.
    centres, first = (
        torch.from_numpy(t).to(rows.device)
        for t in np.unique(np.concatenate(chosen), return_inverse=True)
    )
    table = log_joint(rows, _around(rows, centres, reg_covar))

    def log_densities(part: slice) -> Tensor:
        return table.index_select(0, first[part]).add_(weights[part].log())

    return sizes, log_densities


def first_means(rows: Tensor, g: int, init: str, seed: list[int]) -> NDArray[np.intp]:
    """Return which rows are the first means of one mixture."""
    rng = np.random.default_rng(seed)
    if init == "random" or rows.shape[1] == 0:  # no features are left if all rows agree
        return rng.choice(len(rows), g, replace=False)
    state = np.random.RandomState(rng.integers(2**31))
    return np.asarray(kmeans_plusplus(rows.cpu().numpy(), g, random_state=state)[1])


def _around(rows: Tensor, centres: Tensor, reg_covar: float) -> Mixtures:
    """Return components of weight 1 around the rows `centres`."""
    covariances = rows.new_full((len(centres), 1), _variance_of(rows) + reg_covar)
    one = torch.tensor([len(centres)], device=rows.device)
    return Mixtures(one, rows.new_ones(len(centres)), rows[centres], covariances)


def unit_of(rows: Tensor) -> float:
    """Return the power of ten that is nearest to the spread of the rows, on a log scale.

    A power of ten, so that usual rows keep their unit, 1, to the last digit.
    """
    deviation = math.sqrt(_variance_of(rows))
    return 10.0 ** round(math.log10(deviation / TYPICAL)) if deviation > 0 else 1.0


def _variance_of(rows: Tensor) -> float:
    """Return the mean variance of all features."""
    return float((rows - rows.mean(dim=0)).square().sum()) / max(1, rows.numel())
