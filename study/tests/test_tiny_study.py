"""A second study needs a declaration and nothing else: planned, run and reported end to end."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dkae_study.engine.estimate import describe
from dkae_study.engine.plan import make_plan
from dkae_study.engine.run import run_plan
from dkae_study.paper import PAPER
from dkae_study.report.page import write_figures, write_study_page
from dkae_study.results import read_runs

from study.tests.helpers import Quiet
from study.tests.report.helpers import Page
from study.tests.tiny_study import TINY

(SCALE,) = TINY.scales


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    plan = make_plan(TINY, SCALE, folder)
    assert "8 runs with 8 networks to train" in describe(plan)
    assert run_plan(plan, Quiet(), n_jobs=2) == []
    return folder


@pytest.fixture(scope="module")
def page(folder):
    return write_study_page(TINY, folder).read_text(encoding="utf-8")


def test_all_is_done(folder):
    plan = make_plan(TINY, SCALE, folder)
    assert plan.todo == ()
    assert len(plan.done) == len(read_runs(folder)) == 8


def test_results_are_of_its_own_data_and_kernel(folder):
    for run in read_runs(folder):
        assert run.counts["rows"] == {"train": 200, "validation": 80, "test": 80}
        assert "mixtures" not in run.counts
        assert run.config["kernel"]["data"]["name"] == "digits8"
        assert run.config["kernel"]["params"]["gamma"] == 0.05
        for model in run.models.values():
            assert model["layers"][:2] == [64, 16]


def test_the_page_has_its_experiments_and_recipes(page):
    text = Page(page).text
    assert "A tiny study" in text
    assert "8 × 8 digits" in text
    for name in ("width", "back"):
        assert f'<h2 id="{name}">' in page
    assert "What other recipes change" in text
    assert "The paper’s numbers" not in text
    assert "python tiny_study.py width --scale seconds" in text
    assert "dkae reproduce" not in text


def test_its_claim_has_a_verdict_for_each_recipe(page):
    assert sum(page.count(f'class="badge {v}"') for v in ("holds", "does-not-hold")) == 2 * 2


def test_figures_are_its_own(folder, tmp_path):
    names = sorted(path.name for path in write_figures(TINY, folder, tmp_path))
    assert names == ["back-library.png", "back-shallow.png", "width-alignment.svg"]


def test_one_recipe_is_enough(folder, tmp_path):
    one = replace(TINY, recipes=TINY.recipes[:1])
    page = write_study_page(one, folder, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "recipe changes" not in page


def test_results_of_another_study_are_none_of_its_own(folder, tmp_path):
    with pytest.raises(ValueError, match=r"no results of the study .*`dkae reproduce --out"):
        write_study_page(PAPER, folder, tmp_path / "page.html")
