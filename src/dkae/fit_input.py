"""How rows come to a map that is fitted: all at once, as an iterable of batches, or part by part.

A `FitInput` knows what is different for each of these; everything else of a fit stands once, in the
map.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from dkae._support.processes import Processes
from dkae.grams import Gram, Ids
from dkae.statistics import Statistics
from dkae.training.batches import BatchSource, PassSource, Source, batches_per_epoch, split_rows
from dkae.training.callbacks import Continuation, Record
from dkae.training.checkpoint import Checkpoint, check_path, keeping
from dkae.training.fingerprint import fingerprint
from dkae.training.loaders import LoaderSource, check_loader_wishes, first_batches, loader_steps
from dkae.training.phases import Settings
from dkae.training.views import PassViewSource, Views, ViewSource

__all__ = ["FitInput", "LoaderInput", "PartInput", "TrainingData"]

#: Parts like the first that `partial_fit` expects, for the widths of a network.
N_PARTS = 10
#: Rows that are encoded together.
N_ENCODED_ROWS = 2048

Encode = Callable[[Any], NDArray[Any]]


class TrainingData(NamedTuple):
    """The training rows as a map sees them."""

    rows: Any
    #: Gram matrix of all rows.
    prior: Gram
    #: The ids of the rows to train on, and of those that nothing is fitted to.
    ids: Ids
    held_out: Ids
    #: Statistics of the rows to train on; None if a fit goes on, which learns none.
    known: Statistics | None
    seed: int
    #: Source of batches.
    rng: np.random.Generator
    #: Returns other rows as the map sees them.
    see: Callable[[Any], Any]
    #: How rows are varied, if they are.
    views: Views | None = None


class FitInput:
    """All rows at once: `fit` of an array.

    Parameters
    ----------
    X, y, gram, checkpoint
        As `fit` got them.
    """

    #: What the user called, in words, if rows come in parts; closed forms need all rows at once.
    parts = ""
    #: Whether all processes have the same rows.
    is_shared = True
    #: Whether this is all that the map will be fitted to.
    is_last = True
    #: Parts like these rows that are expected.
    n_parts = 1
    #: Records and optimizer of the passes before.
    history: tuple[Record, ...] = ()
    continued: dict[str, Any] | None = None
    #: The checkpoint, if there is one.
    path: Path | None = None
    _kind: type[BatchSource] = BatchSource
    _kind_with_views: type[ViewSource] = ViewSource

    def __init__(self, X: Any, y: object = None, gram: Any = None, checkpoint: Any = None) -> None:
        self.X, self.y, self.gram, self.checkpoint = X, y, gram, checkpoint

    def open(self, processes: Processes, random_state: Any) -> Any:
        """Return the rows that the map is fitted to, as they came; check the rest of the call."""
        is_writer = processes.is_first
        self.path = check_path(self.checkpoint, random_state, is_writer=is_writer)
        return self.X

    def settings(self, settings: Settings) -> Settings:
        """Return how to train on rows that come so."""
        return settings

    def callbacks(self) -> list[Any]:
        """Return callbacks beyond those of the user."""
        return []

    def rng(self, seed: int, rank: int) -> np.random.Generator:
        """Return the source of batches."""
        return np.random.default_rng(seed)

    def split(self, n: int, fraction: float, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Return the ids of rows to train on, and of those to hold out."""
        return split_rows(n, fraction, rng)

    def source(
        self,
        data: TrainingData,
        settings: Settings,
        device: torch.device,
        processes: Processes,
        *,
        fill: Any = None,
        encode: Encode | None = None,
    ) -> Source:
        """Return the batches; their inputs are codes by `encode`, if it is given.

        `fill` replaces missing values of inputs. With codes, no loss asks for the prior.
        """
        source = self._kind(
            data.rows,
            data.prior if encode is None else None,
            data.ids,
            data.held_out,
            settings.batch_size,
            settings.steps_per_epoch,
            data.rng,
            device,
            fill,
            None if encode is None else _codes_of(data.rows, encode, settings),
            processes,
        )
        return source if data.views is None else self._kind_with_views(source, data.views)

    def keeping(
        self, network: nn.Module, data: TrainingData, settings: Settings
    ) -> AbstractContextManager[list[Checkpoint]]:
        """Return a context with the callback that keeps the training, if there is a checkpoint."""
        run = partial(fingerprint, network, data.rows, data.prior, settings, data.rng)
        return keeping(self.path, run)

    def joined(self, records: list[Record]) -> list[Record]:
        """Return the records of all passes, these among them."""
        return records


class LoaderInput(FitInput):
    """An iterable of batches, such as a ``DataLoader``; its first rows stand for all."""

    parts = "an iterable of batches"
    is_shared = False

    def open(self, processes: Processes, random_state: Any) -> Any:
        check_loader_wishes(
            y=self.y is not None,
            gram=self.gram is not None,
            checkpoint=self.checkpoint is not None,
        )
        self.batches, head = first_batches(self.X, processes)
        self.y = head.labels
        return head.rows

    def settings(self, settings: Settings) -> Settings:
        check_loader_wishes(
            validation_fraction=bool(settings.validation_fraction),
            **{"steps_per_epoch='pairs'": settings.steps_per_epoch == "pairs"},
        )
        return replace(settings, steps_per_epoch=loader_steps(self.X, settings.steps_per_epoch))

    def rng(self, seed: int, rank: int) -> np.random.Generator:
        return np.random.default_rng([seed, rank])

    def source(
        self,
        data: TrainingData,
        settings: Settings,
        device: torch.device,
        processes: Processes,
        *,
        fill: Any = None,
        encode: Encode | None = None,
    ) -> Source:
        kernel, n_steps = data.prior.kernel, settings.steps_per_epoch
        return LoaderSource(
            self.batches, data.rows.shape[1:], data.see, kernel.gram, int(n_steps), data.rng,
            device, processes, encode, None if data.views is None else data.views.augment,
        )  # fmt: skip


class PartInput(FitInput):
    """Some of the rows: `partial_fit`, which takes one pass over them.

    Parameters
    ----------
    X, y, gram
        As `partial_fit` got them.
    history, continued
        Records and optimizer of the passes before.
    """

    parts = "partial_fit"
    is_last = False
    n_parts = N_PARTS
    _kind = PassSource
    _kind_with_views = PassViewSource

    def __init__(self, X: Any, y: object, gram: Any, history: Any, continued: Any) -> None:
        super().__init__(X, y, gram)
        self.history = tuple(history)
        self._continuation = Continuation(continued)

    @property
    def continued(self) -> dict[str, Any] | None:  # type: ignore[override]
        """The optimizer, for the next pass."""
        return self._continuation.state

    def settings(self, settings: Settings) -> Settings:
        return settings.one_pass()

    def callbacks(self) -> list[Any]:
        return [self._continuation]

    def rng(self, seed: int, rank: int) -> np.random.Generator:
        return np.random.default_rng([seed, len(self.history)])  # another order at each call

    def joined(self, records: list[Record]) -> list[Record]:
        for record in records:
            record["epoch"] = len(self.history) + 1
        return [*self.history, *records]


class Codes:
    """Codes of rows, computed when they are asked for."""

    def __init__(self, rows: Any, encode: Encode) -> None:
        self.rows, self.encode = rows, encode

    def __getitem__(self, ids: Any) -> NDArray[np.float32]:
        starts = range(0, len(ids), N_ENCODED_ROWS)
        parts = [self.rows[ids[i : i + N_ENCODED_ROWS]] for i in starts]
        codes = [self.encode(np.asarray(part)) for part in parts]
        return np.concatenate(codes).astype(np.float32, copy=False)


def _codes_of(rows: Any, encode: Encode, settings: Settings) -> Any:
    """Return the codes of all rows, or codes that are computed for each batch.

    They are computed once unless there are more rows than training will draw.
    """
    lazy = Codes(rows, encode)
    n_steps = batches_per_epoch(len(rows), settings.batch_size, settings.steps_per_epoch)
    n_drawn = settings.decoder_max_iter * n_steps * settings.batch_size
    return lazy[np.arange(len(rows))] if len(rows) <= n_drawn else lazy
