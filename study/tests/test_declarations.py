"""What is declared is what the paper states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dkae_study.declaration import Study
from dkae_study.engine.cost import layer_sizes
from dkae_study.experiments.sweeps import ALIGNMENT_WEIGHTS
from dkae_study.paper import LAPTOP, PAPER

from dkae.networks import hidden_sizes
from dkae.training import batches_per_epoch
from study.tests.helpers import EXPERIMENTS

D = PAPER.data.n_features


def test_the_study_has_every_table_and_figure_in_the_order_of_the_paper():
    assert list(PAPER.experiment_names) == [
        "lambda",
        "code-size",
        "tradeoff",
        "ideal-kernel",
        "kernel-pca",
        "denoising",
        "code-space",
    ]


@pytest.mark.parametrize("scale", ["laptop", "paper"])
def test_data_kernel_and_network_are_those_of_the_paper(scale):
    scale = PAPER.scale(scale)
    assert (scale.n_train, scale.n_held_out) == (14_000, 3_000)
    assert layer_sizes(PAPER.estimator(scale, "paper"), D) == [784, 500, 500, 2000, 2000]
    assert scale.batch_size == 200
    q, g = scale.kernel["n_initializations"], scale.kernel["max_components"]
    assert (q, g, scale.kernel["max_fit_samples"]) == (30, 30, 200)
    assert q * (g - 1) == 870
    assert q * sum(range(2, g + 1)) == 13_920


def test_the_paper_scale_is_the_schedule_of_the_paper():
    scale = PAPER.scale("paper")
    estimator = PAPER.estimator(scale, "paper")
    n_batches = batches_per_epoch(scale.n_train, scale.batch_size, estimator.steps_per_epoch)
    assert n_batches == 4_900
    assert (estimator.pretrain_max_iter, estimator.max_iter) == (30, 100)
    n_layers = len(layer_sizes(estimator, D)) - 1
    assert n_batches * (n_layers * 30 + 100) == 1_078_000


def test_the_network_of_the_library_has_its_own_widths():
    width = LAPTOP.width("network")
    automatic = hidden_sizes("auto", (LAPTOP.n_train, D), width)
    assert layer_sizes(PAPER.estimator(LAPTOP, "network"), D) == [D, *automatic, width]


def test_a_laptop_takes_two_thousand_steps_of_fine_tuning():
    for recipe in ("paper", "network"):
        estimator = PAPER.estimator(LAPTOP, recipe)
        assert estimator.max_iter * estimator.steps_per_epoch == 2_000


def test_values_and_seeds_of_the_sweeps():
    assert tuple(EXPERIMENTS["lambda"].sweep.values(LAPTOP)) == ALIGNMENT_WEIGHTS
    assert {0, 0.1, 0.75, 0.9, 1} <= set(ALIGNMENT_WEIGHTS)
    assert {10, 500, 2000} <= set(EXPERIMENTS["code-size"].sweep.values(LAPTOP))
    sweeps = {"lambda", "code-size"}
    for experiment in PAPER.experiments:
        assert experiment.n_seeds == (3 if experiment.name in sweeps else 5)


def test_values_of_the_paper():
    table = EXPERIMENTS["ideal-kernel"].paper_values
    assert (table["P"], table["K_AE"], table["C"]) == (1.0132, 1.1417, 1.0115)
    for row in ("P", "K_AE", "C"):
        for column in {"P", "K_AE", "C"} - {row}:
            percent = 100 * (table[column] - table[row]) / table[row]
            assert table[f"{row} vs {column}, %"] == pytest.approx(percent, abs=0.06)
    denoising = EXPERIMENTS["denoising"].paper_values
    assert denoising == {"kernel PCA, PCK": 0.0427, "dkAE + PCA": 0.0358}
    assert EXPERIMENTS["kernel-pca"].paper_values == {"crossing": 16}


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda e: e.name)
@pytest.mark.parametrize("scale", PAPER.scales, ids=lambda s: s.name)
def test_jobs_have_names_of_their_own_and_the_first_seed_first(experiment, scale):
    jobs = experiment.jobs(scale, PAPER.recipe_names)
    assert len({job.name for job in jobs}) == len(jobs) > 0
    assert {job.recipe for job in jobs} == set(PAPER.recipe_names)
    seeds = [job.seed for job in jobs]
    assert seeds == sorted(seeds)
    for job in jobs:
        networks = experiment.networks(scale, job)
        assert networks
        assert all(n.recipe == job.recipe and n.seed == job.seed for n in networks.values())


@pytest.mark.parametrize("experiment", PAPER.experiments, ids=lambda e: e.name)
def test_a_declaration_says_all_that_a_reader_needs(experiment):
    texts = (experiment.title, experiment.reference, experiment.summary, experiment.data)
    assert all(texts)
    assert experiment.methods
    assert experiment.metrics
    assert experiment.assumptions
    assert experiment.differences
    assert experiment.claims


@pytest.mark.parametrize("what", ["scales", "recipes", "experiments"])
def test_names_are_unique(what):
    things = getattr(PAPER, what)
    for wrong in ((), (*things, things[0])):
        with pytest.raises(ValueError, match=f"{what}=.* each with its own name"):
            replace(PAPER, **{what: wrong})


def test_every_scale_has_a_schedule_for_each_recipe():
    scale = replace(LAPTOP, schedules={"paper": {}})
    lacking = r"schedules of the scale 'laptop' lack \['network'\]"
    with pytest.raises(ValueError, match=lacking):
        replace(PAPER, scales=(scale,))


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (Study.experiment, "lamda", "experiment='lamda' is not known.*did you mean 'lambda'"),
        (Study.scale, "huge", "scale='huge' is not known: expected one of 'smoke', 'laptop'"),
    ],
)
def test_what_is_not_known_is_named(find, name, message):
    with pytest.raises(ValueError, match=message):
        find(PAPER, name)
