"""Batches of rows that come once: one pass over an array, or the batches of a loader."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dkae._support.processes import ALONE, Processes
from dkae.grams import Floats, Rows
from dkae.training.sources import Batch, BatchSource, draw_noise


class PassSource(BatchSource):
    """One pass over the rows: each is in one batch, in random order.

    Of several processes each has as many rows of a batch; what is left over waits for another pass.
    """

    def __post_init__(self) -> None:
        n, least = len(self.train_rows), max(2, self.processes.size)
        if n < least:
            raise ValueError(f"X has {n} rows for {self.processes.size} processes: pass more")
        self._n_parts = min(super().n_steps, n // least)
        parts = np.array_split(self.rng.permutation(self.train_rows), self._n_parts)
        self._parts = iter([part[: len(part) - len(part) % self.processes.size] for part in parts])

    @property
    def n_steps(self) -> int:
        """The number of batches of the pass."""
        return self._n_parts

    def _draw_rows(self, k: int) -> Rows:
        return next(self._parts)


@dataclass
class LoaderSource:
    """The batches of a loader; the kernel is evaluated on each."""

    batches: Iterator[Floats]
    #: The shape of a row.
    shape: tuple[int, ...]
    #: Returns rows as the map sees them.
    seen: Callable[[Floats], Floats]
    #: Returns the Gram matrix of rows.
    gram: Callable[[Floats], Floats]
    n_steps: int
    #: Source of noise.
    rng: np.random.Generator
    device: torch.device
    processes: Processes = ALONE
    #: Returns the inputs of rows, if they are not the rows themselves.
    encode: Callable[[Floats], Floats] | None = None
    n_drawn: int = 0

    def draw(self, with_prior: bool = True, input_noise: float = 0.0) -> Batch:
        """Return the next batch that has at least two rows."""
        own = torch.from_numpy(np.ascontiguousarray(self.seen(self._next())))
        self._check_sizes(len(own))
        block = None
        if with_prior:
            rows = self.processes.rows(own)
            block = torch.from_numpy(self.gram(rows.numpy())).to(self.device)
        x = own.to(self.device)
        if self.encode is not None:
            return Batch(torch.from_numpy(self.encode(own.numpy())).to(self.device), x, block)
        if not input_noise:
            return Batch(x, x, block)
        noise = torch.from_numpy(draw_noise(self.rng, tuple(own.shape), input_noise))
        return Batch(x + noise.to(self.device), x, block)

    def held_out(self, with_prior: bool = False) -> Iterator[Batch]:
        return iter(())

    def state_dict(self) -> dict[str, Any]:
        return {}  # a loader has no state that could be restored

    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    def _next(self) -> Floats:
        for rows in self.batches:
            self.n_drawn += 1
            if rows.shape[1:] != self.shape:
                raise ValueError(
                    f"batch {self.n_drawn - 1} of X has rows of shape {rows.shape[1:]}, and the "
                    f"first of {self.shape}: pass batches of rows that are alike"
                )
            if not np.isfinite(rows).all():
                raise ValueError(
                    f"batch {self.n_drawn - 1} of X contains NaN or infinite values (in float32): "
                    "leave out such rows"
                )
            if len(rows) > 1:
                return rows
        raise ValueError(
            f"X ended after {self.n_drawn} batches, before the training did: pass an iterable that "
            "can be iterated again, such as a DataLoader, or fewer epochs (max_iter, "
            "decoder_max_iter) or steps_per_epoch"
        )

    def _check_sizes(self, own: int) -> None:
        sizes = self.processes.rows(torch.tensor([own])).tolist()
        if len(set(sizes)) > 1:
            raise ValueError(
                f"the processes have batches of {sizes} rows: let each have as many, for example "
                "with drop_last=True"
            )
