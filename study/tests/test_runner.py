"""Runs that are done, interrupted, killed, or fail."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from dkae_study.declaration import Outcome
from dkae_study.engine import trainers
from dkae_study.engine.estimate import describe
from dkae_study.engine.plan import make_plan
from dkae_study.engine.progress import StudyProgress
from dkae_study.engine.trainers import choose_jobs
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.sweeps import ALIGNMENT_WEIGHTS
from dkae_study.paper import PAPER
from dkae_study.results import read_run, read_runs, write_run

from dkae.spectral import KernelPCA
from study.tests.helpers import SMOKE, Quiet, changed, run_study

ALL = PAPER.recipe_names
ONE = {"names": ["tradeoff"], "recipes": ["network"], "n_seeds": 1}

#: What the history of a network has.
PHASES = {
    "paper": {"layer 1", "layer 2", "layer 3", "layer 4", "fine-tuning"},
    "network": {"fine-tuning", "decoder"},
}

# Patches the checkpoint to be written after each epoch, and kills itself after some steps.
KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from dkae.training import checkpoint
from study.tests.helpers import Quiet, run_study

torch.set_num_threads(1)
checkpoint.EVERY_SECONDS = 0

class Killer(Quiet):
    def on_step_end(self, trainer, phase):
        super().on_step_end(trainer, phase)
        if self.n_steps >= int(sys.argv[2]):  # two threads may count at once
            os.kill(os.getpid(), signal.SIGKILL)

recipe, n_jobs = sys.argv[3], int(sys.argv[4])
run_study(Path(sys.argv[1]), ["tradeoff"], [recipe], 1, reporter=Killer(), n_jobs=n_jobs)
"""


def test_all_jobs_leave_a_result(smoke, runs):
    names = {job.name for e in PAPER.experiments for job in e.jobs(SMOKE, ALL)}
    assert {path.stem for path in smoke.glob("*.json")} == names
    assert len(runs) == len(names)


def test_a_result_says_where_it_comes_from(runs):
    for run in runs:
        assert run.provenance["versions"]["dkae"]
        assert run.provenance["seconds"] > 0
        assert run.provenance["machine"]["threads"] >= 1
        assert run.config["scale"]["name"] == run.scale == "smoke"
        assert run.models
        for model in run.models.values():
            recipe = model["config"]["recipe"]
            assert set(model["history"]) == PHASES[recipe]
            assert model["layers"][0] == 784
            losses = model["history"]["fine-tuning"]
            n_epochs = model["config"]["params"]["max_iter"]
            assert len(losses["reconstruction_loss"]) == n_epochs
            is_aligned = model["config"]["alignment_weight"] > 0
            assert len(losses.get("alignment_loss", [])) == n_epochs * is_aligned
        assert run.counts["rows"] == {"train": 600, "validation": 200, "test": 200}
        assert run.counts["mixtures"] == 4 * 5
        assert run.counts["posterior columns"] == 4 * sum(range(2, 7))
        assert run.counts["batches that see each pair once"] == 144


def test_results_have_no_paths(smoke):
    for path in smoke.glob("*.json"):
        assert str(Path.home()) not in path.read_text()
        assert str(smoke) not in path.read_text()


def test_what_is_done_is_skipped(smoke):
    plan = make_plan(PAPER, SMOKE, smoke)
    assert plan.todo == ()
    assert plan.networks == ()


def test_a_result_that_is_deleted_comes_back_without_training(smoke):
    path = smoke / "ideal-kernel-network-seed1.json"
    before = read_run(path)
    path.unlink()
    reporter = Quiet()
    assert run_study(smoke, ["ideal-kernel"], reporter=reporter) == []
    assert reporter.n_steps == 0
    assert list(reporter.errors) == [path.stem]
    assert read_run(path).scores == before.scores


def test_what_no_network_changes_is_measured_once_for_all_recipes(smoke, tmp_path, monkeypatch):
    fits = []
    fit = KernelPCA._fit_transform

    def counted(self, *args, **kwargs):
        fits.append(1)
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(KernelPCA, "_fit_transform", counted)
    n_fits = {}
    for recipes in (("network",), ALL):
        folder = tmp_path / str(len(recipes))
        shutil.copytree(smoke / "cache", folder / "cache")
        fits.clear()
        assert run_study(folder, ["kernel-pca", "denoising", "code-space"], recipes) == []
        n_fits[recipes] = len(fits)
        # Whether another recipe was measured before makes no difference.
        for run in read_runs(folder):
            other = read_run(smoke / f"{run.job.name}.json")
            assert (run.scores, run.pictures) == (other.scores, other.pictures)
    assert n_fits[ALL] == n_fits["network",] > 0


def test_layers_below_the_code_are_part_of_the_plan(tmp_path):
    plan = make_plan(PAPER, SMOKE, tmp_path, ["ideal-kernel"])
    assert [below.config["seed"] for below in plan.layers] == [0, 1]
    assert {network.below for network in plan.networks} == {*plan.layers, None}
    by_hand = 12 * 50 * 10 * (784 * 32 + 32 * 32 + 32 * 64)
    assert plan.layers[0].operations == by_hand


def test_a_plan_builds_each_estimator_once(tmp_path):
    built = Counter()

    def counted(recipe):
        def make():
            built[recipe.name] += 1
            return recipe.make()

        return replace(recipe, make=make)

    study = replace(PAPER, recipes=tuple(map(counted, PAPER.recipes)))
    plan = make_plan(study, SMOKE, tmp_path)
    networks = Counter(network.spec.recipe for network in plan.networks)
    networks["paper"] += len(plan.layers)
    assert built == networks
    describe(plan)
    StudyProgress(plan)
    assert built == networks  # neither the estimate nor the bars build another one


def test_a_result_of_another_configuration_is_not_overwritten(smoke, tmp_path):
    names = ["tradeoff-network-seed0.json", "tradeoff-paper-seed0.json"]
    for name in names:
        write_run(replace(read_run(smoke / name), config_hash="0"), tmp_path / name)
    before = [(tmp_path / name).read_bytes() for name in names]
    message = r"2 files .*another configuration.*pass another --out, or move them away: "
    with pytest.raises(ValueError, match=message + r"tradeoff-paper.*tradeoff-network"):
        run_study(tmp_path, ["tradeoff"])
    assert [(tmp_path / name).read_bytes() for name in names] == before


def test_a_failure_is_reported_and_the_rest_goes_on(tmp_path):
    def fail(workshop, job, models):
        if job.recipe == "paper":
            raise RuntimeError("no luck")
        return Outcome({"x": 1.0})

    reporter, broken = Quiet(), changed("tradeoff", measure=fail)
    both = ("paper", "network")
    (failure,) = run_study(tmp_path, ["tradeoff"], both, 1, reporter=reporter, study=broken)
    assert (failure.job.recipe, failure.error) == ("paper", "RuntimeError: no luck")
    assert 'raise RuntimeError("no luck")' in failure.trace
    assert [run.recipe for run in read_runs(tmp_path)] == ["network"]
    assert list(reporter.errors.values()) == ["RuntimeError: no luck", None]


def test_ctrl_c_ends_the_study_and_the_next_call_goes_on(tmp_path, smoke, monkeypatch):
    monkeypatch.setattr("dkae.training.checkpoint.EVERY_SECONDS", 0)

    class Impatient(Quiet):
        def on_step_end(self, trainer, phase):
            super().on_step_end(trainer, phase)
            if self.n_steps == 25:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_study(tmp_path, **ONE, reporter=Impatient())
    reporter = Quiet()
    assert run_study(tmp_path, **ONE, reporter=reporter) == []
    # Four epochs of ten steps and one of the decoder; the last checkpoint was a step before.
    assert reporter.n_steps == 3 * 50 - 24
    assert_same(tmp_path, smoke, "tradeoff-network-seed0.json")


@pytest.mark.parametrize(
    "n_steps", [15, 37, 95], ids=["in the layers", "in the code", "end to end"]
)
def test_a_killed_study_goes_on_to_the_same_numbers(tmp_path, smoke, n_steps):
    kill(tmp_path, n_steps, "paper", n_jobs=1)
    reporter = Quiet()
    assert run_study(tmp_path, ["tradeoff"], ["paper"], 1, reporter=reporter) == []
    n_all = 3 * 10 + 3 * (10 + 40)
    assert reporter.n_steps == n_all - n_steps + 1  # an epoch is one step, the last one was lost
    assert_same(tmp_path, smoke, "tradeoff-paper-seed0.json")


def kill(folder: Path, n_steps: int, recipe: str, n_jobs: int) -> None:
    """Run a part of the study in a process that is killed after some steps."""
    command = [sys.executable, "-c", KILLED, str(folder), str(n_steps), recipe, str(n_jobs)]
    root = Path(__file__).parents[2]
    killed = subprocess.run(command, cwd=root, check=False, capture_output=True, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()
    assert not list(folder.glob("*.json"))
    assert list((folder / "cache").glob("*.checkpoint"))


class TestSeveralNetworksAtOnce:
    @pytest.mark.parametrize("n_steps", [33, 77, 98], ids=str)
    def test_killed_they_go_on_to_the_same_numbers(self, tmp_path, smoke, n_steps):
        """Of two networks of 40 steps end to end and 10 of the decoder, one is in its last ten."""
        kill(tmp_path, n_steps, "network", n_jobs=2)
        reporter = Quiet()
        assert run_study(tmp_path, **ONE, reporter=reporter, n_jobs=2) == []
        lost = reporter.n_steps + n_steps - 3 * 50
        assert 0 < lost <= 2 * 10  # an epoch of each
        assert_same(tmp_path, smoke, "tradeoff-network-seed0.json")

    def test_the_numbers_are_the_same(self, tmp_path, smoke):
        reporter = Quiet()
        assert run_study(tmp_path, ["tradeoff", "lambda"], reporter=reporter, n_jobs=3) == []
        names = {path.name for path in tmp_path.glob("*.json")}
        assert names == {path.name for path in smoke.glob("[tl]*.json")}
        for name in names:
            assert_same(tmp_path, smoke, name)
        # Each network once, of two seeds.
        n_networks = len(ALL) * len(ALIGNMENT_WEIGHTS)
        assert len(set(reporter.trainings)) == len(reporter.trainings) == 2 * n_networks
        assert not list((tmp_path / "cache").glob("*.checkpoint"))

    def test_a_network_that_fails_does_not_stop_the_others(self, tmp_path, monkeypatch):
        def fail(self, training, callbacks=(), train=Workshop.train):
            if training.spec.alignment_weight == 0.75:
                raise RuntimeError("no luck")
            return train(self, training, callbacks)

        monkeypatch.setattr(Workshop, "train", fail)
        (failure,) = run_study(tmp_path, ["lambda"], ["network"], 1, n_jobs=2)
        assert (failure.job.point, failure.error) == (0.75, "RuntimeError: no luck")
        assert len(read_runs(tmp_path)) == len(ALIGNMENT_WEIGHTS) - 1

    def test_ctrl_c_ends_all_of_them_and_the_next_call_goes_on(self, tmp_path, smoke, monkeypatch):
        monkeypatch.setattr("dkae.training.checkpoint.EVERY_SECONDS", 0)
        before, reporter = set(threading.enumerate()), Quiet()
        interrupted = {"study": changed("lambda", measure=_ctrl_c), "reporter": reporter}
        sweep = {"names": ["lambda"], "recipes": ["network"], "n_seeds": 1, "n_jobs": 2}
        n_steps = len(ALIGNMENT_WEIGHTS) * 50
        with pytest.raises(KeyboardInterrupt):
            run_study(tmp_path, **sweep, **interrupted)
        assert set(threading.enumerate()) == before
        assert 50 <= reporter.n_steps < n_steps
        assert run_study(tmp_path, **sweep, reporter=reporter) == []
        # Of each of the two networks at most an epoch of ten steps was lost.
        assert n_steps <= reporter.n_steps <= n_steps + 2 * 10
        assert_same(tmp_path, smoke, "lambda-network-0.9-seed0.json")

    @pytest.mark.parametrize(("wanted", "n_jobs"), [(None, 4), (2, 2)])
    def test_how_many(self, monkeypatch, wanted, n_jobs):
        monkeypatch.setattr("torch.get_num_threads", lambda: 4)
        monkeypatch.setattr(trainers, "_has_gpu", lambda: False)
        assert choose_jobs(wanted) == n_jobs

    def test_one_network_on_a_gpu(self, monkeypatch):
        monkeypatch.setattr(trainers, "_has_gpu", lambda: True)
        assert choose_jobs(None) == 1
        assert choose_jobs(2) == 2

    def test_threads_of_torch_are_shared_and_given_back(self, tmp_path, monkeypatch):
        seen = []
        monkeypatch.setattr(
            Workshop, "train", lambda *_: seen.append(torch.get_num_threads()) or None
        )
        broken = changed("lambda", measure=lambda *_: 1 / 0)
        torch.set_num_threads(4)
        try:
            run_study(tmp_path, ["lambda"], ["network"], n_jobs=2, study=broken)
            assert set(seen) == {2}
            assert torch.get_num_threads() == 4
        finally:
            torch.set_num_threads(1)


def _ctrl_c(workshop, job, models):
    raise KeyboardInterrupt


def assert_same(folder: Path, other: Path, name: str) -> None:
    ours, theirs = (json.loads((f / name).read_text()) for f in (folder, other))
    for key in ("config_hash", "scores", "pictures", "counts"):
        assert ours[key] == theirs[key]
    for label, model in ours["models"].items():
        assert model["history"] == theirs["models"][label]["history"]
