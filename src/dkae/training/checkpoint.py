"""The state of a training run as one file, from which an interrupted run resumes exactly.

The file holds what the next step depends on: the weights of the whole network, the moments of the
optimizer, random numbers, callbacks; and a fingerprint of the run, because no other run may resume
from it. Optimizer and schedule are built afresh and brought to the step of the file, whose state is
taken only if it has the same form. The file is a safe file, as a model's: reading it executes
nothing.

One is written when a phase begins, then once a minute, and when a signal asks the process to end.
The one before is kept next to it: if the newest is damaged, that one is taken.
"""

from __future__ import annotations

import copy
import os
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from dkae._support import safe_file
from dkae._support.checks import warn_caller
from dkae._support.json_state import NotPlainError, check_form, pack, unpack
from dkae._support.processes import ALONE, Processes, present
from dkae._support.safe_file import ModelFileError
from dkae.files import check_writable, owning
from dkae.training.callbacks import Callback, Record
from dkae.training.fingerprint import check_same_run
from dkae.training.signals import Signals
from dkae.training.trainer import is_finite

if TYPE_CHECKING:
    from dkae.training.phases import Phase
    from dkae.training.trainer import Trainer

FORMAT = "dkae checkpoint 1"

#: Least time between two writes: the file has three times the size of the weights.
EVERY_SECONDS = 60.0

#: What a state consists of; of the first parts, a fresh state has the same keys, shapes and types.
_FIXED = ("epoch", "step", "sums", "stop", "network", "hyperparameters", "source", "random")
_PARTS = {*_FIXED, "fingerprint", "phase", "moments", "callbacks"}
_REMEDY = "delete the file to start again, or pass another path"


class Checkpoint(Callback):
    """Keeps the state of a run, known by its fingerprint, in a file; resumes if there is one.

    Of several processes the first reads and writes it, and sends the others what it has read.
    """

    is_for_all = True

    def __init__(self, path: Path, run: dict[str, Any], processes: Processes = ALONE) -> None:
        self.path = path
        self.run = run
        self.processes = processes
        self._pending = _sent(_newest(path) if processes.is_first else None, processes)
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
        try:
            _restore(trainer, phase, state)
        except Exception as error:  # whatever a state that does not fit makes of a callback
            raise ValueError(
                f"checkpoint={self.path} does not fit this run: {str(error)[:300]}; {_REMEDY}"
            ) from error

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        self.write(trainer, phase)

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        # An epoch that is over writes when its record is in the history.
        if trainer.step < trainer.n_steps:
            self._write_if_due(trainer, phase)

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._write_if_due(trainer, phase)

    def on_train_end(self, trainer: Trainer) -> None:
        if self._signals.received:  # after the last step
            self._obey(self._signals.received)
        self._signals.release()

    def _write_if_due(self, trainer: Trainer, phase: Phase) -> None:
        # A signal to one process is one to all: they end after the same step.
        asked = self.processes.highest(self._signals.received)
        if asked or time.monotonic() - self._last_write >= EVERY_SECONDS:
            self.write(trainer, phase)
        if asked:
            self._obey(asked)

    def _obey(self, number: int) -> None:
        self._signals.obey(number, f"the state of the training is in {self.path}")

    def write(self, trainer: Trainer, phase: Phase) -> None:
        """Write the present state; the file that was there becomes the one before.

        A network that has diverged is of no use, and the last good one stays.
        """
        if not self.processes.is_first or not is_finite(trainer.network):
            return
        try:
            packed, tensors = pack({"fingerprint": self.run, **_state(trainer, phase)})
        except NotPlainError as error:
            raise ValueError(
                f"checkpoint cannot hold the state of a callback or optimizer ({error}): let "
                "state_dict return numbers, strings, tensors, lists and dicts alone"
            ) from error
        state, keep = {"format": FORMAT, "state": packed}, previous(self.path)
        try:
            safe_file.write(self.path, state, tensors, keep=keep)
        except OSError as error:
            raise OSError(f"checkpoint={self.path} could not be written: {error}") from error
        self._last_write = time.monotonic()


# --- paths ---------------------------------------------------------------------------------------


def previous(path: Path) -> Path:
    """Return where the checkpoint before the newest is kept."""
    return path.with_name(f"{path.name}.previous")


def remove_checkpoint(path: str | os.PathLike[str]) -> None:
    """Remove a checkpoint that is no longer needed, and the one before it."""
    file = Path(path).resolve()  # as `fit` does
    file.unlink(missing_ok=True)
    previous(file).unlink(missing_ok=True)


def has_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Return whether there is a state to resume from."""
    file = Path(path).resolve()
    return file.is_file() or previous(file).is_file()


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
            "other weights and could not resume; set random_state to a number such as 0"
        )
    return path


@contextmanager
def keeping(path: Path | None, run: Callable[[], dict[str, Any]]) -> Iterator[list[Checkpoint]]:
    """Yield a callback that keeps a run in a file, if there is a path, which it owns meanwhile.

    `run` returns the fingerprint. Append the callback: it keeps what the others made of an epoch.
    """
    if path is None:
        yield []
        return
    processes, fingerprint = present(), run()
    with owning(path, f"checkpoint={path}") if processes.is_first else nullcontext():
        yield [Checkpoint(path, fingerprint, processes)]


# --- the state -----------------------------------------------------------------------------------


def _state(trainer: Trainer, phase: Phase) -> dict[str, Any]:
    """Return what the next step depends on."""
    return {
        "phase": phase.name,
        "epoch": trainer.epoch,
        "step": trainer.step,
        "sums": trainer.sums,
        "stop": trainer.stop,
        "network": trainer.network.state_dict(),
        "moments": trainer.optimizer.state_dict()["state"],
        "hyperparameters": _hyperparameters(trainer.optimizer),
        "source": trainer.source.state_dict(),
        "callbacks": {name: part.state_dict() for name, part in _callbacks(trainer).items()},
        "random": torch.random.get_rng_state(),
    }


def _callbacks(trainer: Trainer) -> dict[str, Any]:
    """Return the callbacks that have a state, by class and number."""
    numbers: Counter[str] = Counter()
    found = {}
    for callback in trainer.callbacks:
        if hasattr(callback, "state_dict") and hasattr(callback, "load_state_dict"):
            kind = type(callback).__name__
            numbers[kind] += 1
            found[f"{kind} {numbers[kind]}"] = callback
    return found


def _hyperparameters(optimizer: torch.optim.Optimizer) -> list[str]:
    """Return the settings of each group of parameters, such as its learning rate, as text."""
    groups = optimizer.state_dict()["param_groups"]
    return [f"{name}={v!r}" for group in groups for name, v in group.items() if name != "params"]


def _restore(trainer: Trainer, phase: Phase, state: dict[str, Any]) -> None:
    """Put the trainer where it was; raise a ValueError for a state of another form."""
    fresh = _state(trainer, phase)
    for name in _FIXED:
        check_form(state[name], fresh[name], name)
    epoch, step = state["epoch"], state["step"]
    if not (0 <= step < trainer.n_steps and 0 <= epoch <= phase.n_epochs):
        raise ValueError("it is of a step that this run never takes")
    _check_finite(state["network"], "network")
    callbacks = _callbacks(trainer)
    if callbacks.keys() != state["callbacks"].keys():
        raise ValueError(
            f"it has the state of {', '.join(state['callbacks'])[:200]}, but this run has "
            f"{', '.join(callbacks)}: pass the same callbacks"
        )
    _restore_optimizer(trainer, state, epoch * trainer.n_steps + step)
    trainer.network.load_state_dict(state["network"])
    trainer.source.load_state_dict(state["source"])
    for name, callback in callbacks.items():
        callback.load_state_dict(state["callbacks"][name])
    torch.random.set_rng_state(state["random"])
    trainer.epoch, trainer.step, trainer.stop = epoch, step, state["stop"]
    trainer.sums = state["sums"].to(trainer.device)


def _restore_optimizer(trainer: Trainer, state: dict[str, Any], n_steps: int) -> None:
    """Bring a fresh optimizer and schedule to their step, and give the former its moments."""
    optimizer, moments = trainer.optimizer, state["moments"]
    expected = _expected_moments(optimizer)
    # A parameter that no loss depends on has none.
    check_form(moments, {key: expected[key] for key in moments if key in expected}, "optimizer")
    for key, of_parameter in moments.items():
        _check_finite(of_parameter, f"optimizer {key}")
    with warnings.catch_warnings():  # torch warns of schedules without steps of the optimizer
        warnings.simplefilter("ignore")
        for _ in range(n_steps):
            trainer.schedule.step()
    for found, here in zip(state["hyperparameters"], _hyperparameters(optimizer), strict=True):
        if found != here:
            raise ValueError(f"optimizer {found[:80]} in the file, {here} here")
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": moments, "param_groups": groups})


def _expected_moments(optimizer: torch.optim.Optimizer) -> dict[Any, Any]:
    """Return the moments that a step leaves, of a copy of the optimizer and its parameters."""
    trial = copy.deepcopy(optimizer)
    for group in trial.param_groups:
        for parameter in group["params"]:
            parameter.grad = torch.zeros_like(parameter)
    with torch.random.fork_rng(devices=[]):
        trial.step()
    moments: dict[Any, Any] = trial.state_dict()["state"]
    return moments


def _check_finite(tensors: dict[Any, Any], name: str) -> None:
    for key, tensor in tensors.items():
        if isinstance(tensor, Tensor) and not tensor.isfinite().all():
            raise ValueError(f"{name} {str(key)[:80]} has NaN or infinite entries")


# --- reading -------------------------------------------------------------------------------------


def _newest(path: Path) -> dict[str, Any] | None:
    """Return the newest undamaged state, if there is one.

    A damaged checkpoint is removed for the one before; any other file belongs to someone.
    """
    files = [file for file in (path, previous(path)) if file.is_file()]
    for file in files:
        try:
            state = _read(file)
        except ModelFileError as error:
            with file.open("rb") as opened:
                is_ours = safe_file.is_safe_file(opened.read(64))
            if file == files[-1] or not is_ours:
                raise ValueError(
                    f"checkpoint={file} is damaged or not a checkpoint ({error}): {_REMEDY}"
                ) from error
            continue
        if file != files[0]:
            warn_caller(f"checkpoint={path} is damaged: resuming from the one before")
            path.unlink()  # or it would take the place of the good one at the next write
        return state
    return None


def _sent(state: dict[str, Any] | None, processes: Processes) -> dict[str, Any] | None:
    """Return the state that the first process has read."""
    if processes.size == 1:
        return state
    packed, tensors = pack(state)
    arrays = processes.first_arrays({name: t.numpy() for name, t in tensors.items()})
    received = {name: torch.from_numpy(array) for name, array in arrays.items()}
    sent: dict[str, Any] | None = unpack(processes.first(packed), received)
    return sent


def _read(path: Path) -> dict[str, Any]:
    content = safe_file.read(path)
    if not isinstance(content.state, dict) or content.state.get("format") != FORMAT:
        raise ValueError(f"checkpoint={path} is not of the format {FORMAT!r}: {_REMEDY}")
    try:
        state = unpack(content.state.get("state"), content.tensors)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: {str(error)[:200]}") from error
    if not isinstance(state, dict) or state.keys() != _PARTS:
        raise ModelFileError(f"{path} does not have the parts of a checkpoint")
    if not (isinstance(state["fingerprint"], dict) and isinstance(state["phase"], str)):
        raise ModelFileError(f"{path} has a fingerprint or phase of another type")
    return state
