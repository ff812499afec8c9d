"""The next batch is read, and its block computed, while the present one trains.

The batches are those that the source would give without it, in the same order: the state of this
source is that before the batch that waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from dkae.training.batches import Batch, Source


class Prefetching:
    """A source that draws one batch ahead, in a thread of its own."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._thread = _thread()
        self._asked: tuple[bool, float] | None = None  # for the batch that waits, if there is one
        self._waiting: Future[Batch] = Future()
        self._state: dict[str, Any] = {}  # of the source before it

    @property
    def n_steps(self) -> int:
        """The number of batches that make an epoch."""
        return self.source.n_steps

    def draw(self, with_prior: bool, input_noise: float) -> Batch:
        """Return the next batch, and begin with the one after it."""
        asked = (with_prior, input_noise)
        if self._asked != asked:  # another phase
            self._forget()
        is_first, self._asked = self._asked is None, None
        batch = self.source.draw(*asked) if is_first else self._waiting.result()
        self._state = self.source.state_dict()
        self._asked, self._waiting = asked, self._thread.submit(self.source.draw, *asked)
        return batch

    def held_out(self, with_prior: bool) -> Iterator[Batch]:
        return self.source.held_out(with_prior)

    def state_dict(self) -> dict[str, Any]:
        return self.source.state_dict() if self._asked is None else self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._forget()
        self.source.load_state_dict(state)

    def close(self) -> None:
        """Drop the batch that waits, and end the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _forget(self) -> None:
        """Go back to before the batch that waits."""
        if self._asked is not None:
            self._waiting.exception()  # it may be under way
            self._asked = None
            self.source.load_state_dict(self._state)


def _thread() -> ThreadPoolExecutor:
    """Return a pool of one thread, in which torch has one thread too: the step has the cores."""
    n_threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(1, "dkae-rows", torch.set_num_threads, (1,))
    pool.submit(torch.get_num_threads).result()
    torch.set_num_threads(n_threads)  # a new thread takes the last number of any
    return pool
