"""A study without a progress bar, and runs with invented scores for the judges."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from click.testing import CliRunner
from dkae_study.declaration import Study
from dkae_study.declaration.configuration import scale_config
from dkae_study.engine.plan import make_plan
from dkae_study.engine.run import Failure, run_plan
from dkae_study.engine.trainings import Training
from dkae_study.paper import PAPER
from dkae_study.results import Job, Run

from dkae.cli import main
from dkae.training import Callback

SMOKE = PAPER.scale("smoke")
EXPERIMENTS = {experiment.name: experiment for experiment in PAPER.experiments}


class Quiet(Callback):
    """Remembers which networks and jobs it was told of."""

    def __init__(self) -> None:
        self.trainings: list[Training] = []
        self.errors: dict[str, str | None] = {}
        self.n_steps = 0
        self._lock = threading.Lock()  # several networks may be trained at once

    def training(self, training: Training) -> Self:
        self.trainings.append(training)
        return self

    def finished(self, job: Job, seconds: float, error: str | None) -> None:
        self.errors[job.name] = error

    def on_step_end(self, trainer: Any, phase: Any) -> None:
        with self._lock:
            self.n_steps += 1


def run_study(
    folder: Path,
    names: Sequence[str] = (),
    recipes: Sequence[str] = (),
    n_seeds: int | None = None,
    reporter: Quiet | None = None,
    n_jobs: int = 1,
    study: Study = PAPER,
) -> list[Failure]:
    """Run a study at its smallest scale, which is its first."""
    plan = make_plan(study, study.scales[0], folder, names, recipes, n_seeds)
    return run_plan(plan, Quiet() if reporter is None else reporter, n_jobs)


def changed(name: str, **changes: Any) -> Study:
    """Return the paper's study with one experiment changed."""
    experiments = tuple(
        replace(experiment, **changes) if experiment.name == name else experiment
        for experiment in PAPER.experiments
    )
    return replace(PAPER, experiments=experiments)


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
        config={"scale": scale_config(SMOKE, recipe)},
        config_hash="",
        scores=scores,
        pictures={},
        models={},
        counts={},
        provenance={},
    )


# --- commands ------------------------------------------------------------------------------------


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def succeed(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output or repr(result.exception)
    return result


def fail(*args):
    """Run a command that must end with exit code 1 and one line; return that line."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    line = result.stderr.removesuffix("\n")
    assert line.startswith("Error: ")
    assert "\n" not in line
    assert "this is a bug" not in line
    return line
