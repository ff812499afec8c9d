"""The trainer: phases run epochs, an epoch runs steps, a step is Eq. 8 and the optimizer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.devices import choose_device, float32_math, single_threaded_blas
from dkae._support.processes import ALONE, Processes, present
from dkae.alignment import Measure, make_measure
from dkae.networks import evaluating
from dkae.rows import RowArray
from dkae.training.batches import Batch, Prefetching, Source
from dkae.training.callbacks import EVENTS, History, Record
from dkae.training.distributed import average_gradients, gather_codes, synchronize
from dkae.training.loss import Losses, dkae_loss, without_gaps
from dkae.training.optimization import Optimization
from dkae.training.phases import Phase, Settings

#: Names of the fields of `Losses` in a record.
_NAMES = ("loss", "reconstruction_loss", "alignment_loss")


def train(
    network: nn.Module,
    phases: Sequence[Phase],
    source: Source,
    settings: Settings,
    callbacks: Sequence[Any] = (),
) -> History:
    """Train a network in place, and return its history; Ctrl-C keeps the steps so far."""
    history, device, processes = History(), choose_device(settings.device), present()
    measure, listeners = make_measure(settings.alignment), [history, *callbacks]
    is_slow = isinstance(getattr(source, "X", None), RowArray) or device.type != "cpu"
    with (
        Prefetching(source) if is_slow else nullcontext(source) as batches,
        float32_math(),
        single_threaded_blas(device),
    ):
        trainer = Trainer(
            network, measure, batches, listeners, settings.optimization, device, processes
        )
        try:
            trainer.run(phases)
        except KeyboardInterrupt as error:
            # Other processes wait for this one, and a network that has diverged is of no use.
            if processes.size > 1 or not is_finite(network):
                raise
            history.interruption = error
    network.eval()
    network.zero_grad(set_to_none=True)  # gradients take as much memory as the weights
    if not is_finite(network):  # no loss has seen the last step
        raise _diverged("a weight became infinite at the last step")
    return history


@dataclass(eq=False)
class Trainer:
    """Runs phases; callbacks add the rest.

    If an exception or Ctrl-C ends a phase early, the network keeps what it has learned.
    """

    #: The whole network, trained in place.
    network: nn.Module
    #: How far the Gram of the codes is from the prior's.
    measure: Measure
    source: Source
    #: Called in order on every event; see `dkae.training.callbacks.Callback`.
    callbacks: Sequence[Any]
    optimization: Optimization
    #: Where the network runs.
    device: torch.device
    #: Who trains together.
    processes: Processes = ALONE

    def __post_init__(self) -> None:
        self.n_steps = self.source.n_steps
        #: The phases of the run.
        self.phases: Sequence[Phase] = ()
        #: Finished epochs of the present phase, finished steps of the present epoch, and the sums
        #: of their losses.
        self.epoch, self.step, self.sums = 0, 0, torch.zeros(0)
        #: Whether the present phase ends after this epoch; a callback may set it.
        self.stop = False
        #: Whether the present phase is left out; a checkpoint sets it in `on_phase_setup`.
        self.skip = False
        is_first = self.processes.is_first
        told = [c for c in self.callbacks if is_first or getattr(c, "is_for_all", False)]
        self._listeners = {
            event: [getattr(c, event) for c in told if callable(getattr(c, event, None))]
            for event in EVENTS
        }

    def run(self, phases: Sequence[Phase]) -> None:
        """Train the network, one phase after the other."""
        self.network.to(self.device)
        synchronize(self.network, self.processes)
        self.phases = phases
        with self._telling_at_end("on_train_end"):
            self._tell("on_train_begin")
            for phase in phases:
                self.run_phase(phase)
            synchronize(self.network, self.processes)

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
        self.epoch, self.step, self.sums = 0, 0, self._zeros(phase)
        self.stop, self.skip = False, False
        self._tell("on_phase_setup", phase)
        if self.skip:
            return
        with self._telling_at_end("on_phase_end", phase):
            self._tell("on_phase_begin", phase)
            with _only_these_learn(phase.network, self.parameters):
                while self.epoch < phase.n_epochs and not self._is_over():
                    if self.step == 0:  # else it began before a checkpoint
                        self._tell("on_epoch_begin", phase)
                    if not self._is_over():
                        self.run_epoch(phase)

    def run_epoch(self, phase: Phase) -> None:
        """Take the steps of an epoch, and evaluate the held-out rows."""
        self.network.eval()  # layers below a stage stand still, dropout and statistics too
        phase.network.train()
        while self.step < self.n_steps:
            batch = self.source.draw(phase.alignment_weight > 0, phase.input_noise)
            # Losses stay on the device: reading them would make a GPU wait at every step.
            self.sums += self.train_step(phase, batch)
            self.schedule.step()
            self.step += 1
            self._tell("on_step_end", phase)
        record: Record = {"phase": phase.name, "epoch": self.epoch + 1}
        record |= self._named(phase, self.sums / self.n_steps)
        record |= {f"validation_{name}": loss for name, loss in self.evaluate(phase).items()}
        self.epoch, self.step, self.sums = self.epoch + 1, 0, self._zeros(phase)
        self._tell("on_epoch_end", phase, record)

    def _is_over(self) -> bool:
        """Return whether the phase ends; the callbacks of the first process decide."""
        self.stop = self.processes.first(bool(self.stop))
        return self.stop

    def train_step(self, phase: Phase, batch: Batch) -> Tensor:
        """Take one step down the gradient of Eq. 8 on a batch, and return its losses."""
        losses = self.batch_losses(phase, batch, self.processes)
        self.optimizer.zero_grad()
        losses.total.backward()  # type: ignore[no-untyped-call]
        average_gradients(self.parameters, self.processes)
        if self.optimization.max_grad_norm is not None:
            nn.utils.clip_grad_norm_(self.parameters, self.optimization.max_grad_norm)
        self.optimizer.step()
        mean = _stacked(losses).detach()
        self.processes.sum(mean)
        return mean / self.processes.size

    def evaluate(self, phase: Phase) -> dict[str, float]:
        """Return the mean losses over the held-out rows; empty without such rows."""
        phase.network.eval()
        # Each process has some of the blocks.
        sums, n_blocks = self._zeros(phase), torch.zeros(1, device=self.device)
        with torch.no_grad():
            for batch in self.source.held_out(phase.alignment_weight > 0):
                sums += _stacked(self.batch_losses(phase, batch))
                n_blocks += 1
        self.processes.sum(sums, n_blocks)
        return self._named(phase, sums / n_blocks) if n_blocks > 0 else {}

    def _zeros(self, phase: Phase) -> Tensor:
        """Return zeros for the losses of a phase: without a prior there is no L_c."""
        return torch.zeros(3 if phase.alignment_weight > 0 else 2, device=self.device)

    def batch_losses(self, phase: Phase, batch: Batch, processes: Processes = ALONE) -> Losses:
        """Return the losses of one batch, of which each of the processes has a part."""
        inputs, targets = batch.inputs, batch.targets
        network: Any = phase.network
        weight, unit = batch.gap_weight, getattr(network, "unit", None)
        if phase.lift is not None:
            # Computed anew for each batch. Keeping the activations of all n rows would save about
            # 7 % of the time and cost n times the widest layer in memory.
            with torch.no_grad():
                inputs = targets = phase.lift(inputs)
            weight = unit = None
        if phase.is_encoder_fixed:  # as `transform` gives them: no gradient, no dropout
            with evaluating(network), torch.no_grad():
                codes = network.encode(inputs)
        else:
            codes = network.encode(inputs)
        targets, outputs = without_gaps(targets, network.decode(codes), weight, unit)
        prior = batch.prior_gram if phase.alignment_weight > 0 else None
        if prior is not None:
            codes = gather_codes(codes, processes)
        return dkae_loss(
            targets, codes, outputs, prior, phase.alignment_weight, measure=self.measure
        )

    def _named(self, phase: Phase, losses: Tensor) -> dict[str, float]:
        """Return mean losses by name, if they are finite."""
        named = dict(zip(_NAMES, losses.tolist(), strict=False))
        if not math.isfinite(named["loss"]):
            where = f"in epoch {self.epoch + 1} of {phase.name!r}"
            raise _diverged(f"the loss became {named['loss']} {where}")
        return named

    def _tell(self, event: str, *arguments: Any) -> None:
        for listener in self._listeners[event]:
            listener(self, *arguments)

    @contextmanager
    def _telling_at_end(self, event: str, *arguments: Any) -> Iterator[None]:
        """Call all listeners of an event at the end, even if something or one of them fails.

        A progress bar must be stopped. The first error is raised, with notes of those after it.
        """
        first: BaseException | None = None
        try:
            yield
        except BaseException as error:
            first = error
        for listener in self._listeners[event]:
            try:
                listener(self, *arguments)
            except Exception as error:
                if first is None:
                    first = error
                else:
                    first.add_note(f"{event} of a callback failed too: {error!r}")
        if first is not None:
            raise first


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


def _diverged(what: str) -> FloatingPointError:
    return FloatingPointError(
        f"{what}: scale X (for example to [0, 1] or with StandardScaler), lower "
        "learning_rate_init, or set max_grad_norm=1"
    )


def _stacked(losses: Losses) -> Tensor:
    """Return the losses that were computed, in the order of `_NAMES`."""
    return torch.stack([loss for loss in losses if loss is not None])
