"""Runs the jobs of a study: what is done stays done, what fails does not stop the rest.

A job trains the networks that it needs, or takes them from the cache, measures, and writes one
result file. Everything is kept as soon as it is made: after Ctrl-C or a killed process the next
call goes on from the last checkpoint of the network that was being trained, to the same numbers.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import torch

from dkae._runtime.devices import single_threaded_blas
from dkae.training.batches import batches_per_epoch
from dkae_study import provenance
from dkae_study.cost import layer_sizes, operations_of, training_phases
from dkae_study.declaration import Experiment, Job
from dkae_study.results import ResultFileError, Run, read_run, write_run
from dkae_study.scales import Scale
from dkae_study.study import STUDY
from dkae_study.trainers import Observer, Trainer, trainer
from dkae_study.workshop import VERSION, Layers, Network, Workshop, digest

__all__ = ["Failure", "Plan", "Reporter", "make_plan", "run_plan"]

#: Folder for networks and posteriors, within that of the results.
CACHE = "cache"


class Reporter(Observer, Protocol):
    """Is told how a study goes on."""

    def finished(self, job: Job, seconds: float, error: str | None) -> None: ...


@dataclass(frozen=True)
class Failure:
    """A job that did not come to its end."""

    job: Job
    error: str
    trace: str


@dataclass(frozen=True)
class Plan:
    """What is to be done, and what is done already."""

    scale: Scale
    folder: Path
    workshop: Workshop
    todo: tuple[Job, ...]
    done: tuple[Job, ...]
    #: Networks that must be trained, in their order.
    networks: tuple[Network, ...]
    #: Layers below their codes that must be pretrained.
    layers: tuple[Layers, ...]

    @property
    def trainings(self) -> list[Network | Layers]:
        """All that must be trained."""
        return [*self.layers, *self.networks]

    def operations(self, what: Network | Layers) -> float:
        """Return what a training costs, in floating-point operations."""
        n_components = what.n_components if isinstance(what, Network) else 0
        layers, rest = training_phases(self.scale, what.recipe, n_components)
        return operations_of(rest if isinstance(what, Network) else layers)


def make_plan(
    names: Sequence[str], scale: Scale, recipes: Sequence[str], n_seeds: int | None, folder: Path
) -> Plan:
    """Find out what is done in the folder and what is not; write nothing."""
    _refuse_other_scales(scale, folder)
    workshop = Workshop(scale, folder / CACHE)
    todo: list[Job] = []
    done: list[Job] = []
    for name in dict.fromkeys(names):
        for job in STUDY[name].jobs(scale, recipes, n_seeds):
            (done if _path(job, folder).exists() else todo).append(job)
    _refuse_others(done, workshop, folder)
    needed = [n for job in todo for n in STUDY[job.experiment].networks(scale, job).values()]
    networks = [n for n in dict.fromkeys(needed) if not workshop.is_trained(n)]
    layers = [
        below
        for below in dict.fromkeys(Layers(n.recipe, n.seed) for n in networks)
        if scale.estimator(below.recipe).pretrain_max_iter and not workshop.has_layers(below)
    ]
    return Plan(scale, folder, workshop, tuple(todo), tuple(done), tuple(networks), tuple(layers))


def run_plan(plan: Plan, reporter: Reporter, n_jobs: int = 1) -> list[Failure]:
    """Run all that is to be done, `n_jobs` networks at once, and return what failed."""
    provenance.commit()
    plan.workshop.cache.mkdir(parents=True, exist_ok=True)
    failures = []
    # The limit holds for all of the process: without it, what is measured while a network is
    # trained would differ in its last digits.
    with (
        single_threaded_blas(torch.device("cpu")),
        trainer(plan.workshop, plan.networks, reporter, n_jobs) as train,
    ):
        for job in plan.todo:
            start, error = time.perf_counter(), None
            try:
                run = _run(plan.workshop, job, train, n_jobs)
                write_run(run, _path(job, plan.folder))
            except Exception as problem:
                error = f"{type(problem).__name__}: {problem}"
                failures.append(Failure(job, error, traceback.format_exc()))
            reporter.finished(job, time.perf_counter() - start, error)
    return failures


def _path(job: Job, folder: Path) -> Path:
    return folder / f"{job.name}.json"


def _refuse_other_scales(scale: Scale, folder: Path) -> None:
    """Refuse to put results beside those of another scale, which no page would show together."""
    for path in sorted(folder.glob("[!.]*.json")):
        with suppress(ResultFileError):  # not a result, or one that `_refuse_others` tells of
            found = read_run(path).scale
            if found != scale.name:
                raise ValueError(
                    f"{path} is a result of the scale {found}, and those of {scale.name} do not "
                    f"belong beside it: pass another --out, or --scale {found}"
                )


def _refuse_others(jobs: Sequence[Job], workshop: Workshop, folder: Path) -> None:
    """Refuse results of another configuration: they would neither count nor be overwritten."""
    others = [
        f"{job.name}.json"
        for job in jobs
        if read_run(_path(job, folder)).config_hash != digest(_config(workshop, job))
    ]
    if others:
        raise ValueError(
            f"{len(others)} files in {folder} are results of another configuration, of another "
            "scale or version: pass another --out, or move them away: " + ", ".join(others)
        )


def _config(workshop: Workshop, job: Job) -> dict[str, Any]:
    """Return everything that the result of a job depends on."""
    networks = STUDY[job.experiment].networks(workshop.scale, job)
    return {
        "version": VERSION,
        "experiment": job.experiment,
        "recipe": job.recipe,
        "seed": job.seed,
        "point": job.point,
        "scale": workshop.scale.config,
        "kernel": workshop.kernel_config(job.seed, workshop.reg_covar),
        "networks": {name: digest(workshop.config(n)) for name, n in networks.items()},
        "constants": dict(STUDY[job.experiment].constants),
    }


def _run(workshop: Workshop, job: Job, train: Trainer, n_jobs: int) -> Run:
    experiment = STUDY[job.experiment]
    started, start = datetime.now(UTC), time.perf_counter()
    networks = experiment.networks(workshop.scale, job)
    with provenance.peak_memory() as memory:
        models = {name: train(network) for name, network in networks.items()}
        outcome = experiment.measure(workshop, job, models)
    config = _config(workshop, job)
    return Run(
        experiment=job.experiment,
        scale=workshop.scale.name,
        recipe=job.recipe,
        seed=job.seed,
        point=job.point,
        config=config,
        config_hash=digest(config),
        scores=outcome.scores,
        pictures=outcome.pictures,
        models={name: workshop.describe(networks[name], models[name]) for name in networks},
        counts=_counts(workshop, job, experiment),
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


def _counts(workshop: Workshop, job: Job, experiment: Experiment) -> dict[str, Any]:
    """Return the numbers that the paper states, as they are in this run."""
    scale = workshop.scale
    estimator = scale.estimator(job.recipe)
    n_batches = batches_per_epoch(scale.n_train, scale.batch_size, estimator.epoch)
    networks = experiment.networks(scale, job)
    return {
        "rows": {name: len(part.X) for name, part in workshop.parts.items()},
        **workshop.kernel(job.seed).counts,
        "layers": {n: layer_sizes(scale, w.n_components) for n, w in networks.items()},
        "batch size": scale.batch_size,
        "batches that see each pair once": batches_per_epoch(
            scale.n_train, scale.batch_size, "pairs"
        ),
        "batches an epoch": n_batches,
        "steps of pretraining a layer": n_batches * estimator.pretrain_max_iter,
        "steps of fine-tuning": n_batches * estimator.max_iter,
        "steps of the decoder alone": n_batches * estimator.decoder_max_iter,
    }
