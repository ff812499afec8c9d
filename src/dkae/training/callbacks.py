"""Callbacks: history, early stopping, what a pass hands to the next, and those of the user.

A callback is any object with at least one of the methods of :class:`Callback`. Callbacks are called
in the order of the list, and may look at the trainer and set ``trainer.stop``. One with
``state_dict`` and ``load_state_dict`` has its state kept in checkpoints.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING, Any

from torch import Tensor

from dkae._support.json_state import check_form

if TYPE_CHECKING:
    from dkae.training.phases import Phase
    from dkae.training.trainer import Trainer

#: What stands in ``history_`` for an epoch: phase, number, losses.
Record = dict[str, str | int | float]


class Callback:
    """Does nothing; override what you need.

    An exception ends the fit, and the model stays as it was before. `GridSearchCV` trains with
    copies of callbacks: look for what they note at ``best_estimator_.callbacks``.
    """

    #: Whether each of several processes calls it; otherwise only the first does.
    is_for_all: bool = False

    def on_train_begin(self, trainer: Trainer) -> None:
        """Prepare: all phases are still to come."""

    def on_phase_setup(self, trainer: Trainer, phase: Phase) -> None:
        """Restore a state: the optimizer is there, and no step was taken.

        If `trainer.skip` is set here, the phase is left out.
        """

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        """Prepare for a phase; if training resumes, `trainer.epoch` epochs of it are done."""

    def on_epoch_begin(self, trainer: Trainer, phase: Phase) -> None:
        """Prepare for an epoch; if `trainer.stop` is set here, it is left out.

        It is not called again where training resumes in the midst of an epoch: a callback that
        counts within one keeps its count with `state_dict`, or begins it in `on_phase_begin` too.
        """

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        """Take note of a step; this is called often."""

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        """Take note of the mean losses, without ``alignment_loss`` where nothing learns it."""

    def on_phase_end(self, trainer: Trainer, phase: Phase) -> None:
        """Finish a phase, also after an exception."""

    def on_train_end(self, trainer: Trainer) -> None:
        """Finish, also after an exception."""


#: The methods that a trainer calls.
EVENTS = tuple(name for name in vars(Callback) if name.startswith("on_"))


def check_callbacks(callbacks: Any) -> list[Any]:
    """Return the callbacks as a list; each must have a method that training calls."""
    if callbacks is None:
        return []
    if not isinstance(callbacks, (list, tuple)):
        raise ValueError(
            f"callbacks={callbacks!r} is not a list: pass a list of callbacks, such as "
            "callbacks=[MyCallback()]"
        )
    for i, callback in enumerate(callbacks):
        if isinstance(callback, type):
            raise ValueError(
                f"callbacks[{i}] is the class {callback.__name__}: pass an object of it, "
                f"{callback.__name__}()"
            )
        if not any(callable(getattr(callback, event, None)) for event in EVENTS):
            raise ValueError(
                f"callbacks[{i}] is a {type(callback).__name__} with no method that training "
                f"calls: give it one of {', '.join(EVENTS)}"
            )
    return list(callbacks)


class History(Callback):
    """Keeps the record of each finished epoch, and what ended the training early."""

    is_for_all = True

    def __init__(self) -> None:
        self.records: list[Record] = []
        #: Ctrl-C, if it ended the training.
        self.interruption: KeyboardInterrupt | None = None

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self.records.append(record)

    def state_dict(self) -> dict[str, Any]:
        return {"records": self.records}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if not all({"phase", "epoch", "loss"} <= record.keys() for record in state["records"]):
            raise ValueError("records are not those of epochs")
        self.records[:] = state["records"]


class EarlyStopping(Callback):
    """Ends a phase when the validation loss no longer falls, and keeps the best weights.

    Parameters
    ----------
    patience : int, default=10
        Epochs without a gain that end the phase.
    tol : float, default=1e-4
        Smallest gain that counts.
    """

    is_for_all = True

    def __init__(self, patience: int = 10, tol: float = 1e-4) -> None:
        self.patience = patience
        self.tol = tol

    def on_phase_setup(self, trainer: Trainer, phase: Phase) -> None:
        self._fresh = phase.network.state_dict()
        self.loss, self.epochs_without_gain = math.inf, 0
        self.weights: dict[str, Tensor] | None = None

    def on_epoch_begin(self, trainer: Trainer, phase: Phase) -> None:
        if phase.is_encoder_fixed and trainer.epoch == 0:  # it has learnt already
            self._note(trainer.evaluate(phase).get("loss"), trainer, phase)

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._note(record.get("validation_loss"), trainer, phase)

    def on_phase_end(self, trainer: Trainer, phase: Phase) -> None:
        if self.weights is not None:
            phase.network.load_state_dict(self.weights)

    def _note(self, loss: Any, trainer: Trainer, phase: Phase) -> None:
        if loss is None:
            raise ValueError(
                "EarlyStopping needs rows to watch, but none are held out: set "
                "validation_fraction to a number such as 0.1"
            )
        gained = loss < self.loss - self.tol
        self.epochs_without_gain = 0 if gained else self.epochs_without_gain + 1
        trainer.stop |= self.epochs_without_gain >= self.patience
        if loss < self.loss:
            self.loss = loss
            self.weights = copy.deepcopy(phase.network.state_dict())

    def state_dict(self) -> dict[str, Any]:
        names = ("loss", "weights", "epochs_without_gain")
        return {name: getattr(self, name) for name in names}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        weights = None if state["weights"] is None else self._fresh
        check_form(state, self.state_dict() | {"weights": weights}, "EarlyStopping")
        vars(self).update(state)


class Continuation(Callback):
    """Lets optimizer and learning rate continue from the pass before."""

    is_for_all = True

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.state = state or {}

    def on_phase_setup(self, trainer: Trainer, phase: Phase) -> None:
        if self.state.get("shapes") == [p.shape for p in trainer.parameters]:
            # A copy: torch keeps the tensors, and the model's must not change if this pass fails.
            trainer.optimizer.load_state_dict(copy.deepcopy(self.state["optimizer"]))
            trainer.schedule.load_state_dict(self.state["schedule"])

    def on_phase_end(self, trainer: Trainer, phase: Phase) -> None:
        self.state = {
            "shapes": [p.shape for p in trainer.parameters],
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": trainer.schedule.state_dict(),
        }


def losses_of(record: Record) -> str:
    """Return the losses of an epoch in a few words; L_c only where it was trained."""
    losses = f"L_r {record['reconstruction_loss']:.4f}"
    return losses + (f"  L_c {record['alignment_loss']:.3f}" if "alignment_loss" in record else "")
