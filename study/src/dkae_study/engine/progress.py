"""What a person sees while a study runs: bars for all of it and each network, a line a result."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from dkae.training import Callback, Phase, Record, Trainer, losses_of
from dkae_study.engine.cost import operations_of
from dkae_study.engine.plan import Plan
from dkae_study.engine.trainers import StoppedError
from dkae_study.engine.trainings import Training
from dkae_study.results import Job

#: The time left comes from the speed of the last ten minutes.
SPEED_PERIOD = 600.0


class StudyProgress:
    """A bar over the operations of all networks, which are nearly all of the time.

    Under it one for each network that is being trained. Bars are drawn on a terminal only; the
    lines for the results are written anywhere.
    """

    def __init__(self, plan: Plan, console: Console | None = None) -> None:
        self.plan = plan
        self._n_finished = 0
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=Console(stderr=True) if console is None else console,
            speed_estimate_period=SPEED_PERIOD,
        )
        total = plan.operations
        self._all = self._bars.add_task(
            "all networks", total=total or None, losses="", visible=total > 0
        )

    def training(self, training: Training) -> NetworkProgress:
        """Return what draws the bar of a network."""
        return NetworkProgress(training, self._bars, self._all)

    def finished(self, job: Job, seconds: float, error: str | None) -> None:
        """Count a job."""
        self._n_finished += 1
        n = len(self.plan.todo)
        outcome = "" if error is None else f"  FAILED: {error}"
        self._bars.console.print(
            f"[{self._n_finished}/{n}] {job.name}  {seconds:.0f} s{outcome}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def start_bar(self) -> None:
        """Begin to draw."""
        self._bars.start()

    def stop_bar(self) -> None:
        """Cease to draw."""
        self._bars.stop()


class NetworkProgress(Callback):
    """The bar of one network, which also moves that of all; its unit is an operation."""

    def __init__(self, training: Training, bars: Progress, everything: TaskID) -> None:
        self._name = _name_of(training)
        self._bars = bars
        self._all = everything
        below = {} if training.below is None else training.below.phases
        # Both trainings have all phases of an estimator, most of them in one only.
        self._trainings = [
            {name: phase for name, phase in phases.items() if phase[0] > 0}
            for phases in (below, training.phases)
        ]
        self._left: float | None = None

    def on_train_begin(self, trainer: Trainer) -> None:
        self._own = self._bars.add_task("", total=None, losses="")
        self._left = None

    def on_phase_begin(self, trainer: Trainer, phase: Phase) -> None:
        training = next(phases for phases in self._trainings if phase.name in phases)
        if self._left is None:
            self._left = operations_of(training)
        n_steps, self._step = training[phase.name]
        n_done = trainer.epoch * trainer.n_steps
        description = f"{self._name}, {phase.name}"
        self._bars.reset(self._own, total=n_steps * self._step, description=description)
        self._bars.advance(self._own, n_done * self._step)
        # Steps before an interruption count as done, also whole phases.
        later = dict(list(training.items())[list(training).index(phase.name) + 1 :])
        self._go_on_to((n_steps - n_done) * self._step + operations_of(later))

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        self._bars.advance(self._own, self._step)
        self._go_on_to((self._left or 0.0) - self._step)

    def on_epoch_end(self, trainer: Trainer, phase: Phase, record: Record) -> None:
        self._bars.update(self._own, losses=losses_of(record))

    def on_train_end(self, trainer: Trainer) -> None:
        if not isinstance(sys.exception(), KeyboardInterrupt | StoppedError):
            self._go_on_to(0.0)  # also if it failed: no more will come
        self._bars.remove_task(self._own)

    def _go_on_to(self, left: float) -> None:
        """Move the bar of all until only this is left of this training."""
        if self._left is not None:
            self._bars.advance(self._all, self._left - left)
            self._left = left


def _name_of(training: Training) -> str:
    spec = training.spec
    if spec is None:
        return "layers below the code"
    return f"{spec.recipe} λ={spec.alignment_weight:g} N_c={spec.n_components}, seed {spec.seed}"
