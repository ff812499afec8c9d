"""Batches of a loader, such as torch's ``DataLoader``: how they are read and trained on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dkae._support.processes import ALONE, Processes
from dkae.augmentation import Augmentation, with_views
from dkae.grams import Floats
from dkae.training.batches import Batch, draw_noise

#: Rows, and numbers, of the first batches that stand for all.
N_HEAD_ROWS, N_HEAD_NUMBERS = 20_000, 2**26
#: Steps of an epoch by default.
N_LOADER_STEPS = 100
#: What an array or a table has, and an iterable of batches has not.
_OF_ARRAYS = ("__array__", "__getitem__", "shape", "__dataframe__")


class LabelledRows(NamedTuple):
    """Rows, and their labels if they have any."""

    rows: NDArray[Any]
    labels: Any = None


def is_loader(X: Any) -> bool:
    """Return whether X is an iterable of batches; lists are arrays."""
    is_array = isinstance(X, (str, bytes, list, tuple, dict, set, frozenset))
    is_array = is_array or any(hasattr(X, name) for name in _OF_ARRAYS)
    return hasattr(X, "__iter__") and not is_array


def check_loader_wishes(**wishes: bool) -> None:
    """Raise for what needs rows that can be read again."""
    if refused := [name for name, is_wished in wishes.items() if is_wished]:
        raise ValueError(
            f"X is an iterable of batches, and {refused[0]} needs rows that can be read again: "
            "leave it out, or pass an array of rows, such as a memmap"
        )


def loader_steps(loader: Any, steps_per_epoch: Any) -> int:
    """Return the number of steps of an epoch."""
    if steps_per_epoch == "samples":
        if not hasattr(loader, "__len__"):
            raise ValueError(
                "steps_per_epoch='samples' needs the number of batches, and X has no length: pass "
                "a number"
            )
        return len(loader)
    return N_LOADER_STEPS if steps_per_epoch == "auto" else int(steps_per_epoch)


def first_batches(
    loader: Iterable[Any], processes: Processes = ALONE
) -> tuple[Iterator[NDArray[Any]], LabelledRows]:
    """Return all batches, without end if the iterable starts anew, and the first ones as rows.

    Several processes, each with batches of its own, take the first rows of the first process.
    """
    iterator, head, n_rows, n_numbers = iter(loader), list[LabelledRows](), 0, 0
    for number, item in enumerate(iterator):
        head.append(read_batch(item, number))
        rows = head[-1].rows
        _check_shape(number, rows, head[0].rows.shape[1:])
        n_rows, n_numbers = n_rows + len(rows), n_numbers + rows.size
        if n_rows >= N_HEAD_ROWS or n_numbers >= N_HEAD_NUMBERS:
            break
    if not head:
        raise ValueError("X is an iterable without batches: pass one that gives at least one")
    if iterator is loader:  # it can be read once, and that has begun
        rest = (read_batch(item, number) for number, item in enumerate(iterator, len(head)))
        batches: Iterator[LabelledRows] = chain(head, rest)
    else:
        batches = _endlessly(loader)
    known, labels = {"rows": np.concatenate([b.rows for b in head])}, [b.labels for b in head]
    if not any(label is None for label in labels):
        known["labels"] = np.concatenate(labels)
    shared = processes.first_arrays(known)
    return (batch.rows for batch in batches), LabelledRows(shared["rows"], shared.get("labels"))


def _endlessly(loader: Iterable[Any]) -> Iterator[LabelledRows]:
    while True:
        number = -1
        for number, item in enumerate(loader):
            yield read_batch(item, number)
        if number < 0:
            return


def _check_shape(number: int, rows: NDArray[Any], shape: tuple[int, ...]) -> None:
    """Raise if the rows of a batch do not have the shape of those of the first."""
    if rows.shape[1:] != shape:
        raise ValueError(
            f"batch {number} of X has rows of shape {rows.shape[1:]}, and the first of {shape}: "
            "pass batches of rows that are alike"
        )


def read_batch(item: Any, number: int) -> LabelledRows:
    """Return one batch: rows, (rows,) or (rows, labels)."""
    parts = item if isinstance(item, (list, tuple)) else (item,)
    numeric = [p.detach().cpu().numpy() if isinstance(p, torch.Tensor) else p for p in parts]
    if len(parts) not in (1, 2) or np.ndim(numeric[0]) < 2:
        raise ValueError(
            f"batch {number} of X is a {type(item).__name__}: expected rows, as an array or tensor "
            "of at least two dimensions, (rows,) or (rows, labels)"
        )
    rows = np.ascontiguousarray(numeric[0], dtype=np.float32)
    return LabelledRows(rows, np.asarray(numeric[1]) if len(parts) == 2 else None)


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
    #: Returns views, which take the place of every second row.
    augment: Augmentation | None = None
    n_drawn: int = 0

    def draw(self, with_prior: bool = True, input_noise: float = 0.0) -> Batch:
        """Return the next batch that has at least two rows."""
        seen = np.ascontiguousarray(self.seen(self._next()))
        if self.augment is not None:
            seen = with_views(self.augment, seen, self.rng)
        own = torch.from_numpy(seen)
        self._check_sizes(len(own))
        block = None
        if with_prior:
            rows = self.processes.rows(own)
            block = torch.from_numpy(self.gram(rows.numpy())).to(self.device)
        inputs = own
        if self.encode is not None:
            inputs = torch.from_numpy(self.encode(own.numpy()))
        elif input_noise:
            inputs = own + torch.from_numpy(draw_noise(self.rng, tuple(own.shape), input_noise))
        return Batch(inputs.to(self.device), own.to(self.device), block)

    def held_out(self, with_prior: bool = False) -> Iterator[Batch]:
        return iter(())

    def state_dict(self) -> dict[str, Any]:
        return {}  # a loader has no state that could be restored

    def load_state_dict(self, state: dict[str, Any]) -> None: ...

    def _next(self) -> Floats:
        for rows in self.batches:
            self.n_drawn += 1
            _check_shape(self.n_drawn - 1, rows, self.shape)
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
