"""The state of a training run as one file, from which an interrupted run resumes exactly.

The file holds all that the next epoch depends on: the weights of the whole network, Adam, the
learning rate, the best weights of early stopping, the random numbers, the history; and a
fingerprint of the run, because no other run may resume from it. Reading it executes nothing.
"""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from dkae._runtime.files import replacing
from dkae.training.callbacks import Callback, Record
from dkae.training.fingerprint import check_same_run

if TYPE_CHECKING:
    from dkae.training.phases import Phase
    from dkae.training.trainer import Trainer

FORMAT = "dkae checkpoint 2"

#: Least time between two writes: the file has three times the size of the weights.
EVERY_SECONDS = 60.0

_KEYS = {"fingerprint", "phase", "epoch", "stop", "parts", "random"}


class Checkpoint(Callback):
    """Keeps the state of a run, known by its fingerprint, in a file; resumes if there is one."""

    def __init__(self, path: Path, run: dict[str, Any]) -> None:
        self.path = path
        self.run = run
        self._pending = _read(path) if path.exists() else None
        if self._pending is not None:
            check_same_run(path, self._pending["fingerprint"], run)
        self._is_readable, self._last_write = False, time.monotonic()

    def on_phase_setup(self, trainer: Trainer, phase: Phase) -> None:
        if self._pending is None:
            return
        if self._pending["phase"] != phase.name:  # phases come in a fixed order: it is over
            trainer.skip = True
            return
        state, self._pending = self._pending, None
        parts = _parts(trainer)
        if parts.keys() != state["parts"].keys():
            raise ValueError(
                f"checkpoint={self.path} has the state of {', '.join(state['parts'])}, but this "
                f"run has {', '.join(parts)}: pass the same callbacks, or another path"
            )
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])
        torch.random.set_rng_state(state["random"])
        trainer.epoch, trainer.stop = int(state["epoch"]), bool(state["stop"])

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        if time.monotonic() - self._last_write < EVERY_SECONDS:
            return
        state = {
            "format": FORMAT,
            "fingerprint": self.run,
            "phase": phase.name,
            "epoch": trainer.epoch,
            "stop": trainer.stop,
            "parts": {name: part.state_dict() for name, part in _parts(trainer).items()},
            "random": torch.random.get_rng_state(),
        }
        with replacing(self.path) as temporary:
            try:
                torch.save(state, temporary)
            except RuntimeError as error:  # a full disk, for example
                raise OSError(f"checkpoint={self.path} could not be written: {error}") from error
            if not self._is_readable:
                _check_readable(temporary, _parts(trainer))
        self._is_readable, self._last_write = True, time.monotonic()


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


def check_path(checkpoint: Any, random_state: Any) -> Path | None:
    """Return the path of a checkpoint if it can be written and read again, before any work."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, (str, os.PathLike)):
        raise ValueError(f"checkpoint={checkpoint!r} must be the path of a file or None")
    path = Path(checkpoint).resolve()  # the file goes at the end, not a link to it
    if path.is_dir():
        raise ValueError(f"checkpoint={path} is a folder: pass the path of a file")
    if not path.parent.is_dir():
        raise ValueError(f"checkpoint={path} lies in a folder that does not exist: make it first")
    if random_state is None:
        raise ValueError(
            "checkpoint needs a fixed random_state, but it is None: the next call would start from "
            "other weights and could not go on; set random_state to a number such as 0"
        )
    return path


def _check_readable(path: Path, parts: Iterable[str]) -> None:
    """Refuse a state that would be lost: better at the first write than when it is needed."""
    try:
        torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        what = str(error).partition("Unsupported global: ")[2].partition(" was")[0] or str(error)
        raise ValueError(
            f"checkpoint cannot give back the state of one of {', '.join(parts)} ({what}): let "
            "state_dict return numbers, strings, tensors, lists and dicts alone"
        ) from error


def _read(path: Path) -> dict[str, Any]:
    remedy = "delete the file to start again, or pass another path"
    with path.open("rb") as file:
        try:
            state = torch.load(file, map_location="cpu", weights_only=True)
        except MemoryError:
            raise
        except Exception as error:  # a file that is not a checkpoint may fail in any way
            kind = type(error).__name__
            raise ValueError(
                f"checkpoint={path} is damaged or not a checkpoint ({kind}): {remedy}"
            ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT or not state.keys() >= _KEYS:
        raise ValueError(f"checkpoint={path} is not of the format {FORMAT!r}: {remedy}")
    return state
