"""Batches of rows and of views of rows: the kernel is evaluated at what the network sees.

A pool holds rows and a view of each, with what their kernel keeps of them. Batches are drawn from
it as they are from the rows, and after a few passes it is drawn anew: so a costly kernel is
evaluated once for several batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from dkae._support.processes import Processes
from dkae.augmentation import Augmentation, views_of, with_views
from dkae.grams import Floats, Gram
from dkae.training.batches import Batch, BatchSource
from dkae.training.fingerprint import rows_digest

#: Rows, and numbers, that a pool takes from the data at most.
N_POOL_ROWS, N_POOL_NUMBERS = 14_000, 2**24
#: How often a row of a pool is drawn, on average, before the pool is drawn anew.
N_PASSES = 5


class Views(NamedTuple):
    """How rows are varied, and what the kernel says of the results."""

    augment: Augmentation
    #: Returns the Gram matrix of rows in memory.
    gram_of: Callable[[Floats], Gram]


@dataclass
class ViewSource:
    """Batches from a pool of rows and of views of rows."""

    #: The rows of the data, and the source of random numbers.
    source: BatchSource
    views: Views

    def __post_init__(self) -> None:
        self._before = self.source.state_dict()  # the pool was drawn
        self._n_left = 0  # batches of the pool
        self._pool = self.source

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""
        return self.source.n_steps

    def draw(self, with_prior: bool = True, input_noise: float = 0.0) -> Batch:
        """Return the next batch: distinct rows of the pool."""
        if not self._n_left:
            self._before = self.source.state_dict()
            self._pool, self._n_left = self._draw_pool()
        self._n_left -= 1
        if with_prior and self._pool.gram is None:
            self._pool.gram = self.views.gram_of(self._pool.X)
        return self._pool.draw(with_prior, input_noise)

    def held_out(self, with_prior: bool = True) -> Iterator[Batch]:
        return self.source.held_out(with_prior)

    def state_dict(self) -> dict[str, Any]:
        now = self.source.state_dict()
        return {"now": now, "before the pool": self._before, "batches left": self._n_left}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._before, self._n_left = state["before the pool"], state["batches left"]
        if self._n_left:
            self.source.load_state_dict(self._before)
            self._pool, _ = self._draw_pool()
        self.source.load_state_dict(state["now"])

    def _draw_pool(self) -> tuple[BatchSource, int]:
        """Return rows of the data with a view of each, and the number of their batches."""
        source = self.source
        n_numbers = max(1, math.prod(source.X.shape[1:]))
        n = max(source.batch_size, min(N_POOL_ROWS, N_POOL_NUMBERS // n_numbers))
        rows = self._rows(min(n, len(source.train_ids)))
        views = views_of(self.views.augment, rows, source.rng)
        pool = self._pool_of(np.concatenate([rows, views]))
        return pool, math.ceil(N_PASSES * len(pool.X) / source.batch_size)

    def _rows(self, n: int) -> Floats:
        return np.asarray(self.source.X[self.source.draw_ids(n)])

    def _pool_of(self, rows: Floats) -> BatchSource:
        source, everyone = self.source, np.arange(len(rows))
        _check_same_rows(source.processes, rows)
        return BatchSource(
            X=rows,
            gram=None,
            train_ids=everyone,
            held_out_ids=everyone[:0],
            batch_size=min(source.batch_size, len(source.train_ids)),
            steps_per_epoch=1,
            rng=source.rng,
            device=source.device,
            fill=source.fill,
            processes=source.processes,
        )


class PassViewSource(ViewSource):
    """One pass over the rows; in each batch, views take the place of every second row."""

    def _draw_pool(self) -> tuple[BatchSource, int]:
        rows = self._rows(self.source.batch_size)
        return self._pool_of(with_views(self.views.augment, rows, self.source.rng)), 1


def _check_same_rows(processes: Processes, rows: Floats) -> None:
    """Raise if the rows of a pool differ between ranks; a thread that reads ahead may call it."""
    if processes.size == 1:
        return
    digest = torch.frombuffer(bytearray.fromhex(rows_digest(rows)), dtype=torch.uint8).long()
    digests = processes.rows(digest[None])
    if others := (digests != digests[0]).any(dim=1).nonzero().flatten().tolist():
        named = ", ".join(f"rank {rank}" for rank in others)
        raise ValueError(
            f"{named} differs from rank 0 in what augment returned: start all processes with the "
            "same function, and draw with the generator that it is given"
        )
