"""The trainer: phases run epochs, an epoch runs steps, a step is Eq. 8 and the optimizer."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dkae.training.batches import Batch, Source
from dkae.training.callbacks import EVENTS, Record
from dkae.training.engine import Engine
from dkae.training.loss import Losses
from dkae.training.optimization import Optimization
from dkae.training.phases import Phase

#: Names of the fields of `Losses` in a record.
_NAMES = ("loss", "reconstruction_loss", "alignment_loss")


@dataclass(eq=False)
class Trainer:
    """Runs phases; callbacks add the rest.

    If an exception or Ctrl-C ends a phase early, the network keeps what it has learned.
    """

    #: The whole network, trained in place.
    network: nn.Module
    #: Eq. 8: ``(targets, codes, reconstructions, prior_gram, alignment_weight) -> Losses``.
    loss: Callable[..., Losses]
    source: Source
    #: Called in order on every event; see `dkae.training.callbacks.Callback`.
    callbacks: Sequence[Any]
    engine: Engine
    optimization: Optimization

    def __post_init__(self) -> None:
        self.n_steps = self.source.n_steps
        #: The phases of the run.
        self.phases: Sequence[Phase] = ()
        #: Finished epochs of the present phase, finished steps of the present epoch, and the sum of
        #: their losses.
        self.epoch, self.step, self.sums = 0, 0, cast(Any, 0)
        #: Whether the present phase ends after this epoch; a callback may set it.
        self.stop = False
        #: Whether the present phase is left out; a checkpoint sets it in `on_phase_setup`.
        self.skip = False
        told = [c for c in self.callbacks if self.engine.processes.is_first or _is_for_all(c)]
        self._listeners = {
            event: [getattr(c, event) for c in told if callable(getattr(c, event, None))]
            for event in EVENTS
        }

    def run(self, phases: Sequence[Phase]) -> None:
        """Train the network, one phase after the other."""
        self.engine.synchronize(self.network)
        self.phases = phases
        try:
            self._tell("on_train_begin")
            for phase in phases:
                self.run_phase(phase)
            self.engine.synchronize(self.network)
        except BaseException as error:
            self._tell_all("on_train_end", after=error)
            raise
        self._tell_all("on_train_end")

    def run_phase(self, phase: Phase) -> None:
        """Run the epochs of a phase, or those that are left of it."""
        self.network.zero_grad()  # gradients of the phase before take as much memory as weights
        self.parameters = list(phase.parameters())
        if not any(p.requires_grad for p in self.parameters):
            raise ValueError(
                f"network={type(self.network).__name__} has no parameter that could learn in the "
                f"phase {phase.name!r}: leave requires_grad as it is, or leave that phase out"
            )
        self.optimizer, self.schedule = self.optimization.start(
            self.parameters, phase.learning_rate_factor, phase.n_epochs * self.n_steps
        )
        self.epoch, self.step, self.sums = 0, 0, 0
        self.stop, self.skip = False, False
        self._tell("on_phase_setup", phase)
        if self.skip:
            return
        try:
            self._tell("on_phase_begin", phase)
            with _only_these_learn(phase.network, self.parameters):
                while self.epoch < phase.n_epochs and not self._is_over():
                    if self.step == 0:  # else it began before a checkpoint
                        self._tell("on_epoch_begin", phase)
                    if not self._is_over():
                        self.run_epoch(phase)
        except BaseException as error:
            self._tell_all("on_phase_end", phase, after=error)
            raise
        self._tell_all("on_phase_end", phase)

    def run_epoch(self, phase: Phase) -> None:
        """Take the steps of an epoch, and evaluate the held-out rows."""
        self.network.eval()  # layers below a stage stand still, dropout and statistics too
        phase.network.train()
        totals = []
        while self.step < self.n_steps:
            batch = self.source.draw(phase.alignment_weight > 0, phase.input_noise)
            # Losses stay on the device: reading them would make a GPU wait at every step.
            losses = self.train_step(phase, batch)
            self.sums = self.sums + losses
            totals.append(losses[0])
            self.schedule.step()
            self.step += 1
            self._tell("on_step_end", phase)
        record: Record = {"phase": phase.name, "epoch": self.epoch + 1}
        record |= self._named(phase, self.sums / self.n_steps, totals)
        scores = self.evaluate(phase)
        record |= {f"validation_{name}": score for name, score in scores.items()}
        self.epoch, self.step, self.sums = self.epoch + 1, 0, 0
        self._tell("on_epoch_end", phase, record)

    def _is_over(self) -> bool:
        """Return whether the phase ends; the callbacks of the first process decide."""
        self.stop = self.engine.processes.first(self.stop)
        return self.stop

    def train_step(self, phase: Phase, batch: Batch) -> Tensor:
        """Take one step down the gradient of Eq. 8 on a batch, and return its losses."""
        losses = self.batch_losses(phase, batch)
        self.engine.update(losses.total, self.parameters, self.optimizer)
        return self.engine.mean(_stacked(losses).detach())

    def evaluate(self, phase: Phase) -> dict[str, float]:
        """Return the mean losses over the held-out rows; empty without such rows."""
        phase.network.eval()
        is_aligned = phase.alignment_weight > 0
        with torch.no_grad():
            held_out = self.source.held_out(is_aligned)
            losses = [_stacked(self.batch_losses(phase, batch)) for batch in held_out]
            # Always three, because a process without held-out rows has to know how many.
            mean = self.engine.mean_of([F.pad(loss, (0, 3 - len(loss))) for loss in losses])
        return {} if mean is None else self._named(phase, mean[: 3 if is_aligned else 2])

    def _named(
        self, phase: Phase, losses: Tensor, steps: Sequence[Tensor] = ()
    ) -> dict[str, float]:
        """Return mean losses by name; an error names the first of the steps that went wrong."""
        named = dict(zip(_NAMES, losses.tolist(), strict=False))  # without a prior there is no L_c
        if math.isfinite(named["loss"]):
            return named
        where = f"epoch {self.epoch + 1} of {phase.name!r}"
        first = self.n_steps - len(steps) + 1  # an epoch may have begun before a checkpoint
        bad = [i for i, loss in enumerate(steps, first) if not loss.isfinite()]
        raise _diverged(
            f"the loss became {named['loss']} at {f'step {bad[0]} of ' if bad else ''}{where}"
        )

    def batch_losses(self, phase: Phase, batch: Batch) -> Losses:
        """Return the losses of one batch."""
        if phase.lift is not None:
            batch = _lifted(batch, phase.lift)
        codes, reconstructions = self.engine.forward(
            phase.network, batch.inputs, phase.is_encoder_fixed
        )
        targets, reconstructions = _measured(batch, reconstructions, phase.unit)
        if batch.prior_gram is not None:
            codes = self.engine.gather(codes)
        return self.loss(targets, codes, reconstructions, batch.prior_gram, phase.alignment_weight)

    def _tell(self, event: str, *arguments: Any) -> None:
        for listener in self._listeners[event]:
            listener(self, *arguments)

    def _tell_all(self, event: str, *arguments: Any, after: BaseException | None = None) -> None:
        """Call all listeners even if one fails: a progress bar must be stopped.

        The failure is raised at the end, but never in place of an earlier error.
        """
        failed = None
        for listener in self._listeners[event]:
            try:
                listener(self, *arguments)
            except Exception as error:
                failed = failed or error
        if failed is not None and after is not None:
            after.add_note(f"{event} of a callback failed too: {failed!r}")
        elif failed is not None:
            raise failed


# The activations of the frozen layers are recomputed for each batch. Keeping those of all n rows
# would save about 7 % of the time and cost n times the widest layer in memory.
def _lifted(batch: Batch, lift: Any) -> Batch:
    with torch.no_grad():
        activations = lift(batch.inputs)
    return batch._replace(inputs=activations, targets=activations, known_share=None)


def _measured(batch: Batch, outputs: Tensor, unit: Any) -> tuple[Tensor, Tensor]:
    """Return rows and reconstructions in the unit of L_r; missing entries do not differ."""
    targets = batch.targets
    if unit is not None:
        unit = unit.to(targets.device) if isinstance(unit, Tensor) else unit
        targets, outputs = targets / unit, outputs / unit
    missing = targets.isnan()
    if batch.known_share is None and not missing.any():
        return targets, outputs
    # The mean is over the known entries, not over all.
    if batch.known_share is None:
        factor = (targets.numel() / (~missing).sum().clamp(min=1)).sqrt()
    else:
        factor = batch.known_share.rsqrt()
    return factor * torch.where(missing, outputs, targets), factor * outputs


def _is_for_all(callback: Any) -> bool:
    """Return whether a callback is called in every process; others only in the first."""
    return bool(getattr(callback, "is_for_all", False))


@contextmanager
def _only_these_learn(network: nn.Module, parameters: Sequence[nn.Parameter]) -> Iterator[None]:
    """Keep all other parameters of the network from learning meanwhile."""
    chosen = {id(p) for p in parameters}
    others = [p for p in network.parameters() if id(p) not in chosen and p.requires_grad]
    try:
        for parameter in others:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in others:
            parameter.requires_grad_(True)


def is_finite(network: nn.Module) -> bool:
    """Return whether all weights are finite."""
    return all(bool(parameter.isfinite().all()) for parameter in network.parameters())


def check_finite(network: nn.Module) -> None:
    """Raise an error if a weight is not finite: no loss has seen the last step."""
    if not is_finite(network):
        raise _diverged("a weight became infinite at the last step")


def _diverged(what: str) -> FloatingPointError:
    return FloatingPointError(
        f"{what} in training: scale X (for example to [0, 1] or with StandardScaler), lower "
        "learning_rate_init, or set max_grad_norm=1"
    )


def _stacked(losses: Losses) -> Tensor:
    """Return the losses that were computed, in the order of `_NAMES`."""
    return torch.stack([loss for loss in losses if loss is not None])
