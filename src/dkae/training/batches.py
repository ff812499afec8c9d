"""Batches: which rows they have, and the block of the prior that belongs to them.

A batch is k distinct rows; batches are drawn independently of each other, as in Section 4.1 of
the paper. The block P_k is computed when the batch is drawn, and only if a loss asks for it: the
memory needed beyond the data is O(k²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import torch
from torch import Tensor

from dkae._support.checks import check_choice, check_integer
from dkae._support.processes import ALONE, Processes
from dkae.grams import Floats, Gram, Ids, RowsGram, read_block
from dkae.rows import RowArray

#: Runs of neighbouring rows that a batch of "chunks" consists of.
N_RUNS = 8


class Batch(NamedTuple):
    """What one training step needs."""

    #: What the encoder sees, (k, ...): the rows, without gaps, with noise if that was asked for.
    inputs: Tensor
    #: What the decoder should reconstruct, (k, ...): the clean rows, NaN where a value is missing.
    targets: Tensor
    #: The block P_k of the prior for the clean rows, (k, k); None if it was not asked for.
    prior_gram: Tensor | None
    #: Entries per known entry, in the rows of all processes; None if none can be missing.
    gap_weight: Tensor | None = None

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        moved: list[Any] = [None if tensor is None else tensor.to(device) for tensor in self]
        return Batch(*moved)


class Source(Protocol):
    """Where batches come from."""

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""

    def draw(self, with_prior: bool, input_noise: float) -> Batch:
        """Return the next batch, with its block of the prior if asked for."""

    def held_out(self, with_prior: bool) -> Iterator[Batch]:
        """Yield the held-out rows, if there are any, in blocks and without noise."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next batch depends on."""

    def load_state_dict(self, state: dict[str, Any], /) -> None: ...


@dataclass
class BatchSource:
    """Draws seeded batches of an array's rows.

    Several processes have the same random numbers, and so the same batches: each reads its part of
    the rows, and computes its rows of the block.
    """

    #: The rows as the map sees them; a batch copies its own rows only.
    X: Any
    #: Gram matrix of the rows of X; None if no loss will ask for it.
    gram: Gram | None
    #: The ids of rows that may be drawn, and of those that are held out.
    train_ids: Ids
    held_out_ids: Ids
    #: k; all rows are taken if there are fewer.
    batch_size: int
    #: See `batches_per_epoch`.
    steps_per_epoch: str | int
    #: Source of rows and noise.
    rng: np.random.Generator
    #: Where the batch goes.
    device: torch.device
    #: The mean of each feature, which replaces missing values; None if none may be missing.
    fill: Floats | None = None
    #: Codes of the rows, which are the inputs if they are given.
    codes: Any = None
    #: The processes that train together.
    processes: Processes = ALONE

    def __post_init__(self) -> None:
        self._shuffle = getattr(self.X, "shuffle", "rows")
        if self._shuffle == "chunks":
            self.train_ids = np.sort(self.train_ids)
        k, n = min(self.batch_size, len(self.train_ids)), self.processes.size
        if k % n:
            raise ValueError(
                f"batch_size={self.batch_size} makes batches of {k} rows, which cannot be divided "
                f"among {n} processes: set batch_size to a multiple of {n}"
            )

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""
        return batches_per_epoch(len(self.train_ids), self.batch_size, self.steps_per_epoch)

    def draw(self, with_prior: bool = True, input_noise: float = 0.0) -> Batch:
        """Return the next batch: distinct rows, independent of the batches before it.

        The rows are the same with and without the prior. With `input_noise` each row of the inputs
        gets Gaussian noise of a standard deviation of its own, drawn from U(0, input_noise).
        """
        ids = self.draw_ids(min(self.batch_size, len(self.train_ids)))
        shape = (len(ids), *self.X.shape[1:])
        noise = draw_noise(self.rng, shape, input_noise) if input_noise else None
        batch = self._batch(ids, with_prior, self.processes)
        if noise is None:
            return batch
        own = torch.from_numpy(noise[self.processes.part(len(ids))]).to(self.device)
        return batch._replace(inputs=batch.inputs + own)

    def held_out(self, with_prior: bool = True) -> Iterator[Batch]:
        n = len(self.held_out_ids)
        if n:
            n_blocks = math.ceil(n / min(self.batch_size, n))
            blocks = np.array_split(self.held_out_ids, n_blocks)
            for block in blocks[self.processes.rank :: self.processes.size]:
                yield self._batch(block, with_prior)

    def state_dict(self) -> dict[str, Any]:
        return dict(self.rng.bit_generator.state)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rng.bit_generator.state = state

    def draw_ids(self, k: int) -> Ids:
        """Return the ids of k distinct rows."""
        length = math.ceil(k / N_RUNS)
        n_runs, n_places = math.ceil(k / length), len(self.train_ids) // length
        if self._shuffle == "rows" or n_places < n_runs:
            # Without replacement this is O(k) for k << n: no permutation of all n rows.
            return self.rng.choice(self.train_ids, k, replace=False, shuffle=False)
        starts = length * self.rng.choice(n_places, n_runs, replace=False, shuffle=False)
        if n_left := len(self.train_ids) - length * n_places:  # or the last rows never came
            starts += self.rng.integers(n_left + 1)
        # The first run may be any; numpy puts the last of all places in the last one.
        ids: Ids = self.train_ids[(starts[:, None] + np.arange(length)).ravel()[-k:]]
        return ids

    def _batch(self, ids: Ids, with_prior: bool = True, processes: Processes = ALONE) -> Batch:
        """Return the batch of these rows, or the part of it that is this process's."""
        own = ids[processes.part(len(ids))]
        inputs = targets = torch.from_numpy(np.ascontiguousarray(self.X[own]))
        weight = block = None
        if self.fill is not None:
            known = ~targets.isnan()
            inputs = torch.where(known, targets, torch.from_numpy(self.fill))
            n_known = processes.rows(known.sum()[None]).sum()
            weight = processes.size * known.numel() / n_known.clamp(min=1)
        if self.codes is not None:
            inputs = torch.from_numpy(self.codes[own])
        if with_prior and self.gram is not None:
            block = _shared_block(self.gram, ids, processes)
        return Batch(inputs, targets, block, weight).to(self.device)


class PassSource(BatchSource):
    """One pass over the rows: each is in one batch, in random order.

    Of several processes each has as many rows of a batch; rows left over wait for another pass.
    """

    def __post_init__(self) -> None:
        n, least = len(self.train_ids), max(2, self.processes.size)
        if n < least:
            raise ValueError(f"X has {n} rows for {self.processes.size} processes: pass more")
        self._n_parts = min(super().n_steps, n // least)
        parts = np.array_split(self.rng.permutation(self.train_ids), self._n_parts)
        self._parts = iter([part[: len(part) - len(part) % self.processes.size] for part in parts])

    @property
    def n_steps(self) -> int:
        """The number of batches of the pass."""
        return self._n_parts

    def draw_ids(self, k: int) -> Ids:
        return next(self._parts)


class Prefetching:
    """A source that draws one batch ahead, in a thread of its own, while the last one trains.

    The batches are those of the source, in the same order. The state is that before the batch that
    waits.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self._thread = _thread()
        #: Of the batch that waits: what was asked, the state of the source before it, and itself.
        self._ahead: tuple[tuple[bool, float], dict[str, Any], Future[Batch]] | None = None

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""
        return self.source.n_steps

    def draw(self, with_prior: bool, input_noise: float) -> Batch:
        """Return the next batch, and begin with the one after it."""
        asked = (with_prior, input_noise)
        if self._ahead is not None and self._ahead[0] != asked:  # another phase
            self.load_state_dict(self._ahead[1])
        batch = self.source.draw(*asked) if self._ahead is None else self._ahead[2].result()
        state = self.source.state_dict()
        self._ahead = asked, state, self._thread.submit(self.source.draw, *asked)
        return batch

    def held_out(self, with_prior: bool) -> Iterator[Batch]:
        return self.source.held_out(with_prior)

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict() if self._ahead is None else self._ahead[1]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if self._ahead is not None:
            self._ahead[2].exception()  # it may be under way
            self._ahead = None
        self.source.load_state_dict(state)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        """Drop the batch that waits, and end the thread: nothing is read any more.

        After an error the other processes may be gone, and with them what that batch waits for.
        """
        self._thread.shutdown(wait=kind is None, cancel_futures=True)


def _thread() -> ThreadPoolExecutor:
    """Return a pool of one thread, in which torch has one thread too: the step has the cores."""
    n_threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(1, "dkae-rows", torch.set_num_threads, (1,))
    try:
        pool.submit(torch.get_num_threads).result()
    except BaseException:  # Ctrl-C: Python would wait for a worker that has no work
        pool.shutdown(wait=False)
        raise
    torch.set_num_threads(n_threads)  # a new thread takes the last number of any
    return pool


def _are_floats(rows: Any) -> bool:
    """Return whether rows are arrays that can be sent; all processes have leaves and labels."""
    return isinstance(rows, (np.ndarray, RowArray)) and rows.dtype in (np.float32, np.float64)


def draw_noise(rng: np.random.Generator, shape: tuple[int, ...], largest: float) -> Floats:
    """Return noise for rows, each of a standard deviation of its own, drawn from U(0, largest)."""
    size = rng.uniform(0, largest, (shape[0], *[1] * (len(shape) - 1))).astype(np.float32)
    noise: Floats = size * rng.standard_normal(shape, dtype=np.float32)
    return noise


def _shared_block(gram: Gram, ids: Ids, processes: Processes) -> Tensor:
    """Return the block of some rows; each process computes its rows of it."""
    if processes.size == 1:
        return torch.from_numpy(read_block(gram, ids))
    own = ids[processes.part(len(ids))]
    if isinstance(gram, RowsGram) and _are_floats(gram.rows):
        # Rows that another process has read are not read again.
        mine = torch.from_numpy(np.ascontiguousarray(gram.rows[own]))
        values = gram.between(mine.numpy(), processes.rows(mine).numpy())
        return processes.rows(torch.from_numpy(values))
    return processes.rows(torch.from_numpy(read_block(gram, own, ids)))


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


#: Rows that are held out at most: more would take longer to evaluate than the epoch before.
N_HELD_OUT_AT_MOST = 10_000


def split_rows(n_rows: int, fraction: float, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Return the ids of rows to train on, and those of a random `fraction` to hold out."""
    # The Gram matrix of a single row is aligned with any other.
    n_held_out = max(2, math.ceil(fraction * n_rows)) if fraction else 0
    n_held_out = min(n_held_out, N_HELD_OUT_AT_MOST)
    if n_rows - n_held_out < 2:
        raise ValueError(
            f"validation_fraction={fraction:g} of {n_rows} rows leaves fewer than 2 rows to train "
            "on: lower it or pass more rows"
        )
    # Four bytes a row, if that is enough.
    ids: Any = np.arange(n_rows, dtype=np.int32 if n_rows < 2**31 else np.int64)
    if n_held_out:
        rng.shuffle(ids)
    return ids[n_held_out:], ids[:n_held_out]
