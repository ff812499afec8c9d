"""The next batch is read, and its block computed, while the present one trains.

A disk is waited for beside the step, not before it. Batches are those that the source would give
without it, in the same order: what it depends on is the state before the batch that waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from dkae.training.sources import Batch, Source


class Prefetching:
    """A source that draws one batch ahead, in a thread of its own."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._pool: ThreadPoolExecutor | None = None
        self._next: tuple[tuple[bool, float], Future[Batch]] | None = None
        self._state: dict[str, Any] = {}  # before the next batch

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""
        return self.source.n_steps

    def draw(self, with_prior: bool, input_noise: float) -> Batch:
        """Return the next batch, and begin with the one after it."""
        asked = (with_prior, input_noise)
        if self._next is not None and self._next[0] != asked:  # another phase
            self._forget()
        batch = self.source.draw(*asked) if self._next is None else self._next[1].result()
        self._next = None
        self._state = self.source.state_dict()
        self._next = (asked, self._threads().submit(self.source.draw, *asked))
        return batch

    def held_out(self, with_prior: bool) -> Iterator[Batch]:
        return self.source.held_out(with_prior)

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict() if self._next is None else self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._forget()
        self.source.load_state_dict(state)

    def close(self) -> None:
        """Let the batch go that nobody will ask for."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _forget(self) -> None:
        """Go back to before the batch that waits."""
        if self._next is not None:
            self._next[1].exception()  # it may be under way
            self._next = None
            self.source.load_state_dict(self._state)

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            # The step has the cores; more threads here would only wait for it, spinning.
            n_threads = torch.get_num_threads()
            self._pool = ThreadPoolExecutor(1, "dkae-rows", torch.set_num_threads, (1,))
            self._pool.submit(torch.get_num_threads).result()
            torch.set_num_threads(n_threads)  # a new thread takes the last number of any
        return self._pool
