"""The training loop: ``train`` runs epochs, an epoch runs steps, a step is Eq. 8 and Adam."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from dkae._runtime.devices import autocast
from dkae.networks.stacked import Autoencoder
from dkae.training.batches import Batch
from dkae.training.checkpoint import NoCheckpoint, Stateful
from dkae.training.loss import Losses, dkae_loss
from dkae.training.progress import Progress, Record
from dkae.training.settings import LEARNING_RATES, Optimizer, Schedule, Settings

__all__ = ["Draw", "check_finite", "evaluate", "train"]

#: Returns the next batch, with its block of the prior if told so.
Draw = Callable[[bool], Batch]

#: Names of the fields of `Losses` in a record.
_NAMES = ("loss", "reconstruction_loss", "alignment_loss")


def train(
    network: Autoencoder,
    draw: Draw,
    settings: Settings,
    *,
    phase: str,
    n_epochs: int,
    n_steps: int,
    validation: Callable[[], Iterable[Batch]] | None,
    history: list[Record],
    progress: Progress,
    checkpoint: NoCheckpoint,
    keep_start: bool = False,
) -> None:
    """Train the network in place, and append one record for each finished epoch to `history`.

    Whatever ends the training early, an exception or Ctrl-C, the network keeps what it has learnt
    and the history what was finished.

    Parameters
    ----------
    draw : callable
        Returns the next batch; its argument says whether with a block of the prior, which may cost
        more than the step, and which a phase with λ = 0 does without.
    phase : str
        Name under which the epochs stand in the history.
    n_epochs, n_steps : int
        Number of epochs, and of steps in an epoch.
    validation : callable, optional
        Returns the batches of the validation part; needed for early stopping.
    checkpoint : NoCheckpoint
        Knows where to go on, and is told of finished epochs.
    keep_start : bool
        Whether early stopping may keep the weights that the phase begins with.
    """
    optimizer = torch.optim.Adam(network.parameters(), settings.learning_rate_init, fused=True)
    schedule = LEARNING_RATES[settings.learning_rate](
        optimizer, settings.learning_rate_init, n_epochs * n_steps
    )
    best = _BestWeights(network, settings)
    parts: dict[str, Stateful] = {"optimizer": optimizer, "schedule": schedule, "best": best}
    first = checkpoint.resume(phase, parts)
    if first is None:
        return
    if keep_start and settings.early_stopping and validation is not None and first == 1:
        best.note(evaluate(network, validation(), settings)["loss"])
    progress.start(phase, (n_epochs + 1 - first) * n_steps)
    try:
        for epoch in range(first, n_epochs + 1):
            if best.is_stale:
                break
            losses = run_epoch(network, draw, settings, optimizer, schedule, n_steps, progress)
            record: Record = {"phase": phase, "epoch": epoch, **losses}
            if validation is not None:
                scores = evaluate(network, validation(), settings)
                record |= {f"validation_{name}": score for name, score in scores.items()}
            history.append(record)
            progress.epoch(record)
            if settings.early_stopping:
                best.note(float(record["validation_loss"]))
            checkpoint.save(phase, epoch, parts)
    finally:
        best.restore()


def run_epoch(
    network: Autoencoder,
    draw: Draw,
    settings: Settings,
    optimizer: Optimizer,
    schedule: Schedule,
    n_steps: int,
    progress: Progress,
) -> dict[str, float]:
    """Take `n_steps` steps and return the mean losses; a loss that is not finite is an error."""
    network.train()
    sums: Any = 0
    for _ in range(n_steps):
        batch = draw(settings.alignment_weight > 0)
        # The sum stays on the device: reading it would make a GPU wait at every step.
        sums = sums + train_step(network, batch, settings, optimizer)
        schedule.step()
        progress.step()
    return _named(sums / n_steps)


def train_step(
    network: Autoencoder, batch: Batch, settings: Settings, optimizer: Optimizer
) -> Tensor:
    """Take one step of Adam down the gradient of Eq. 8 on a batch, and return its losses."""
    losses = batch_losses(network, batch, settings)
    optimizer.zero_grad()
    losses.total.backward()  # type: ignore[no-untyped-call]
    if settings.max_grad_norm is not None:
        torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
    optimizer.step()
    return _stacked(losses).detach()


def evaluate(
    network: Autoencoder, batches: Iterable[Batch], settings: Settings
) -> dict[str, float]:
    """Return the mean losses over the batches, without learning from them."""
    network.eval()
    with torch.no_grad():
        losses = [_stacked(batch_losses(network, batch, settings)) for batch in batches]
    return _named(torch.stack(losses).mean(dim=0))


def batch_losses(network: Autoencoder, batch: Batch, settings: Settings) -> Losses:
    """Return the losses of one batch: the network in `precision`, the losses in float32."""
    with autocast(batch.inputs.device, settings.precision):
        codes, reconstructions = network(batch.inputs)
    return dkae_loss(
        batch.targets, codes, reconstructions, batch.prior_gram, settings.alignment_weight
    )


class _BestWeights:
    """Remembers the weights with the best validation loss, for early stopping."""

    _STATE = ("loss", "weights", "epochs_without_gain")

    def __init__(self, network: Autoencoder, settings: Settings) -> None:
        self.network = network
        self.settings = settings
        self.loss = math.inf
        self.weights: dict[str, Tensor] | None = None
        self.epochs_without_gain = 0

    def note(self, loss: float) -> None:
        """Take note of an epoch's validation loss."""
        gained = loss < self.loss - self.settings.tol
        self.epochs_without_gain = 0 if gained else self.epochs_without_gain + 1
        if loss < self.loss:
            self.loss = loss
            self.weights = copy.deepcopy(self.network.state_dict())

    @property
    def is_stale(self) -> bool:
        """Whether it is time to stop."""
        return self.epochs_without_gain >= self.settings.n_iter_no_change

    def restore(self) -> None:
        if self.weights is not None:
            self.network.load_state_dict(self.weights)

    def state_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name in self._STATE:
            setattr(self, name, state[name])


def check_finite(network: Autoencoder) -> None:
    """Raise an error if a weight is not finite; the last step may have gone astray unseen."""
    if not all(parameter.isfinite().all() for parameter in network.parameters()):
        raise _diverged("a weight became infinite")


def _diverged(what: str) -> FloatingPointError:
    return FloatingPointError(
        f"{what} in training: scale X (for example to [0, 1] or with StandardScaler), lower "
        "learning_rate_init, or set max_grad_norm=1"
    )


def _stacked(losses: Losses) -> Tensor:
    """Return the losses that were computed, in the order of `_NAMES`."""
    return torch.stack([loss for loss in losses if loss is not None])


def _named(losses: Tensor) -> dict[str, float]:
    named = dict(zip(_NAMES, losses.tolist(), strict=False))  # without a prior there is no L_c
    if not math.isfinite(named["loss"]):
        raise _diverged(f"the loss became {named['loss']}")
    return named
