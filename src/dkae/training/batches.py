"""Who is in a batch, and the block of the prior that belongs to it.

A batch is k distinct rows; batches are drawn independently of each other, as in Section 4.1 of
the paper. The block P_k is computed when the batch is drawn, and only if a loss asks for it: the
memory needed beyond the data is O(k²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dkae._runtime.checks import check_choice, check_integer
from dkae.kernels.base import Floats, Prior, Rows

__all__ = ["Batch", "BatchSource", "batches_per_epoch"]


class Batch(NamedTuple):
    """What one training step needs."""

    #: What the encoder sees, (k, d): the rows, with noise if that was asked for.
    inputs: Tensor
    #: What the decoder must give back, (k, d): the clean rows.
    targets: Tensor
    #: The block P_k of the prior for the clean rows, (k, k); None if nobody asks for it.
    prior_gram: Tensor | None


def batches_per_epoch(n_rows: int, batch_size: int, epoch: str | int) -> int:
    """Return the number of batches that make an epoch.

    ``"pairs"`` is the paper's (n/k)², which sees each *pair* of rows about once; ``"samples"`` is
    the usual n/k; a number is itself, a budget that does not depend on the data's size.
    """
    if not isinstance(epoch, str):
        return check_integer("epoch", epoch, at_least=1)
    rounds = n_rows / min(batch_size, n_rows)
    exponent = {"pairs": 2, "samples": 1}[check_choice("epoch", epoch, ["pairs", "samples"])]
    # The rounding takes 70.00000000000001 back to 70 before ceil makes 71 of it.
    return math.ceil(round(rounds**exponent, 6))


class BatchSource:
    """Draws seeded batches of the given rows.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The data, which stays where it is: a batch copies its own rows only.
    prior : Prior
        Gram matrix of the rows of X.
    rows : array of int
        The rows of X that may be drawn.
    batch_size : int
        k; all rows are taken where there are fewer.
    rng : numpy.random.Generator
        Source of rows and noise.
    device : torch.device
        Where the batch goes.
    """

    def __init__(
        self,
        X: Floats,
        prior: Prior,
        rows: Rows,
        *,
        batch_size: int,
        rng: np.random.Generator,
        device: torch.device,
    ) -> None:
        self.X = X
        self.prior = prior
        self.rows = rows
        self.batch_size = min(batch_size, len(rows))
        self.rng = rng
        self.device = device

    def draw(self, with_prior: bool = True, *, input_noise: float = 0.0) -> Batch:
        """Return the next batch: distinct rows, independent of the batches before it.

        The rows are the same with and without the prior. With `input_noise` each row of the inputs
        gets Gaussian noise of a standard deviation of its own, drawn from U(0, input_noise).
        """
        # Without replacement this is O(k) for k << n: no permutation of all n rows.
        chosen = self.rng.choice(self.rows, self.batch_size, replace=False, shuffle=False)
        batch = self._batch(chosen, with_prior)
        return batch._replace(inputs=self._noisy(batch.inputs, input_noise))

    def blocks(self) -> Iterator[Batch]:
        """Yield all rows once, without noise, in blocks of about `batch_size`: for evaluation."""
        n_blocks = math.ceil(len(self.rows) / self.batch_size)
        yield from map(self._batch, np.array_split(self.rows, n_blocks))

    def _batch(self, rows: Rows, with_prior: bool = True) -> Batch:
        x = torch.from_numpy(self.X[rows]).to(self.device)
        if not with_prior:
            return Batch(x, x, None)
        return Batch(x, x, torch.from_numpy(self.prior.block(rows)).to(self.device))

    def _noisy(self, x: Tensor, largest: float) -> Tensor:
        if largest == 0:
            return x
        size = self.rng.uniform(0, largest, (len(x), 1)).astype(np.float32)
        noise = size * self.rng.standard_normal(tuple(x.shape), dtype=np.float32)
        return x + torch.from_numpy(noise).to(self.device)
