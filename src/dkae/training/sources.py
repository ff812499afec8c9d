"""Who is in a batch, and the block of the prior that belongs to it.

A batch is k distinct rows; batches are drawn independently of each other, as in Section 4.1 of
the paper. The block P_k is computed when the batch is drawn, and only if a loss asks for it: the
memory needed beyond the data is O(k²).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from dkae._runtime.checks import check_choice, check_integer
from dkae.grams import Floats, Gram, Rows, read_block
from dkae.training.teacher import Teacher


class Batch(NamedTuple):
    """What one training step needs."""

    #: What the encoder sees, (k, ...): the rows, with noise if that was asked for.
    inputs: Tensor
    #: What the decoder must give back, (k, ...): the clean rows.
    targets: Tensor
    #: The block P_k of the prior for the clean rows, (k, k); None if nobody asks for it.
    prior_gram: Tensor | None
    #: Kernel values with landmark rows, (k, m), where the network can use them.
    kernel_values: Tensor | None = None
    #: Codes that the network is trained towards, (k, n_components), if there are any.
    target_codes: Tensor | None = None


class Source(Protocol):
    """Where batches come from."""

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""

    def draw(self, with_prior: bool, input_noise: float) -> Batch:
        """Return the next batch, with its block of the prior if asked for."""

    def held_out(self) -> Iterator[Batch]:
        """Yield the rows that are held out, in blocks, without noise; none if there are none."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next batch depends on."""

    def load_state_dict(self, state: dict[str, Any], /) -> None: ...


@dataclass
class BatchSource:
    """Draws seeded batches of an array's rows."""

    #: The data, which stays where it is: a batch copies its own rows only.
    X: Floats
    #: Gram matrix of the rows of X.
    gram: Gram
    #: The rows of X that may be drawn, and those that are held out.
    train_rows: Rows
    held_out_rows: Rows
    #: k; all rows are taken where there are fewer.
    batch_size: int
    #: See `batches_per_epoch`.
    steps_per_epoch: str | int
    #: Source of rows and noise.
    rng: np.random.Generator
    #: Where the batch goes.
    device: torch.device
    #: Rows whose kernel values with those of a batch are wanted: reading them is cheaper than
    #: evaluating the kernel anew.
    landmarks: Rows | None = None
    #: Who knows target codes.
    teacher: Teacher | None = None

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""
        return batches_per_epoch(len(self.train_rows), self.batch_size, self.steps_per_epoch)

    def draw(self, with_prior: bool = True, input_noise: float = 0.0) -> Batch:
        """Return the next batch: distinct rows, independent of the batches before it.

        The rows are the same with and without the prior. With `input_noise` each row of the inputs
        gets Gaussian noise of a standard deviation of its own, drawn from U(0, input_noise).
        """
        k = min(self.batch_size, len(self.train_rows))
        # Without replacement this is O(k) for k << n: no permutation of all n rows.
        batch = self._batch(
            self.rng.choice(self.train_rows, k, replace=False, shuffle=False), with_prior
        )
        if input_noise == 0:
            return batch
        return batch._replace(inputs=self._noisy(batch.inputs, input_noise), kernel_values=None)

    def held_out(self) -> Iterator[Batch]:
        n = len(self.held_out_rows)
        if n:
            n_blocks = math.ceil(n / min(self.batch_size, n))
            yield from map(self._batch, np.array_split(self.held_out_rows, n_blocks))

    def state_dict(self) -> dict[str, Any]:
        return dict(self.rng.bit_generator.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state

    def _batch(self, rows: Rows, with_prior: bool = True) -> Batch:
        x = torch.from_numpy(np.ascontiguousarray(self.X[rows])).to(self.device)
        block = values = targets = None
        if with_prior:
            block = torch.from_numpy(read_block(self.gram, rows)).to(self.device)
        if self.landmarks is not None:
            read = read_block(self.gram, rows, self.landmarks)
            values = torch.from_numpy(read).to(self.device)
        if with_prior and self.teacher is not None:
            targets = self.teacher.codes(rows).to(self.device)
        return Batch(x, x, block, values, targets)

    def _noisy(self, x: Tensor, largest: float) -> Tensor:
        each_row = (len(x), *[1] * (x.ndim - 1))
        size = self.rng.uniform(0, largest, each_row).astype(np.float32)
        noise = size * self.rng.standard_normal(tuple(x.shape), dtype=np.float32)
        return x + torch.from_numpy(noise).to(self.device)


def batches_per_epoch(n_rows: int, batch_size: int, steps_per_epoch: str | int) -> int:
    """Return the number of batches that make an epoch.

    ``"pairs"`` is the paper's (n/k)², which sees each *pair* of rows about once; ``"samples"`` is
    the usual n/k; a number is itself, a budget that does not depend on the data's size; ``"auto"``
    is n/10, between 25 and 100.
    """
    if not isinstance(steps_per_epoch, str):
        return check_integer("steps_per_epoch", steps_per_epoch, at_least=1)
    if steps_per_epoch == "auto":
        return min(100, max(25, n_rows // 10))
    exponents = {"pairs": 2, "samples": 1}
    exponent = exponents[check_choice("steps_per_epoch", steps_per_epoch, exponents)]
    rounds = n_rows / min(batch_size, n_rows)
    # The rounding takes 70.00000000000001 back to 70 before ceil makes 71 of it.
    return math.ceil(round(rounds**exponent, 6))


def split_rows(n_rows: int, fraction: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the rows to train on and a random `fraction` of the rows to hold out."""
    # The Gram matrix of a single row is aligned with any other.
    n_held_out = max(2, math.ceil(fraction * n_rows)) if fraction else 0
    if n_rows - n_held_out < 2:
        raise ValueError(
            f"validation_fraction={fraction:g} of {n_rows} rows leaves fewer than 2 rows to train "
            "on: lower it or pass more rows"
        )
    rows = rng.permutation(n_rows) if n_held_out else np.arange(n_rows)
    return rows[n_held_out:], rows[:n_held_out]
