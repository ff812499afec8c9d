"""The state of a training run as one file, from which a broken run goes on as if never broken.

The file holds all that the next epoch depends on: the weights of the whole network, Adam, the
learning rate, the best weights of early stopping, the random numbers, the history; and a
fingerprint of the run, because no other run may go on from it. Reading it executes nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch

from dkae._runtime.files import replacing
from dkae.networks.stacked import Autoencoder
from dkae.training.fingerprint import check_same_run
from dkae.training.progress import Record

__all__ = ["Checkpoint", "NoCheckpoint", "Stateful", "check_path"]

FORMAT = "dkae checkpoint 1"

#: Least time between two writes: the file has three times the size of the weights.
EVERY_SECONDS = 60.0

_KEYS = {"fingerprint", "phase", "epoch", "weights", "rng", "history", "parts"}


class Stateful(Protocol):
    """What an optimizer, a schedule and the best weights have in common."""

    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any], /) -> Any: ...


class NoCheckpoint:
    """Keeps nothing: each phase starts with its first epoch."""

    def resume(self, phase: str, parts: Mapping[str, Stateful]) -> int | None:
        """Return the epoch to go on with, `parts` being as they were before it.

        None says that the phase was over when the file was written.
        """
        return 1

    def save(self, phase: str, epoch: int, parts: Mapping[str, Stateful]) -> None:
        """Take note of a finished epoch."""


class Checkpoint(NoCheckpoint):
    """Keeps the state of a run in a file; goes on from the file if there is one.

    Parameters
    ----------
    path : Path
        The file.
    network : Autoencoder
        The whole network, also while a layer is trained by itself.
    rng : numpy.random.Generator
        Source of the batches and the noise.
    history : list of dict
        The records of the epochs.
    run : dict
        The :func:`~dkae.training.fingerprint.fingerprint` of the run.
    """

    def __init__(
        self,
        path: Path,
        network: Autoencoder,
        rng: np.random.Generator,
        history: list[Record],
        run: dict[str, Any],
    ) -> None:
        self.path = path
        self.network = network
        self.rng = rng
        self.history = history
        self.run = run
        self._pending = _read(path) if path.exists() else None
        if self._pending is not None:
            check_same_run(path, self._pending["fingerprint"], run)
        self._last_write = time.monotonic()

    def resume(self, phase: str, parts: Mapping[str, Stateful]) -> int | None:
        if self._pending is None:
            return 1
        if self._pending["phase"] != phase:  # phases come in a fixed order, so this one is over
            return None
        state, self._pending = self._pending, None
        self.network.load_state_dict(state["weights"])
        self.rng.bit_generator.state = state["rng"]
        self.history[:] = state["history"]
        for name, part in parts.items():
            part.load_state_dict(state["parts"][name])
        return int(state["epoch"]) + 1

    def save(self, phase: str, epoch: int, parts: Mapping[str, Stateful]) -> None:
        if time.monotonic() - self._last_write < EVERY_SECONDS:
            return
        state = {
            "format": FORMAT,
            "fingerprint": self.run,
            "phase": phase,
            "epoch": epoch,
            "weights": self.network.state_dict(),
            "rng": self.rng.bit_generator.state,
            "history": self.history,
            "parts": {name: part.state_dict() for name, part in parts.items()},
        }
        with replacing(self.path) as temporary:
            try:
                torch.save(state, temporary)
            except RuntimeError as error:  # a full disk, for example
                raise OSError(f"checkpoint={self.path} could not be written: {error}") from error
        self._last_write = time.monotonic()


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


def _read(path: Path) -> dict[str, Any]:
    remedy = "delete the file to start again, or pass another path"
    with path.open("rb") as file:
        try:
            state = torch.load(file, map_location="cpu", weights_only=True)
        except MemoryError:
            raise
        except Exception as error:  # there is no telling how a file that is no checkpoint fails
            kind = type(error).__name__
            raise ValueError(
                f"checkpoint={path} is damaged or not a checkpoint ({kind}): {remedy}"
            ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT or not state.keys() >= _KEYS:
        raise ValueError(f"checkpoint={path} is not of the format {FORMAT!r}: {remedy}")
    return state
