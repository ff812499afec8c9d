"""Reads the results in a folder, and refuses those whose numbers do not belong on one page."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dkae_study.declaration import Scale, Study
from dkae_study.declaration.configuration import digest
from dkae_study.results import ResultFileError, Run, read_run, read_runs
from dkae_study.results.pictures import unpack

#: Parameters in which networks of one recipe differ.
_OF_A_NETWORK = ("n_components", "alignment_weight", "input_noise")


def read_study(study: Study, folder: Path) -> tuple[list[Run], Scale]:
    """Return the runs of the study in a folder, and the scale that they have in common."""
    renamed = (_renamed(run, study) for run in read_runs(folder))
    runs = [run for run in renamed if _belongs(run, study)]
    _refuse_copies(runs, folder)
    scales = sorted({run.scale for run in runs})
    if not scales:
        others = folder.glob("*/[!.]*.json")
        below = sorted({path.parent.as_posix() for path in others if _is_result(path, study)})
        where = f"did you mean {' or '.join(below)}?" if below else ""
        remedy = where or f"`{study.command} --out {folder}` makes them"
        raise ValueError(f"there are no results of the study in {folder}: {remedy}")
    if len(scales) > 1:
        raise ValueError(
            f"the results in {folder} are of several scales ({', '.join(scales)}), whose numbers "
            "do not belong on one page: put each scale in a folder of its own"
        )
    known = {scale.name: scale for scale in study.scales}
    if scales[0] not in known:
        raise ValueError(
            f"the results in {folder} are of the scale {scales[0]!r}, which this version does not "
            f"have; it has {', '.join(known)}"
        )
    with damaged("the study", folder):
        versions = _versions(runs)
    _refuse_versions(versions, folder)
    _refuse_broken_pictures(runs, folder)
    return runs, known[scales[0]]


def _renamed(run: Run, study: Study) -> Run:
    return replace(run, recipe=study.former_recipes.get(run.recipe, run.recipe))


def _belongs(run: Run, study: Study) -> bool:
    return run.experiment in study.experiment_names and run.recipe in study.recipe_names


def _is_result(path: Path, study: Study) -> bool:
    try:
        return _belongs(read_run(path), study)
    except ResultFileError:
        return False


def _refuse_broken_pictures(runs: Sequence[Run], folder: Path) -> None:
    for run in runs:
        for name, picture in run.pictures.items():
            try:
                unpack(picture)
            except (KeyError, TypeError, ValueError, OverflowError, zlib.error) as error:
                raise ResultFileError(
                    f"{folder / run.job.name}.json is damaged, its picture {name!r} cannot be read "
                    f"({error}): move it away; running the study makes it anew"
                ) from error


def _refuse_copies(runs: Sequence[Run], folder: Path) -> None:
    """Refuse two results of one job: they would count as two seeds."""
    jobs = Counter(run.job for run in runs)
    copies = [job.name for job, n in jobs.items() if n > 1]
    if copies:
        raise ValueError(
            f"there are several results of {', '.join(copies)} in {folder}, which would count as "
            "several seeds: leave one of each there"
        )


def _refuse_versions(versions: dict[str, dict[str, set[str]]], folder: Path) -> None:
    """Refuse results of a scale, a recipe and so on as it is beside others as it was before."""
    for what, configs in versions.items():
        if len(configs) > 1:
            fewer = min(configs.values(), key=len)
            raise ValueError(
                f"the results in {folder} are of several versions of the {what}, whose numbers do "
                f"not belong on one page: move those of one version away; the fewer are "
                f"{', '.join(sorted(fewer))}"
            )


def _versions(runs: Sequence[Run]) -> dict[str, dict[str, set[str]]]:
    """Return the configurations of whatever should have one, each with the results that have it."""
    found: dict[str, dict[str, set[str]]] = {}

    def note(what: str, config: Any, run: Run) -> None:
        found.setdefault(what, {}).setdefault(digest(config), set()).add(run.job.name)

    for run in runs:
        note("study", {"version": run.config.get("version")}, run)
        note(f"experiment {run.experiment!r}", run.config.get("constants", {}), run)
        note(f"scale {run.scale!r}, recipe {run.recipe!r}", run.config.get("scale", {}), run)
        kernel = run.config.get("kernel", {}).get("params", {})
        note("kernel", {k: v for k, v in kernel.items() if k != "random_state"}, run)
        for model in run.models.values():
            config = model.get("config", {})
            recipe = {k: v for k, v in config.get("params", {}).items() if k not in _OF_A_NETWORK}
            # Recipes may share networks.
            note(f"recipe {config.get('recipe', run.recipe)!r}", recipe, run)
    return found


@contextmanager
def damaged(what: str, folder: Path) -> Iterator[None]:
    """Say in which results something is missing, or is of another kind than in all of them."""
    remedy = "move it away; running the study makes it anew"
    try:
        yield
    except KeyError as error:
        raise ResultFileError(
            f"a result of {what} in {folder} has no {error} where all of them have it: {remedy}"
        ) from error
    except (ValueError, TypeError, AttributeError, IndexError, ArithmeticError) as error:
        raise ResultFileError(
            f"a result of {what} in {folder} has not the form of all others ({error}): {remedy}"
        ) from error
