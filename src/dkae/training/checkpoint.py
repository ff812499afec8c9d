"""The state of a training run as one file, from which an interrupted run resumes exactly.

The file holds all that the next step depends on: the weights of the whole network, the optimizer,
the learning rate, the best weights of early stopping, the random numbers, the history; and a
fingerprint of the run, because no other run may resume from it. It has the container of model
files, with their checksum, and reading it executes nothing.

One is written when a phase begins, then once a minute, and when a signal asks the process to end.
The one before is kept beside it: if the newest is damaged, that one is taken.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dkae._support.container import (
    ModelFileError,
    is_like_container,
    parse_json,
    read_container,
    write_container,
)
from dkae._support.files import check_writable, owning
from dkae._support.processes import ALONE, Processes, present
from dkae._support.trees import NotPlainError, decode, encode
from dkae._support.warning import warn_caller
from dkae.training.callbacks import Callback, Record
from dkae.training.fingerprint import check_same_run
from dkae.training.signals import Signals
from dkae.training.trainer import is_finite

if TYPE_CHECKING:
    from dkae.training.phases import Phase
    from dkae.training.trainer import Trainer

FORMAT = "dkae checkpoint 3"

#: Least time between two writes: the file has three times the size of the weights.
EVERY_SECONDS = 60.0

#: What a state consists of, and of which type it is.
_TYPES: dict[str, Any] = {
    "fingerprint": dict,
    "phase": str,
    "epoch": int,
    "step": int,
    "sums": (int, torch.Tensor),
    "stop": bool,
    "parts": dict,
    "random": torch.Tensor,
}
_REMEDY = "delete the file to start again, or pass another path"


class Checkpoint(Callback):
    """Keeps the state of a run, known by its fingerprint, in a file; resumes if there is one.

    Of several processes the first reads and writes it, and tells the others what it has read.
    """

    is_for_all = True

    def __init__(self, path: Path, run: dict[str, Any], processes: Processes = ALONE) -> None:
        self.path = path
        self.run = run
        self.processes = processes
        self._pending, self._is_newest_whole = processes.first(
            _newest(path) if processes.is_first else (None, False)
        )
        if self._pending is not None:
            check_same_run(path, self._pending["fingerprint"], run, self._pending["phase"])
        self._signals, self._last_write = Signals(), time.monotonic()

    def on_train_begin(self, trainer: Trainer) -> None:
        names = [phase.name for phase in trainer.phases]
        if self._pending is not None and self._pending["phase"] not in names:
            raise ValueError(
                f"checkpoint={self.path} is of a phase {self._pending['phase'][:80]!r}, but this "
                f"run has {', '.join(names)}: {_REMEDY}"
            )
        self._signals.catch()

    def on_phase_setup(self, trainer: Trainer, phase: Phase) -> None:
        if self._pending is None:
            return
        if self._pending["phase"] != phase.name:  # phases come in a fixed order: it is over
            trainer.skip = True
            return
        state, self._pending = self._pending, None
        _restore(trainer, phase, state, self.path)

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        self.write(trainer, phase)

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        # An epoch that is over writes when its record is in the history.
        if trainer.step < trainer.n_steps:
            self._write_if_due(trainer, phase)

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._write_if_due(trainer, phase)

    def on_train_end(self, trainer: Trainer) -> None:
        if self._signals.received is not None:  # after the last step
            self._signals.obey(f"the state of the training is in {self.path}")
        self._signals.release()

    def _write_if_due(self, trainer: Trainer, phase: Phase) -> None:
        # A signal to one process is one to all: they end after the same step.
        asked = self.processes.highest(self._signals.received or 0)
        if asked or time.monotonic() - self._last_write >= EVERY_SECONDS:
            self.write(trainer, phase)
        if asked:
            self._signals.received = asked
            self._signals.obey(f"the state of the training is in {self.path}")

    def write(self, trainer: Trainer, phase: Phase) -> None:
        """Write the present state; the file that was there becomes the one before.

        A network that has diverged is of no use, and the last good one stays.
        """
        if not self.processes.is_first or not is_finite(trainer.network):
            return
        state = {
            "fingerprint": self.run,
            "phase": phase.name,
            "epoch": trainer.epoch,
            "step": trainer.step,
            "sums": trainer.sums,
            "stop": trainer.stop,
            "parts": {name: part.state_dict() for name, part in _parts(trainer).items()},
            "random": torch.random.get_rng_state(),
        }
        try:
            encoded, tensors = encode(state)
        except NotPlainError as error:
            raise ValueError(
                f"checkpoint cannot give back the state of one of {', '.join(state['parts'])} "
                f"({error}): let state_dict return numbers, strings, tensors, lists and dicts alone"
            ) from error
        metadata = {"format": FORMAT, "state": json.dumps(encoded)}
        try:
            # A damaged file must not take the place of the good one before it.
            keep = previous(self.path) if self._is_newest_whole else None
            write_container(self.path, metadata, tensors, keep=keep)
        except OSError as error:
            raise OSError(f"checkpoint={self.path} could not be written: {error}") from error
        self._is_newest_whole, self._last_write = True, time.monotonic()


def previous(path: Path) -> Path:
    """Return where the checkpoint before the newest is kept."""
    return path.with_name(f"{path.name}.previous")


def remove_checkpoint(path: str | os.PathLike[str]) -> None:
    """Remove a checkpoint that is no longer needed, and the one before it."""
    file = Path(path).resolve()  # as `fit` does
    file.unlink(missing_ok=True)
    previous(file).unlink(missing_ok=True)


def has_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Say whether there is a state to go on from."""
    file = Path(path).resolve()
    return file.exists() or previous(file).exists()


def _parts(trainer: Trainer) -> dict[str, Any]:
    """Return all that has a state, by name: what trains, and callbacks by their class."""
    parts: dict[str, Any] = {
        "network": trainer.network,
        "optimizer": trainer.optimizer,
        "schedule": trainer.schedule,
        "source": trainer.source,
    }
    numbers: Counter[str] = Counter()
    for callback in trainer.callbacks:
        if hasattr(callback, "state_dict") and hasattr(callback, "load_state_dict"):
            kind = type(callback).__name__
            numbers[kind] += 1
            parts[f"{kind} {numbers[kind]}"] = callback
    return parts


def _restore(trainer: Trainer, phase: Phase, state: dict[str, Any], path: Path) -> None:
    """Put the trainer where it was."""
    parts = _parts(trainer)
    if parts.keys() != state["parts"].keys():
        raise ValueError(
            f"checkpoint={path} has the state of {', '.join(state['parts'])}, but this run has "
            f"{', '.join(parts)}: pass the same callbacks, or another path"
        )
    n_sums = (2, 3) if state["step"] else ()  # with L_c or without; none before the first step
    is_sane = 0 <= state["step"] < trainer.n_steps and 0 <= state["epoch"] <= phase.n_epochs
    if not is_sane or _n_entries(state["sums"]) not in (n_sums or (0,)):
        raise ValueError(f"checkpoint={path} is of a step that this run never takes: {_REMEDY}")
    try:
        for name, part in parts.items():
            if name == "schedule" and part.state_dict().keys() != state["parts"][name].keys():
                raise ValueError("it has other entries")  # torch would take any, methods too
            part.load_state_dict(state["parts"][name])
        name = "random numbers"
        torch.random.set_rng_state(state["random"])
    except Exception as error:  # whatever a state that does not fit makes of a module
        raise ValueError(
            f"checkpoint={path} does not fit this run in {name} ({str(error)[:200]}): {_REMEDY}"
        ) from error
    trainer.epoch, trainer.step, trainer.stop = state["epoch"], state["step"], state["stop"]
    sums = state["sums"]
    trainer.sums = sums.to(trainer.engine.device) if isinstance(sums, torch.Tensor) else sums


def _n_entries(sums: Any) -> int:
    return len(sums) if isinstance(sums, torch.Tensor) and sums.ndim == 1 else 0


def check_path(checkpoint: Any, random_state: Any, *, is_writer: bool = True) -> Path | None:
    """Return the path of a checkpoint if it can be written and read again, before any work."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise ValueError(f"checkpoint={checkpoint!r} must be the path of a file or None")
    path = Path(checkpoint).resolve()  # the file goes at the end, not a link to it
    if is_writer:
        check_writable(path, "checkpoint")
    if random_state is None:
        raise ValueError(
            "checkpoint needs a fixed random_state, but it is None: the next call would start from "
            "other weights and could not go on; set random_state to a number such as 0"
        )
    return path


def owned(path: Path | None) -> contextlib.AbstractContextManager[None]:
    """Keep other fits from the same checkpoint meanwhile."""
    if path is None or not present().is_first:
        return contextlib.nullcontext()
    return owning(path, f"checkpoint={path}")


# --- reading -------------------------------------------------------------------------------------


def _newest(path: Path) -> tuple[dict[str, Any] | None, bool]:
    """Return the newest state that is whole, None if there is none, and whether it is the newest.

    Only a damaged checkpoint is left for the one before: any other file is somebody's.
    """
    older = previous(path)
    if not path.exists():
        return (_read_or_refuse(older), False) if older.exists() else (None, False)
    try:
        return _read(path), True
    except ModelFileError as error:
        if not (older.exists() and is_like_container(path)):
            raise _refused(path, error) from error
    state = _read_or_refuse(older)
    warn_caller(f"checkpoint={path} is damaged: going on from the one before")
    return state, False


def _read_or_refuse(path: Path) -> dict[str, Any]:
    try:
        return _read(path)
    except ModelFileError as error:
        raise _refused(path, error) from error


def _refused(path: Path, error: Exception) -> ValueError:
    return ValueError(f"checkpoint={path} is damaged or not a checkpoint ({error}): {_REMEDY}")


def _read(path: Path) -> dict[str, Any]:
    content = read_container(path)
    found = content.metadata.get("format", "")
    if found != FORMAT:  # it is whole, and something else
        raise ValueError(f"checkpoint={path} is not of the format {FORMAT!r}: {_REMEDY}")
    try:
        state = decode(parse_json(content.metadata.get("state", "")), content.tensors)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {str(error)[:200]}") from error
    if not isinstance(state, dict) or state.keys() != _TYPES.keys():
        raise ModelFileError(f"{path} has not the parts of a checkpoint")
    for name, kind in _TYPES.items():
        if not isinstance(state[name], kind):
            raise ModelFileError(f"{path} has a {name} that is none")
    return state
