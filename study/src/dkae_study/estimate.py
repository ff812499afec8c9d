"""The plan of a study in words: what is to be done, and about how long it takes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized

import torch

from dkae_study.cost import seconds_per_operation
from dkae_study.runner import Plan
from dkae_study.study import STUDY

__all__ = ["describe", "estimate_seconds"]

#: Seconds of a job besides its networks, for 14,000 training rows on two cores.
MEASURING_SECONDS = {
    "lambda": 8,
    "code-size": 8,
    "tradeoff": 12,
    "ideal-kernel": 12,
    "kernel-pca": 15,
    "denoising": 40,
    "code-space": 90,
}
FULL_SIZE = 14_000


def estimate_seconds(plan: Plan, n_jobs: int = 1) -> float:
    """Return about how long a plan takes on this machine, from a few timed steps."""
    operations = sum(plan.operations(what) for what in plan.trainings)
    measuring = sum(MEASURING_SECONDS[job.experiment] for job in plan.todo)
    share = plan.scale.n_train / FULL_SIZE
    if not plan.networks:
        return measuring * share
    at_once = min(n_jobs, len(plan.networks), torch.get_num_threads())
    training = operations * seconds_per_operation(plan.scale, n_jobs) / at_once
    return training + measuring * share


def describe(plan: Plan, n_jobs: int = 1) -> str:
    """Return the plan as a few lines of text."""
    todo = Counter(job.experiment for job in plan.todo)
    done = Counter(job.experiment for job in plan.done)
    lines = [f"Scale {plan.scale.name}: {plan.scale.summary}."]
    for name in STUDY:
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
