"""The plan of a study: every job resolved once, finished ones found, nothing written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dkae_study.declaration import Experiment, Scale, Study
from dkae_study.declaration.configuration import digest, kernel_config, scale_config
from dkae_study.engine.trainings import Training
from dkae_study.engine.workshop import Workshop
from dkae_study.results import Job, ResultFileError, read_run

#: Folder for networks, within that of the results.
CACHE = "cache"


@dataclass(frozen=True, eq=False)
class Assignment:
    """A job with all that follows from it."""

    job: Job
    experiment: Experiment
    #: Its networks, by the names under which the experiment finds them.
    trainings: Mapping[str, Training]
    #: Everything that the result depends on, and its hash.
    config: dict[str, Any]
    hash: str
    #: The result file.
    path: Path


@dataclass(frozen=True)
class Plan:
    """Jobs to run, and those that are done already."""

    study: Study
    scale: Scale
    folder: Path
    workshop: Workshop
    todo: tuple[Assignment, ...]
    done: tuple[Assignment, ...]
    #: Networks that must be trained, in their order.
    networks: tuple[Training, ...]
    #: Layers below their codes that must be pretrained.
    layers: tuple[Training, ...]

    @property
    def operations(self) -> float:
        """What all trainings cost, in floating-point operations."""
        return sum(training.operations for training in (*self.layers, *self.networks))


def make_plan(
    study: Study,
    scale: Scale,
    folder: Path,
    names: Sequence[str] = (),
    recipes: Sequence[str] = (),
    n_seeds: int | None = None,
) -> Plan:
    """Find the jobs that are done in the folder, and those that are not.

    Without names all experiments, and without recipes all of them.
    """
    _refuse_other_scales(scale, folder)
    workshop = Workshop(study, scale, folder / CACHE)
    jobs = [
        job
        for name in dict.fromkeys(names or study.experiment_names)
        for job in study.experiment(name).jobs(scale, recipes or study.recipe_names, n_seeds)
    ]
    # A seed of all experiments before the next one: its kernel is then fitted once.
    jobs.sort(key=lambda job: job.seed)
    assignments = [_resolve(workshop, job, folder) for job in jobs]
    done = tuple(a for a in assignments if a.path.exists())
    todo = tuple(a for a in assignments if not a.path.exists())
    _refuse_others(done, folder)
    needed = dict.fromkeys(t for a in todo for t in a.trainings.values())
    networks = tuple(training for training in needed if not training.is_done)
    below = dict.fromkeys(t.below for t in networks if t.below is not None)
    layers = tuple(training for training in below if not training.is_done)
    return Plan(study, scale, folder, workshop, todo, done, networks, layers)


def _resolve(workshop: Workshop, job: Job, folder: Path) -> Assignment:
    study, scale = workshop.study, workshop.scale
    experiment = study.experiment(job.experiment)
    specs = experiment.networks(scale, job)
    trainings = {name: workshop.trainings.of(spec) for name, spec in specs.items()}
    config = {
        "version": study.version,
        "experiment": job.experiment,
        "recipe": job.recipe,
        "seed": job.seed,
        "point": job.point,
        "scale": scale_config(scale, job.recipe),
        "kernel": kernel_config(study, scale, job.seed),
        "networks": {name: training.hash for name, training in trainings.items()},
        "constants": dict(experiment.constants),
    }
    path = folder / f"{job.name}.json"
    return Assignment(job, experiment, trainings, config, digest(config), path)


def _refuse_other_scales(scale: Scale, folder: Path) -> None:
    """Refuse to put results beside those of another scale, which no page would show together."""
    for path in sorted(folder.glob("[!.]*.json")):
        with suppress(ResultFileError):  # not a result, or one that `_refuse_others` tells of
            found = read_run(path).scale
            if found != scale.name:
                raise ValueError(
                    f"{path} is a result of the scale {found}, and those of {scale.name} "
                    f"belong elsewhere: pass another --out, or --scale {found}"
                )


def _refuse_others(done: Sequence[Assignment], folder: Path) -> None:
    """Refuse results of another configuration: they would neither count nor be overwritten."""
    others = [a.path.name for a in done if read_run(a.path).config_hash != a.hash]
    if others:
        raise ValueError(
            f"{len(others)} files in {folder} are results of another configuration, of another "
            "scale or version: pass another --out, or move them away: " + ", ".join(others)
        )
