"""What a person sees while a model trains."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self, runtime_checkable

import numpy as np

__all__ = ["Progress", "Record", "RichProgress", "Silence", "losses_of", "make_progress"]

Record = dict[str, str | int | float]


@runtime_checkable
class Progress(Protocol):
    """Is told of phases, steps and finished epochs.

    The record of an epoch is what stands in ``history_``: it has no ``alignment_loss`` where
    nothing learns from the kernel.
    """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
    def start(self, phase: str, n_steps: int) -> None: ...
    def step(self) -> None: ...
    def epoch(self, record: Record) -> None: ...


class Silence:
    """Says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self, phase: str, n_steps: int) -> None:
        pass

    def step(self) -> None:
        pass

    def epoch(self, record: Record) -> None:
        pass


class RichProgress:
    """A progress bar for each phase, with the losses of the last epoch and the time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        # Standard error: what a command prints can be piped while the bar is seen.
        self._bars = Bars(
            TextColumn("{task.description:<12}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=Console(stderr=True),
        )

    def __enter__(self) -> Self:
        self._bars.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.__exit__(kind, error, trace)

    def start(self, phase: str, n_steps: int) -> None:
        self._task = self._bars.add_task(phase, total=n_steps, losses="")

    def step(self) -> None:
        self._bars.advance(self._task)

    def epoch(self, record: Record) -> None:
        self._bars.update(self._task, losses=losses_of(record))


def losses_of(record: Record) -> str:
    """Return the losses of an epoch in a few words; L_c only where it was trained."""
    losses = f"L_r {record['reconstruction_loss']:.4f}"
    return losses + (f"  L_c {record['alignment_loss']:.3f}" if "alignment_loss" in record else "")


def make_progress(verbose: object) -> Progress:
    """Return a silent reporter for ``verbose=0``, a bar for other numbers, or the one given."""
    if isinstance(verbose, np.generic):
        verbose = verbose.item()
    if isinstance(verbose, int | float):
        return RichProgress() if verbose else Silence()
    if not isinstance(verbose, Progress):
        methods = "with-statement, start(phase, n_steps), step() and epoch(record)"
        raise ValueError(
            f"verbose={verbose!r} must be a number, 0 for silence and 1 for a progress bar, or an "
            f"object that can be told of the training: {methods}"
        )
    return verbose
