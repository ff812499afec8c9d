"""A study without a progress bar, and runs with invented scores for the judges."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from dkae_study.declaration import Job
from dkae_study.results import Run
from dkae_study.runner import Failure, make_plan, run_plan
from dkae_study.scales import SCALES
from dkae_study.study import STUDY
from dkae_study.workshop import Network

from dkae.training.progress import Silence

BOTH = ("paper", "default")


class Quiet(Silence):
    """Remembers which networks and jobs it was told of."""

    def __init__(self) -> None:
        self.networks: list[Network] = []
        self.errors: dict[str, str | None] = {}
        self.n_steps = 0
        self._lock = threading.Lock()  # several networks may be trained at once

    def training(self, network: Network) -> Self:
        self.networks.append(network)
        return self

    def finished(self, job: Job, seconds: float, error: str | None) -> None:
        self.errors[job.name] = error

    def step(self) -> None:
        with self._lock:
            self.n_steps += 1


def run_study(
    folder: Path,
    names: Sequence[str] = tuple(STUDY),
    recipes: Sequence[str] = BOTH,
    n_seeds: int | None = None,
    reporter: Quiet | None = None,
    n_jobs: int = 1,
) -> list[Failure]:
    plan = make_plan(names, SCALES["smoke"], recipes, n_seeds, folder)
    return run_plan(plan, Quiet() if reporter is None else reporter, n_jobs)


def invented(
    experiment: str,
    scores: dict[str, Any],
    seed: int = 0,
    point: Any = None,
    recipe: str = "paper",
) -> Run:
    """Return a run with the given scores and nothing else."""
    return Run(
        experiment=experiment,
        scale="smoke",
        recipe=recipe,
        seed=seed,
        point=point,
        config={"scale": SCALES["smoke"].config},
        config_hash="",
        scores=scores,
        pictures={},
        models={},
        counts={},
        provenance={},
    )
