"""What ``verbose`` shows: a bar on a terminal, and a line now and then elsewhere.

The lines go to the logger ``dkae``. Where logging is not set up to pass them on, they go to
standard error: ``verbose`` asks to see them.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dkae.training.callbacks import (
    Callback,
    ProgressBar,
    Record,
    check_callbacks,
    losses_of,
    wants_progress,
)

if TYPE_CHECKING:
    from dkae.training.phases import Phase
    from dkae.training.trainer import Trainer

LOGGER = logging.getLogger("dkae")

#: Least time between two lines within a phase.
EVERY_SECONDS = 30.0


def listeners_of(callbacks: Any, verbose: object) -> list[Any]:
    """Return the callbacks of a user, and the progress bar if there is to be one."""
    listeners = check_callbacks(callbacks)
    return [*listeners, show_progress()] if wants_progress(verbose) else listeners


def show_progress() -> Callback:
    """Return a bar if standard error is a terminal or a notebook, else a log."""
    from rich.console import Console

    console = Console(stderr=True)
    return ProgressBar() if console.is_terminal or console.is_jupyter else LogProgress()


class LogProgress(Callback):
    """Logs a line when a phase begins or ends, and now and then between.

    Parameters
    ----------
    every_seconds : float, optional
        Least time between two lines within a phase, half a minute by default.
    clock : callable, default=time.monotonic
        Returns the time in seconds.
    """

    def __init__(
        self, every_seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.every_seconds = EVERY_SECONDS if every_seconds is None else every_seconds
        self.clock = clock

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        self._start = self._last = self.clock()
        self._n_steps, self._losses = 0, ""
        n_left = phase.n_epochs - trainer.epoch
        _tell(f"{phase.name}: epochs to train: {n_left}, of {trainer.n_steps} steps each")
        self._n_wanted = n_left * trainer.n_steps

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        self._n_steps += 1
        now = self.clock()
        if now - self._last < self.every_seconds or self._n_steps == self._n_wanted:
            return
        self._last = now
        share = self._n_steps / self._n_wanted
        left = (now - self._start) * (1 / share - 1)
        _tell(
            f"{phase.name}: epoch {trainer.epoch + 1} of {phase.n_epochs}, {share:.0%} done, "
            f"{_duration(left)} left{self._losses}"
        )

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._losses = f"  {losses_of(record)}"

    def on_phase_end(self, trainer: Trainer, phase: Phase) -> None:
        took = _duration(self.clock() - self._start)
        _tell(
            f"{phase.name}: {trainer.epoch} of {phase.n_epochs} epochs done in {took}{self._losses}"
        )


def _tell(line: str) -> None:
    if LOGGER.isEnabledFor(logging.INFO) and _has_listener(LOGGER):
        LOGGER.info("%s", line)
    else:
        print(line, file=sys.stderr, flush=True)


def _has_listener(logger: logging.Logger | None) -> bool:
    """Return whether a handler of a logger, or of one above it, does anything."""
    while logger is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
