"""One JSON file for each run: its settings, provenance, networks and scores."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dkae.files import replacing

FORMAT = "dkae run 1"

#: A value of the axis that an experiment sweeps over, such as λ or N_c.
Point = float | int | str

#: Fields of a run that are tables of names.
_TABLES = ("config", "scores", "pictures", "models", "counts", "provenance")


class ResultFileError(ValueError):
    """A file is not the result of a run, or is damaged."""


@dataclass(frozen=True)
class Job:
    """One run: an experiment with one recipe, one seed and one value of its axis."""

    experiment: str
    recipe: str
    seed: int
    point: Point | None = None

    @property
    def name(self) -> str:
        """The name of the result file, without its ending."""
        point = "" if self.point is None else f"-{self.point}"
        return f"{self.experiment}-{self.recipe}{point}-seed{self.seed}"


@dataclass(frozen=True)
class Run:
    """A finished run, as it stands in its file."""

    experiment: str
    scale: str
    recipe: str
    seed: int
    #: Value of the experiment's axis; None if it has none.
    point: Point | None
    #: Everything that the result depends on, and its hash.
    config: dict[str, Any]
    config_hash: str
    scores: dict[str, Any]
    #: Arrays to be drawn; see `dkae_study.results.pictures`.
    pictures: dict[str, Any]
    #: One entry for each network: its configuration, hash, layers, commit, seconds, history.
    models: dict[str, Any]
    #: Numbers that the paper states: mixtures, columns, batches of an epoch, layers, rows.
    counts: dict[str, Any]
    #: Versions, commit, machine, time of the start, seconds, peak memory.
    provenance: dict[str, Any]

    @property
    def job(self) -> Job:
        """The job of the run."""
        return Job(self.experiment, self.recipe, self.seed, self.point)


def write_run(run: Run, path: Path) -> None:
    """Write a run to its file, which appears whole or not at all."""
    text = json.dumps({"format": FORMAT, **asdict(run)}, indent=1, allow_nan=False)
    with replacing(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_run(path: Path) -> Run:
    """Read one result file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content.pop("format") != FORMAT:
            raise ValueError("another format")
        run = Run(**content)
        _check_fields(run)
        return run
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ResultFileError(
            f"{path} is not a result of this version of dkae ({error}): move it away, or name the "
            "folder that the study wrote to; if it was a result, running the study makes it anew"
        ) from error


def _check_fields(run: Run) -> None:
    """Raise if a field of a run is not of its type."""
    for tables in ({name: getattr(run, name) for name in _TABLES}, run.models):
        for name, table in tables.items():
            if not isinstance(table, dict):
                raise TypeError(f"{name} is {table!r}, not a table of names")
    for name in ("experiment", "scale", "recipe", "config_hash"):
        if not isinstance(getattr(run, name), str):
            raise TypeError(f"{name} is {getattr(run, name)!r}, not a name")
    if type(run.seed) is not int or not isinstance(run.point, Point | None):
        raise TypeError(f"seed is {run.seed!r} and point {run.point!r}: expected a number")


def read_runs(folder: Path) -> list[Run]:
    """Read all results of a folder, in the order of their names."""
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}: pass the one that `dkae reproduce` wrote to"
        )
    # A name with a dot is a file that is being written, or whose writer was killed.
    return [read_run(path) for path in sorted(folder.glob("[!.]*.json"))]


def select(
    runs: Iterable[Run], experiment: str | None = None, recipe: str | None = None
) -> list[Run]:
    """Return the runs of an experiment, a recipe, or both."""
    return [
        run for run in runs if experiment in (None, run.experiment) and recipe in (None, run.recipe)
    ]
