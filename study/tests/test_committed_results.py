"""The results that are committed: of this code's configuration, at the paper's size."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dkae_study.engine.plan import make_plan
from dkae_study.paper import LAPTOP, PAPER
from dkae_study.results import Run, read_run, read_runs, select

FOLDER = Path(__file__).parents[1] / "results" / "laptop"
FILES = sorted(FOLDER.glob("*.json"))

pytestmark = pytest.mark.skipif(
    not FOLDER.exists(), reason="the results are not in an installed package"
)


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def path(request) -> Path:
    return request.param


@pytest.fixture
def run(path) -> Run:
    return read_run(path)


def test_counts_are_those_of_the_paper(run):
    counts = run.counts
    assert counts["rows"] == {"train": 14_000, "validation": 3_000, "test": 3_000}
    assert counts["mixtures"] == 870
    assert counts["posterior columns"] == 13_920
    assert counts["batch size"] == 200
    assert counts["batches that see each pair once"] == 4_900
    width = run.point if run.experiment == "code-size" else LAPTOP.width(run.recipe)
    sizes = [500, 500, 2000] if run.recipe == "paper" else [1000, 1000]
    for layers in counts["layers"].values():
        assert layers == [784, *sizes, width]


def test_every_network_was_trained_for_as_long_as_its_recipe_says(run):
    steps = {"paper": {"fine-tuning": 100}, "network": {"fine-tuning": 20, "decoder": 5}}
    for model in run.models.values():
        n_epochs = {phase: len(losses["loss"]) for phase, losses in model["history"].items()}
        if model["config"]["recipe"] == "default":  # its decoder stops when it no longer gains
            assert 1 <= n_epochs.pop("decoder") <= 10
            assert not n_epochs
        else:
            assert n_epochs.items() >= steps[model["config"]["recipe"]].items()


def test_it_says_which_commit_made_it(run):
    commits = [run.provenance["commit"], *(model["commit"] for model in run.models.values())]
    assert all(re.fullmatch(r"[0-9a-f]{40}", commit) for commit in commits)


def test_the_file_has_the_name_of_its_job(path, run):
    assert path.stem == run.job.name


@pytest.fixture(scope="module")
def plan():
    return make_plan(PAPER, LAPTOP, FOLDER)


def test_they_are_results_of_the_present_configuration(plan):
    # The plan refuses a result of another one. The recipe of the paper lacks seeds.
    assert {assignment.job.recipe for assignment in plan.todo} == {"paper"}
    assert {assignment.job.name for assignment in plan.done} == {path.stem for path in FILES}


@pytest.mark.parametrize(
    ("recipe", "n_runs"), [("paper", 26), ("default", 54), ("network", 54)], ids=str
)
def test_a_recipe_is_of_one_commit_and_was_never_interrupted(recipe, n_runs):
    runs = select(read_runs(FOLDER), recipe=recipe)
    models = [model for run in runs for model in run.models.values()]
    assert len(runs) == n_runs
    (commit,) = {record["commit"] for record in [*models, *(r.provenance for r in runs)]}
    assert "changes" not in commit
    assert not any(model["resumed"] for model in models)


def test_networks_are_those_of_the_configuration(run, plan):
    (found,) = [assignment for assignment in plan.done if assignment.job == run.job]
    hashes = {name: training.hash for name, training in found.trainings.items()}
    assert {name: model["hash"] for name, model in run.models.items()} == hashes


def test_they_are_small():
    assert sum(path.stat().st_size for path in FILES) < 8e6
