"""dkae reproduce and dkae report."""

from __future__ import annotations

import subprocess
import sys

import dkae_study.demo
import pytest
from dkae_study.declaration import Outcome
from dkae_study.engine import estimate
from dkae_study.paper import PAPER
from dkae_study.results import read_runs

from study.tests.helpers import changed, fail, run, succeed

SMALL = [
    "reproduce",
    "tradeoff",
    "--scale",
    "smoke",
    "--recipe",
    "network",
    "--seeds",
    "1",
    "--out",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the results of one experiment and one recipe."""
    folder = tmp_path_factory.mktemp("study")
    succeed(*SMALL, folder)
    return folder


def test_list_names_every_experiment_with_its_place_in_the_paper():
    lines = succeed("reproduce", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(PAPER.experiment_names)
    for line, experiment in zip(lines, PAPER.experiments, strict=True):
        assert experiment.reference in line


def test_list_of_some():
    (line,) = succeed("reproduce", "--list", "lambda").stdout.splitlines()
    assert line.startswith("lambda ")
    assert "did you mean 'lambda'?" in fail("reproduce", "--list", "lamda")


def test_dry_run_shows_the_plan_and_writes_nothing(tmp_path):
    printed = succeed(*SMALL[:-1], "--dry-run", "--out", tmp_path / "new").stdout
    assert "Scale smoke" in printed
    assert "1 run with 3 networks to train, about" in printed
    assert list(tmp_path.iterdir()) == []


def test_freed_memory_is_kept_before_the_estimate_is_timed(tmp_path, kept, monkeypatch):
    n_before = []
    monkeypatch.setattr(estimate, "describe", lambda *_: n_before.append(len(kept)))
    kept.clear()
    succeed(*SMALL, tmp_path, "--dry-run")
    assert n_before == [1]


def test_dry_run_at_every_scale(tmp_path):
    for scale in (scale.name for scale in PAPER.scales):
        printed = succeed("reproduce", "--scale", scale, "--dry-run", "--out", tmp_path).stdout
        assert f"Scale {scale}" in printed


def test_results_and_plan_of_what_is_done(folder):
    (run,) = read_runs(folder)
    assert (run.experiment, run.recipe, run.scale) == ("tradeoff", "network", "smoke")
    done = succeed(*SMALL, folder)
    assert "Everything is done already" in done.stdout
    assert f"Results in {folder}" in done.stdout
    assert done.stderr == ""


def test_results_of_two_scales_do_not_get_into_one_folder(folder):
    message = fail("reproduce", "lambda", "--scale", "demo", "--dry-run", "--out", folder)
    assert "tradeoff-network-seed0.json is a result of the scale smoke" in message
    assert "pass another --out, or --scale smoke" in message


def test_seeds(tmp_path):
    printed = succeed(*SMALL, tmp_path, "--seeds", 3, "--dry-run").stdout
    assert "3 runs with 9 networks" in printed


def test_a_failed_run_is_told_at_the_end(tmp_path, monkeypatch):
    def broken(workshop, job, models):
        raise ValueError("no luck")

    monkeypatch.setattr("dkae_study.paper.PAPER", changed("tradeoff", measure=broken))
    result = run(*SMALL, tmp_path)
    assert result.exit_code == 1
    assert "tradeoff-network-seed0 failed" in result.stderr
    last = result.stderr.splitlines()[-1]
    assert last == "Error: 1 of 1 runs failed: tradeoff-network-seed0 (ValueError: no luck)"


def test_ctrl_c_says_how_to_go_on(tmp_path, monkeypatch):
    def interrupted(workshop, job, models):
        raise KeyboardInterrupt

    monkeypatch.setattr("dkae_study.paper.PAPER", changed("tradeoff", measure=interrupted))
    result = run(*SMALL, tmp_path)
    assert result.exit_code == 130
    assert "the same command goes on from here" in result.stderr
    mended = changed("tradeoff", measure=lambda *_: Outcome({"x": 1.0}))
    monkeypatch.setattr("dkae_study.paper.PAPER", mended)
    assert "1 run with 0 networks" in succeed(*SMALL, tmp_path).stdout


def test_jobs(tmp_path, folder):
    printed = succeed(*SMALL, tmp_path, "--jobs", 2).stdout
    assert "3 networks to train, about" in printed
    assert "2 networks at once" in printed
    (ours,), (theirs,) = read_runs(tmp_path), read_runs(folder)
    assert ours.scores == theirs.scores
    assert "'--jobs': 0 is not in the range" in run(*SMALL, tmp_path, "--jobs", 0).stderr


def test_an_unknown_experiment_is_named(tmp_path):
    message = fail("reproduce", "lamda", "--out", tmp_path)
    assert "experiment='lamda' is not known" in message
    assert "did you mean 'lambda'?" in message


def test_report_writes_a_page_and_figures(folder, tmp_path):
    page, figures = tmp_path / "page.html", tmp_path / "figures"
    printed = succeed("report", folder, "-o", page, "--figures", figures).stdout
    assert str(page) in printed
    assert "scale: smoke" in page.read_text()
    assert list(figures.iterdir())


def test_report_writes_into_the_folder_by_default(folder):
    succeed("report", folder)
    assert (folder / "index.html").exists()


def test_report_into_a_folder_that_is_not_there(folder, tmp_path):
    result = run("report", folder, "-o", tmp_path / "no" / "page.html")
    assert result.exit_code == 2
    assert "does not exist" in result.stderr


def test_help_names_scales_and_recipes():
    printed = succeed("reproduce", "--help").stdout
    assert "[smoke|demo|laptop|paper]" in printed
    assert "[paper|network]" in printed
    assert "'huge' is not one of 'smoke', 'demo'" in run("reproduce", "--scale", "huge").stderr


def test_commands_are_listed_without_torch():
    code = "import sys; from dkae_study import commands; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.parametrize("name", ["nowhere", ""], ids=["missing", "empty"])
def test_report_without_results_says_what_to_do(tmp_path, name):
    assert "dkae reproduce" in fail("report", tmp_path / name)


# --- the demo ------------------------------------------------------------------------------------


@pytest.fixture
def demo_calls(monkeypatch):
    """Replace the demo's training and page by functions that note how they were called."""
    calls = []

    def run_demo(out, **kwargs):
        calls.append((out, kwargs))
        return {"scores": {"test alignment": 0.123456}}

    monkeypatch.setattr(dkae_study.demo, "run_demo", run_demo)
    monkeypatch.setattr(dkae_study.demo, "write_demo_page", lambda out: out / "index.html")
    return calls


def test_demo_passes_its_options_on(demo_calls, tmp_path):
    succeed("demo", "-o", tmp_path, "--steps", 40, "--seed", 3, "--quiet")
    assert demo_calls == [(tmp_path, {"n_steps": 40, "seed": 3, "verbose": False})]


def test_demo_prints_scores_and_page(demo_calls, tmp_path):
    printed = succeed("demo", "-o", tmp_path).stdout
    assert "test alignment  0.1235\n" in printed
    assert str(tmp_path / "index.html") in printed


@pytest.mark.parametrize("option", [("--steps", 19), ("-o", __file__)], ids=str)
def test_demo_refuses_wrong_options(option, demo_calls):
    assert run("demo", *option).exit_code == 2
    assert demo_calls == []
