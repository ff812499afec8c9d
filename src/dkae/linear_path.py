r"""The linear path beside kernel coordinates: what a kernel says too little of, faintly.

A code of `InvertibleNystroem` is

.. math:: c(x) = \bigl(W^\top \kappa(L, x),\; U^\top (x - \mu)\bigr) .

U are the leading principal directions of what ridge regression from the kernel coordinates cannot
give back. They are so faint that inner products of codes are the kernel's all the same. How many of
the N_c coordinates they get is chosen by the loss of Eq. 8, on rows that are held out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

from dkae._support.checks import check_integer
from dkae.alignment import offdiagonal
from dkae.decoders.base import held_out_mask
from dkae.decoders.ridge import fit_ridge
from dkae.grams import Floats, sample_ids
from dkae.networks import VARIANCE

Doubles = NDArray[np.float64]

#: Rows that the width of the path is chosen on.
N_CHOICE_ROWS = 4000
#: λ of the choice.
ALIGNMENT_WEIGHT = 0.1
#: Candidates for the width of the path, as parts of that of the code.
SHARES = (0.0, 0.125, 0.25, 0.5, 0.75)
#: The part of what a path gains for ridge regression that is left when a better decoder has
#: learned, if the kernel is smooth: with RBF on MNIST, N_c = 128, half of the code as a path takes
#: the decoder's error only from 0.0021 to 0.0017, and costs a third of the alignment.
LEFT_BY_THE_DECODER = 0.1
#: The inner products of the path are this part of the kernel's, as Frobenius norms: L_c is no
#: smaller than that, and its best is ten times as large.
FAINT = 3e-4


class Path(NamedTuple):
    """Directions U in standardised rows, and the number of kernel coordinates beside them."""

    n_kernel: int
    directions: Doubles


def check_width(n_linear: Any, n_components: int) -> int:
    """Return the width of the path that a user asked for."""
    width = check_integer("n_linear", n_linear, at_least=0)
    if width > n_components:
        raise ValueError(
            f"n_linear={width} is wider than the code, n_components={n_components}, that it is a "
            "part of: lower it, or raise n_components"
        )
    return width


def choose_width(
    codes: Doubles,
    seen: Floats,
    prior: Callable[[Any], Floats],
    n_components: int,
    *,
    is_smooth: bool,
) -> int:
    """Return the width of the path that has the least loss on held-out rows of a sample.

    `seen` are standardised rows, `prior` returns the Gram matrix of those of some ids.
    """
    sample = sample_ids(len(codes), N_CHOICE_ROWS)
    if len(sample) < 2 * 8:
        return n_components // 4
    held_out = held_out_mask(len(sample))
    gram = torch.from_numpy(prior(sample[held_out]))
    codes, seen = codes[sample], seen[sample]
    part = LEFT_BY_THE_DECODER if is_smooth else 1.0
    losses = {}
    for n_linear in sorted({int(share * n_components) for share in SHARES}):
        path = make_path(codes[~held_out], seen[~held_out], n_components, n_linear)
        c = np.hstack([codes[:, : path.n_kernel], seen @ path.directions])
        error = seen[held_out] - fit_ridge(c[~held_out], seen[~held_out]).predict(c[held_out])
        unexplained = part * VARIANCE * np.square(error).mean()
        mine = torch.from_numpy(np.ascontiguousarray(c[held_out], dtype=np.float32))
        aligned = float(offdiagonal(mine @ mine.T, gram))
        losses[n_linear] = (1 - ALIGNMENT_WEIGHT) * unexplained + ALIGNMENT_WEIGHT * aligned
    return min(losses, key=losses.__getitem__)


def make_path(codes: Doubles, seen: Floats, n_components: int, n_linear: int) -> Path:
    """Return the leading principal directions of what kernel coordinates do not give back."""
    n_kernel = min(n_components - n_linear, codes.shape[1])
    # Coordinates that the kernel has no use for are free.
    width = min(n_components - n_kernel, *seen.shape)
    directions = np.zeros((seen.shape[1], n_components - n_kernel))
    if width:
        own = codes[:, :n_kernel]
        residual = (seen - fit_ridge(own, seen).predict(own)).astype(np.float32)
        _, _, leading = randomized_svd(
            residual, width, power_iteration_normalizer="QR", random_state=0
        )
        path = seen @ leading.T
        size, norm = np.linalg.norm(path.T @ path), np.linalg.norm(own.T @ own)
        # Without kernel coordinates, the path is all that a code has.
        faint = np.sqrt(FAINT * norm / size) if size > 0 and norm > 0 else 1.0
        directions[:, :width] = faint * leading.T
    return Path(n_kernel, directions)
