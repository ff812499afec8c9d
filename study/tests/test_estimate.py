"""The plan in words, and the operations it is estimated from."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from dkae_study.declaration import NetworkSpec
from dkae_study.engine import estimate
from dkae_study.engine.cost import decoder_step_operations, step_operations
from dkae_study.engine.plan import make_plan
from dkae_study.engine.trainings import Trainings
from dkae_study.experiments.sweeps import ALIGNMENT_WEIGHTS
from dkae_study.paper import LAPTOP, PAPER
from torch.utils.flop_counter import FlopCounterMode

from dkae.networks import Autoencoder, Layer
from study.tests.helpers import EXPERIMENTS, SMOKE


def test_operations_of_a_step_are_those_that_torch_counts():
    k, sizes = 8, [64, 32, 48, 24]
    layers = [
        Layer(m, n, activation="relu", output_activation="sigmoid", tied=False)
        for m, n in pairwise(sizes)
    ]
    network = Autoencoder(layers)
    for encoder_learns, operations in ((True, step_operations), (False, decoder_step_operations)):
        for layer in network.layers:
            layer.weight.requires_grad_(encoder_learns)
            layer.bias.requires_grad_(encoder_learns)
        with FlopCounterMode(display=False) as counter:
            network(torch.rand(k, 64))[1].sum().backward()
        # The gradient of the input, which nobody needs, is in the formula.
        spare = 2 * k * sizes[0] * sizes[1] if encoder_learns else 0
        assert counter.get_total_flops() == operations(sizes, k) - spare


def test_operations_of_a_network_by_hand(tmp_path):
    k = 200
    layers = [784 * 500, 500 * 500, 500 * 2000, 2000 * 2000]
    trainings = Trainings(PAPER, LAPTOP, tmp_path)
    paper = trainings.of(NetworkSpec("paper", 0, 0.1, 2000))
    assert paper.operations == 12 * k * (600 * layers[3] + 2000 * sum(layers))
    assert paper.below.operations == 12 * k * 600 * sum(layers[:3])
    layers = [784 * 1000, 1000 * 1000, 1000 * 500]
    network = trainings.of(NetworkSpec("network", 0, 0.1, 500))
    assert network.below is None
    alone = 8 * k * sum(layers) - 2 * k * layers[2]
    assert network.operations == pytest.approx(12 * k * 2000 * sum(layers) + 500 * alone)


def test_a_plan_costs_its_networks_and_its_measurements(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    monkeypatch.setattr("torch.set_num_threads", lambda n: None)
    monkeypatch.setattr(estimate, "_seconds_per_operation", lambda training: 1e-6)
    plan = make_plan(PAPER, SMOKE, tmp_path, ["lambda"], ["network"], 1)
    training = plan.operations * 1e-6
    measuring = len(ALIGNMENT_WEIGHTS) * EXPERIMENTS["lambda"].seconds * 600 / 14_000
    assert estimate.estimate_seconds(plan) == pytest.approx(training + measuring)
    for n_jobs in (2, 8):  # more than two cores can
        assert estimate.estimate_seconds(plan, n_jobs) == pytest.approx(training / 2 + measuring)
    one = replace(plan, networks=plan.networks[:1])  # one is left, and the other core idle
    alone = one.operations * 1e-6
    assert estimate.estimate_seconds(one, 2) == pytest.approx(alone + measuring)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(20, "20 seconds"), (600, "10.0 minutes"), (7200, "2.0 hours"), (864_000, "10.0 days")],
)
def test_durations(tmp_path, monkeypatch, seconds, text):
    monkeypatch.setattr(estimate, "estimate_seconds", lambda plan, n_jobs: seconds)
    plan = make_plan(PAPER, SMOKE, tmp_path, ["code-size"], ["network"], 1)
    described = estimate.describe(plan)
    assert f"3 runs with 3 networks to train, about {text} on this machine" in described
    assert str(tmp_path) in described


def test_networks_at_once_are_part_of_the_plan(tmp_path):
    plan = make_plan(PAPER, SMOKE, tmp_path, ["code-size"], ["network"], 1)
    assert estimate.describe(plan, 2).count("2 networks at once") == 1
    assert "at once" not in estimate.describe(plan)
    assert "--jobs" not in estimate.describe(plan, 2)
    assert "3 networks at once; --jobs 1 would give each all cores" in estimate.describe(plan, 16)
    one = estimate.describe(replace(plan, networks=plan.networks[:1]), 2)
    assert "at once" not in one
    assert "--jobs 1 would give each all cores" in one


@pytest.mark.parametrize("recipe", PAPER.recipe_names)
def test_steps_are_timed_by_a_fit_that_leaves_nothing(tmp_path, recipe):
    training = Trainings(PAPER, SMOKE, tmp_path).of(NetworkSpec(recipe, 0, 0.1, 8))
    params = training.estimator.get_params()
    assert 0 < estimate._seconds_per_operation(training) < 1e-6
    assert training.estimator.get_params() == params
    assert not hasattr(training.estimator, "network_")
    assert list(tmp_path.iterdir()) == []
