"""The plan of a study in words: the jobs, and about how long they take here."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sized

import numpy as np
import torch
from sklearn.base import clone

from dkae.training import Callback, Phase, Trainer
from dkae_study.engine.cost import step_operations
from dkae_study.engine.plan import Plan
from dkae_study.engine.trainers import threads_for
from dkae_study.engine.trainings import Training

#: Steps that are timed; one before them is not.
N_TIMED_STEPS = 4


def estimate_seconds(plan: Plan, n_jobs: int = 1) -> float:
    """Return about how long a plan takes on this machine, from a few timed steps."""
    full_size = max(scale.n_train for scale in plan.study.scales)
    share = plan.scale.n_train / full_size
    measuring = share * sum(assignment.experiment.seconds for assignment in plan.todo)
    if not plan.networks:
        return measuring
    largest = max(plan.networks, key=lambda training: training.operations)
    n_timed = min(n_jobs, torch.get_num_threads())
    with threads_for(n_timed) as pool:
        seconds = sum(pool.map(_seconds_per_operation, [largest] * n_timed)) / n_timed
    return plan.operations * seconds / min(n_timed, len(plan.networks)) + measuring


def _seconds_per_operation(training: Training) -> float:
    """Time a few steps of a network, on noise."""
    k, clock = training.estimator.batch_size, _Clock()
    model = clone(training.estimator).set_params(
        max_iter=1,
        pretrain_max_iter=0,
        decoder_max_iter=0,
        steps_per_epoch=1 + N_TIMED_STEPS,
        callbacks=[clock],
    )
    X = np.random.default_rng(0).random((k, training.layer_sizes[0]), dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps on noise make no good model
        model.fit(X, gram=np.eye(k, dtype=np.float32))
    seconds = (clock.times[-1] - clock.times[0]) / N_TIMED_STEPS
    return seconds / step_operations(training.layer_sizes, k)


class _Clock(Callback):
    """Notes when each step ends."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_end(self, trainer: Trainer, phase: Phase) -> None:
        next(trainer.network.parameters()).sum().item()  # waits for a GPU
        self.times.append(time.perf_counter())


def describe(plan: Plan, n_jobs: int = 1) -> str:
    """Return the plan as a few lines of text."""
    todo = Counter(a.job.experiment for a in plan.todo)
    done = Counter(a.job.experiment for a in plan.done)
    lines = [f"Scale {plan.scale.name}: {plan.scale.summary}."]
    for name in plan.study.experiment_names:
        if todo[name] + done[name]:
            finished = f", {done[name]} done" if done[name] else ""
            lines.append(f"  {name:<14}{todo[name]:>3} to run{finished}")
    if plan.todo:
        lines.append(
            f"{_count(plan.todo, 'run')} with {_count(plan.networks, 'network')} to train, about "
            f"{_duration(estimate_seconds(plan, n_jobs))} on this machine"
            + _at_once(n_jobs, len(plan.networks))
        )
    else:
        lines.append("Everything is done already.")
    return "\n".join([*lines, f"Results in {plan.folder}"])


def _count(things: Sized, name: str) -> str:
    return f"{len(things)} {name}" + "s" * (len(things) != 1)


def _at_once(n_jobs: int, n_networks: int) -> str:
    text = f", {min(n_jobs, n_networks)} networks at once" if min(n_jobs, n_networks) > 1 else ""
    if 0 < n_networks < n_jobs:
        text += "; --jobs 1 would give each all cores, and other last digits"
    return text


def _duration(seconds: float) -> str:
    for unit, length in {"days": 86_400, "hours": 3_600, "minutes": 60}.items():
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} seconds"
