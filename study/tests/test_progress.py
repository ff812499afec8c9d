"""The bars of a study: operations that are done, also those before an interruption."""

from __future__ import annotations

import io
from typing import NamedTuple

import pytest
from dkae_study.engine.plan import make_plan
from dkae_study.engine.progress import StudyProgress
from dkae_study.engine.run import run_plan
from dkae_study.engine.trainers import StoppedError
from dkae_study.paper import PAPER
from rich.console import Console

from dkae.training import Callback
from study.tests.helpers import SMOKE


class Phase(NamedTuple):
    """What a bar looks at."""

    name: str


class Resumed(NamedTuple):
    """A trainer after some epochs of one step each."""

    epoch: int
    n_steps: int = 1


LOSSES = {"reconstruction_loss": 0.25, "alignment_loss": 0.5}


@pytest.fixture
def make(tmp_path):
    """Return a function that gives a plan, its progress, and what it prints."""

    def make(names=("tradeoff",), recipes=("paper",)):
        plan = make_plan(PAPER, SMOKE, tmp_path, names, recipes, 1)
        console = Console(file=io.StringIO(), width=200)
        return plan, StudyProgress(plan, console), console.file

    return make


def everything(progress):
    return progress._bars.tasks[0]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_bar_is_full_at_the_end(make, n_jobs):
    plan, progress, printed = make(recipes=("paper", "network"))
    assert run_plan(plan, progress, n_jobs) == []
    bar = everything(progress)
    assert bar.total == plan.operations
    assert bar.completed == pytest.approx(bar.total)
    assert len(progress._bars.tasks) == 1  # those of the networks are gone
    lines = printed.getvalue().splitlines()
    assert lines[0].startswith("[1/2] tradeoff-paper-seed0  ")
    assert lines[1].startswith("[2/2] tradeoff-network-seed0  ")


def test_a_network_has_a_bar_of_its_own(make):
    plan, progress, _ = make()
    network, phase = progress.training(plan.networks[1]), Phase("fine-tuning")
    network.on_train_begin(None)
    network.on_phase_begin(Resumed(10), phase)  # of forty steps
    for _ in range(5):
        network.on_step_end(None, phase)
    network.on_epoch_end(None, phase, LOSSES)
    own = progress._bars.tasks[1]
    assert own.description == "paper λ=0.1 N_c=48, seed 0, fine-tuning"
    assert own.completed / own.total == pytest.approx(15 / 40)
    assert own.fields["losses"] == "L_r 0.2500  L_c 0.500"


def test_phases_that_were_over_before_an_interruption_count(make):
    plan, progress, _ = make()
    network, k = progress.training(plan.networks[0]), 50
    below, code = (784 * 32, 32 * 32, 32 * 64), 64 * 48
    network.on_train_begin(None)  # below the code: the first layer was over, half of the second
    network.on_phase_begin(Resumed(5), Phase("layer 2"))
    done = 12 * k * (10 * below[0] + 5 * below[1])
    assert everything(progress).completed == pytest.approx(done)
    for _ in range(5):
        network.on_step_end(None, None)
    network.on_phase_begin(Resumed(0), Phase("layer 3"))
    done += 12 * k * 5 * below[1]
    assert everything(progress).completed == pytest.approx(done)
    for _ in range(10):
        network.on_step_end(None, None)
    network.on_train_end(None)
    done += 12 * k * 10 * below[2]
    assert everything(progress).completed == pytest.approx(done)
    network.on_train_begin(None)  # the code layer was over
    network.on_phase_begin(Resumed(0), Phase("fine-tuning"))
    done += 12 * k * 10 * code
    assert everything(progress).completed == pytest.approx(done)


@pytest.mark.filterwarnings("ignore:training was interrupted")
@pytest.mark.parametrize(
    ("error", "counts"),
    [(RuntimeError, True), (KeyboardInterrupt, False), (StoppedError, False)],
)
def test_what_a_failed_network_leaves_undone_is_no_longer_waited_for(make, error, counts):
    plan, progress, _ = make(recipes=("network",))

    class Fails(Callback):
        def on_step_end(self, trainer, phase):
            raise error

    training = plan.networks[0]
    plan.workshop.cache.mkdir()
    with pytest.raises(error):
        plan.workshop.train(training, [progress.training(training), Fails()])
    step = training.phases["fine-tuning"][1]
    done = training.operations if counts else step
    assert everything(progress).completed == pytest.approx(done)
    assert len(progress._bars.tasks) == 1
    assert not training.is_done


def test_a_failure_is_printed(make):
    plan, progress, printed = make()
    progress.finished(plan.todo[0].job, 3.2, "ValueError: [no] luck")
    assert printed.getvalue() == "[1/1] tradeoff-paper-seed0  3 s  FAILED: ValueError: [no] luck\n"
