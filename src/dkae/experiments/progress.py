"""What a person sees while a study runs: one bar for all of it, and a line for each result."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dkae.experiments.cost import layer_sizes, step_operations
from dkae.experiments.declaration import Job
from dkae.experiments.runner import Plan
from dkae.experiments.study import STUDY
from dkae.experiments.workshop import Layers, Network
from dkae.training.batches import batches_per_epoch
from dkae.training.progress import Record, Silence

__all__ = ["StudyProgress"]

#: The time left comes from the speed of the last ten minutes.
SPEED_PERIOD = 600.0


class StudyProgress(Silence):
    """A bar over the operations of all networks, which are nearly all of the time.

    The bar is drawn on a terminal only; the lines for the results are written anywhere.
    """

    def __init__(self, plan: Plan, console: Console | None = None) -> None:
        self.plan = plan
        self._waiting: dict[Network | Layers, float] = {
            what: plan.operations(what) for what in plan.trainings
        }
        self._n_finished = 0
        self._completed = 0.0
        self._network: Network | None = None
        self._step = 0.0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=Console(stderr=True) if console is None else console,
            speed_estimate_period=SPEED_PERIOD,
        )
        total = sum(self._waiting.values())
        self._task = self._bar.add_task("starting", total=total or None, losses="")

    # --- the study ---------------------------------------------------------------------------

    def training(self, network: Network) -> None:
        """Take note of the network that is trained, or taken from the cache."""
        self._network = network

    def finished(self, job: Job, seconds: float, error: str | None) -> None:
        """Count a job, and its networks, whatever part of them was left to do."""
        self._n_finished += 1
        for network in STUDY[job.experiment].networks(self.plan.scale, job).values():
            for what in (network, Layers(network.recipe, network.seed)):
                self._completed += self._waiting.pop(what, 0.0)
        self._bar.update(self._task, completed=self._completed, losses="")
        n = len(self.plan.todo)
        outcome = "" if error is None else f"  FAILED: {error}"
        self._bar.console.print(
            f"[{self._n_finished}/{n}] {job.name}  {seconds:.0f} s{outcome}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    def start_bar(self) -> None:
        """Begin to draw."""
        self._bar.start()

    def stop_bar(self) -> None:
        """Cease to draw."""
        self._bar.stop()

    # --- the training of one network (dkae.training.progress.Progress) ------------------------

    def start(self, phase: str, n_steps: int) -> None:
        network = self._network
        if network is None:
            return
        scale = self.plan.scale
        estimator = scale.estimator(network.recipe)
        sizes, n_epochs = layer_sizes(scale, network.n_components), estimator.max_iter
        if phase.startswith("layer "):
            i = int(phase.removeprefix("layer "))
            sizes, n_epochs = sizes[i - 1 : i + 1], estimator.pretrain_max_iter
        self._step = step_operations(sizes, scale.batch_size)
        n_all = n_epochs * batches_per_epoch(scale.n_train, scale.batch_size, estimator.epoch)
        self._bar.advance(self._task, (n_all - n_steps) * self._step)  # before an interruption
        name = f"{network.recipe} λ={network.alignment_weight:g} N_c={network.n_components}"
        self._bar.update(self._task, description=f"{name}, seed {network.seed}, {phase}")

    def step(self) -> None:
        self._bar.advance(self._task, self._step)

    def epoch(self, record: Record) -> None:
        losses = f"L_r {record['reconstruction_loss']:.4f}  L_c {record['alignment_loss']:.3f}"
        self._bar.update(self._task, losses=losses)
