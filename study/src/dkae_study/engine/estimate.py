"""The plan of a study in words: what is to be done, and about how long it takes here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sized

import torch

from dkae_study.engine.cost import seconds_per_operation
from dkae_study.engine.plan import Plan

__all__ = ["describe", "estimate_seconds"]


def estimate_seconds(plan: Plan, n_jobs: int = 1) -> float:
    """Return about how long a plan takes on this machine, from a few timed steps."""
    full_size = max(scale.n_train for scale in plan.study.scales)
    share = plan.scale.n_train / full_size
    measuring = share * sum(assignment.experiment.seconds for assignment in plan.todo)
    if not plan.networks:
        return measuring
    at_once = min(n_jobs, len(plan.networks), torch.get_num_threads())
    largest = max(plan.networks, key=lambda training: training.operations).estimator
    speed = seconds_per_operation(largest, plan.study.data.n_features, n_jobs)
    return plan.operations * speed / at_once + measuring


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
