"""One pass over some rows, which goes on from the pass before: the training of `partial_fit`."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from dkae.training.callbacks import Callback
from dkae.training.settings import Settings


def one_pass(settings: Settings) -> Settings:
    """Return the settings of one epoch over all rows, at a rate that needs to know no end.

    The whole network learns in it if it learns in `fit`, and otherwise the decoder.
    """
    trains_all = settings.max_iter > 0
    return replace(
        settings,
        max_iter=int(trains_all),
        decoder_max_iter=int(not trains_all),
        pretrain_max_iter=0,
        learning_rate="endless",
        steps_per_epoch="samples",
        validation_fraction=0.0,
    )


class Continuation(Callback):
    """Lets optimizer and learning rate continue from the pass before."""

    is_for_all = True

    def __init__(self, state: dict[str, Any] | None) -> None:
        self.state = state or {}

    def on_phase_setup(self, trainer: Any, phase: Any) -> None:
        shapes = [tuple(p.shape) for p in trainer.parameters]
        if self.state.get("shapes") == shapes:
            # A copy: torch keeps the tensors, and the model's must not change if this pass fails.
            trainer.optimizer.load_state_dict(copy.deepcopy(self.state["optimizer"]))
            trainer.schedule.load_state_dict(self.state["schedule"])

    def on_phase_end(self, trainer: Any, phase: Any) -> None:
        self.state = {
            "shapes": [tuple(p.shape) for p in trainer.parameters],
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": trainer.schedule.state_dict(),
        }
