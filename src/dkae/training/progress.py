"""What ``verbose`` shows: a bar on a terminal, and a line now and then elsewhere.

The lines go to the logger ``dkae``. Where logging is not set up to pass them on, they go to
standard error: ``verbose`` asks to see them.
"""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from dkae.training.callbacks import Callback, Record, check_callbacks, losses_of

if TYPE_CHECKING:
    from dkae.training.phases import Phase
    from dkae.training.trainer import Trainer

LOGGER = logging.getLogger("dkae")


def listeners_of(callbacks: Any, verbose: object) -> list[Any]:
    """Return the callbacks of a user, and a progress bar or log if `verbose` asks for one."""
    listeners = check_callbacks(callbacks)
    if not isinstance(verbose, int | float | np.number):
        raise ValueError(
            f"verbose={verbose!r} must be a number, 0 for silence and 1 for a progress bar: pass "
            "objects that follow the training as callbacks=[...]"
        )
    return [*listeners, show_progress()] if verbose else listeners


def show_progress() -> Callback:
    """Return a bar if standard error is a terminal or a notebook, else a log."""
    from rich.console import Console

    console = Console(stderr=True)
    return ProgressBar() if console.is_terminal or console.is_jupyter else LogProgress()


class ProgressBar(Callback):
    """A bar for each phase, with the losses of the last epoch and the time left."""

    def on_train_begin(self, trainer: Trainer) -> None:
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
        self._bars.start()

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        n_steps = (phase.n_epochs - trainer.epoch) * trainer.n_steps - trainer.step
        self._task = self._bars.add_task(phase.name, total=n_steps, losses="")

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        self._bars.advance(self._task)

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._bars.update(self._task, losses=losses_of(record))

    def on_train_end(self, trainer: Trainer) -> None:
        self._bars.stop()


class LogProgress(Callback):
    """Logs a line when a phase begins or ends, and now and then between.

    Parameters
    ----------
    every_seconds : float, default=30
        Least time between two lines within a phase.
    """

    def __init__(self, every_seconds: float = 30.0) -> None:
        self.every_seconds = every_seconds

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        self._start = self._last = time.monotonic()
        n_left = phase.n_epochs - trainer.epoch
        self._n_steps, self._n_wanted, self._losses = 0, n_left * trainer.n_steps, ""
        _tell(f"{phase.name}: epochs to train: {n_left}, of {trainer.n_steps} steps each")

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        self._n_steps += 1
        now = time.monotonic()
        if now - self._last < self.every_seconds or self._n_steps == self._n_wanted:
            return
        self._last, share = now, self._n_steps / self._n_wanted
        left = _duration((now - self._start) * (1 / share - 1))
        _tell(
            f"{phase.name}: epoch {trainer.epoch + 1} of {phase.n_epochs}, {share:.0%} done, "
            f"{left} left{self._losses}"
        )

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._losses = f"  {losses_of(record)}"

    def on_phase_end(self, trainer: Trainer, phase: Phase) -> None:
        took = _duration(time.monotonic() - self._start)
        _tell(
            f"{phase.name}: {trainer.epoch} of {phase.n_epochs} epochs done in {took}{self._losses}"
        )


def _tell(line: str) -> None:
    loggers = [LOGGER, logging.root] if LOGGER.propagate else [LOGGER]
    handlers = [h for logger in loggers for h in logger.handlers]
    is_heard = any(not isinstance(handler, logging.NullHandler) for handler in handlers)
    if is_heard and LOGGER.isEnabledFor(logging.INFO):
        LOGGER.info("%s", line)
    else:
        print(line, file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
