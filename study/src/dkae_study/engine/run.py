"""Runs the jobs of a plan: finished ones are kept, and a failure does not stop the rest.

A job trains the networks that it needs, or takes them from the cache, measures, and writes one
result file. Everything is kept as soon as it is made: after Ctrl-C or a killed process the next
call goes on from the last checkpoint of the network that was being trained, to the same numbers.
"""

from __future__ import annotations

import time
import traceback
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from dkae.files import owning
from dkae.training import batches_per_epoch
from dkae_study.engine import provenance
from dkae_study.engine.plan import Assignment, Plan
from dkae_study.engine.trainers import Observer, Train, trainer
from dkae_study.engine.workshop import Workshop
from dkae_study.results import Job, Run, write_run


class Reporter(Observer, Protocol):
    """Follows a study."""

    def finished(self, job: Job, seconds: float, error: str | None) -> None: ...


@dataclass(frozen=True)
class Failure:
    """A job that did not come to its end."""

    job: Job
    error: str
    trace: str


def run_plan(plan: Plan, reporter: Reporter, n_jobs: int = 1) -> list[Failure]:
    """Run the jobs of a plan, `n_jobs` networks at once, and return the failures."""
    provenance.commit()
    plan.workshop.cache.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        # Every result has its losses, and the next call resumes an interrupted one.
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        # The limit holds for all of the process: without it, scores that are measured while a
        # network is trained would differ in their last digits.
        with (
            owning(plan.folder / "results", f"the folder {plan.folder}"),
            threadpool_limits(1, user_api="blas"),
            trainer(plan.workshop, plan.networks, reporter, n_jobs) as train,
        ):
            found = [_try(plan, assignment, reporter, train, n_jobs) for assignment in plan.todo]
    return [failure for failure in found if failure is not None]


def _try(
    plan: Plan, assignment: Assignment, reporter: Reporter, train: Train, n_jobs: int
) -> Failure | None:
    """Run one job and write its result, or return the failure."""
    job, start, error, failure = assignment.job, time.perf_counter(), None, None
    try:
        write_run(_run(plan.workshop, assignment, train, n_jobs), assignment.path)
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"
        failure = Failure(job, error, traceback.format_exc())
    reporter.finished(job, time.perf_counter() - start, error)
    return failure


def _run(workshop: Workshop, assignment: Assignment, train: Train, n_jobs: int) -> Run:
    job, trainings = assignment.job, assignment.trainings
    started, start = datetime.now(UTC), time.perf_counter()
    with provenance.peak_memory() as memory:
        models = {name: train(training) for name, training in trainings.items()}
        outcome = assignment.experiment.measure(workshop, job, models)
    return Run(
        experiment=job.experiment,
        scale=workshop.scale.name,
        recipe=job.recipe,
        seed=job.seed,
        point=job.point,
        config=assignment.config,
        config_hash=assignment.hash,
        scores=outcome.scores,
        pictures=outcome.pictures,
        models={name: workshop.describe(trainings[name], models[name]) for name in trainings},
        counts=_counts(workshop, assignment),
        provenance={
            "versions": provenance.versions(),
            "commit": provenance.commit(),
            "machine": provenance.machine(),
            "networks at once": n_jobs,
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - start, 3),
            **memory,
        },
    )


def _counts(workshop: Workshop, assignment: Assignment) -> dict[str, Any]:
    """Return the numbers that the paper states, as they are in this run."""
    n_rows, k = workshop.scale.n_train, workshop.scale.batch_size
    # All networks of a job have the schedule of its recipe.
    estimator = next(iter(assignment.trainings.values())).estimator
    n_batches = batches_per_epoch(n_rows, k, estimator.steps_per_epoch)
    return {
        "rows": {name: len(part.X) for name, part in workshop.parts.items()},
        **workshop.study.kernel_counts(workshop.kernel(assignment.job.seed)),
        "layers": {name: t.layer_sizes for name, t in assignment.trainings.items()},
        "batch size": k,
        "batches that see each pair once": batches_per_epoch(n_rows, k, "pairs"),
        "batches an epoch": n_batches,
        "steps of pretraining a layer": n_batches * estimator.pretrain_max_iter,
        "steps of fine-tuning": n_batches * estimator.max_iter,
        "steps of the decoder alone": n_batches * estimator.decoder_max_iter,
    }
