"""The committed results are at the paper's size, of clean commits, and drawn as a page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dkae_study.archive import NYSTROEM, study_of
from dkae_study.paper import LAPTOP, PAPER
from dkae_study.report.page import write_study_page
from dkae_study.results import read_run, select

FOLDER = Path(__file__).parents[1] / "results" / "laptop"
FILES = sorted(FOLDER.glob("*.json"))

pytestmark = pytest.mark.skipif(
    not FOLDER.exists(), reason="the results are not in an installed package"
)


@pytest.fixture(scope="module")
def runs():
    return [read_run(path) for path in FILES]


def test_counts_are_those_of_the_paper(runs):
    for path, run in zip(FILES, runs, strict=True):
        counts = run.counts
        assert path.stem == run.job.name
        assert counts["rows"] == {"train": 14_000, "validation": 3_000, "test": 3_000}
        assert (counts["mixtures"], counts["posterior columns"]) == (870, 13_920)
        assert counts["batch size"] == LAPTOP.batch_size
        is_paper = run.recipe == "paper"
        width = run.point if run.experiment == "code-size" else 2000 if is_paper else 500
        sizes = [500, 500, 2000] if is_paper else [1000, 1000]
        for layers in counts["layers"].values():
            assert layers == [784, *sizes, width]


@pytest.mark.parametrize(
    ("recipe", "n_runs"), [("paper", 26), ("default", 54), ("network", 54)], ids=str
)
def test_a_recipe_is_of_one_commit_and_was_never_interrupted(runs, recipe, n_runs):
    chosen = select(runs, recipe=recipe)
    models = [model for run in chosen for model in run.models.values()]
    (commit,) = {record["commit"] for record in [*models, *(r.provenance for r in chosen)]}
    assert len(chosen) == n_runs
    assert re.fullmatch(r"[0-9a-f]{40}", commit)
    assert not any(model["resumed"] for model in models)


def test_results_of_an_earlier_version_are_drawn_under_a_name_of_their_own(tmp_path):
    study = study_of(FOLDER)
    page = write_study_page(study, FOLDER, tmp_path / "page.html").read_text(encoding="utf-8")
    assert study.recipe_names == ("paper", NYSTROEM, "network")
    assert all(f"<td>{name} <span" in page for name in study.recipe_names)
    assert "<td>default" not in page
    assert study_of(tmp_path) is PAPER


def test_they_are_small():
    assert sum(path.stat().st_size for path in FILES) < 8e6
