"""The network recipe against the paper's: in pairs, for each value of an axis, with a direction."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dkae_study.declaration import Contrast
from dkae_study.declaration.contrasts import contrast_recipes as contrast_any
from dkae_study.experiments.sweeps import ALIGNMENT_WEIGHTS
from dkae_study.paper import PAPER
from dkae_study.report.contrasts import _sides
from hypothesis import given
from hypothesis import strategies as st

from study.tests.helpers import invented

CONTRASTS = [(e.name, contrast) for e in PAPER.experiments for contrast in e.contrasts]
OPPOSITE = {"better": "worse", "worse": "better"}


def contrast_recipes(contrast, runs):
    return contrast_any(contrast, runs, ("paper", "network"))


def find(start):
    return next(contrast for _, contrast in CONTRASTS if contrast.text.startswith(start))


def by_run(runs):
    return {(run.seed, run.point): run.scores["x"] for run in runs}


def runs_of(paper, network, points=None):
    """Return runs of both recipes: a number for each seed, or for each value of the axis."""
    return [
        invented("lambda", {"x": x}, recipe=recipe, seed=0 if points else i, point=point)
        for recipe, numbers in {"paper": paper, "network": network}.items()
        for i, (x, point) in enumerate(zip(numbers, points or [None] * len(numbers), strict=True))
    ]


LOSS = Contrast("loss", by_run)
SCORE = replace(LOSS, higher_is_better=True)


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ([0.5, 1.4, 2.6], "better"),
        ([1.5, 2.6, 3.4], "worse"),
        ([0.5, 2.6, 3.0], "no clear difference"),
    ],
)
def test_seeds_are_paired(network, expected):
    # Between seeds the numbers differ by more than between recipes; only pairs show it.
    difference = contrast_recipes(LOSS, runs_of([1.0, 2.0, 3.0], network))
    assert difference.change == expected
    assert [e.n for e in difference.difference] == [3]


@pytest.mark.parametrize(
    ("network", "expected"),
    [([0.5, 1.9], "better"), ([1.5, 2.1], "worse"), ([0.5, 2.1], "mixed")],
)
def test_along_an_axis_every_value_counts(network, expected):
    difference = contrast_recipes(LOSS, runs_of([1.0, 2.0], network, points=[10, 50]))
    assert difference.change == expected
    assert [e.mean for e in difference.first] == [1.0, 2.0]


def test_kernel_pca_that_never_gets_nearer_counts_beyond_its_curve():
    crossing = find("m from which")
    runs = [
        invented("kernel-pca", {"m": [1, 2, 3], "crossing_out_of_sample": m}, seed, recipe=recipe)
        for recipe, crossings in {"paper": [2, 3], "network": [None, 3]}.items()
        for seed, m in enumerate(crossings)
    ]
    difference = contrast_recipes(crossing, runs)
    assert (difference.first[0].mean, difference.second[0].mean) == (2.5, 3.5)


numbers = st.lists(st.floats(-10, 10), min_size=3, max_size=3)


@given(numbers, numbers)
def test_laws(a, b):
    change = contrast_recipes(LOSS, runs_of(a, b)).change
    assert contrast_recipes(LOSS, runs_of(b, a)).change == OPPOSITE.get(change, change)
    assert contrast_recipes(SCORE, runs_of(a, b)).change == OPPOSITE.get(change, change)
    assert contrast_recipes(LOSS, runs_of(a, a)).change == "no clear difference"


def test_no_pair_no_difference():
    assert contrast_recipes(LOSS, []) is None
    assert contrast_recipes(LOSS, runs_of([1.0], [])) is None


def scores_of(experiment, quality):
    """Return scores of an experiment's runs by value of its axis: 0 is good, 1 is bad."""
    losses = {"reconstruction_mse": 0.01 + quality, "alignment_loss": 0.1 + quality}
    errors = {"mse": 0.01 + quality, "mse_clipped": 0.02 + quality}
    # For λ from 0.1 to 0.9 the bad one grows twice as much.
    middle = {w: {"validation": losses} for w in ALIGNMENT_WEIGHTS}
    steep = losses | {"reconstruction_mse": (0.01 + quality) * (2 + quality)}
    return {
        "lambda": middle | {0.9: {"validation": steep}},
        "code-size": {10: {"validation": losses}},
        "tradeoff": {None: {"0.1": losses}},
        "ideal-kernel": {None: {"P": 1.0, "C": 0.9 + quality}},
        "kernel-pca": {
            None: {
                "m": [1, 32],
                "crossing_out_of_sample": 20 - 10 * quality,
                "dkae_out_of_sample": 0.1 + quality,
            }
        },
        "denoising": {
            "clean": {
                "5 and 6": {"dkAE + PCA": errors, "dkAE without PCA": errors},
                "5 and 6, components of all digits": {"dkAE + PCA": errors},
                "all digits": {"dkAE + PCA": errors},
            },
            "noisy": {"5 and 6": {"denoising dkAE": errors, "denoising dkAE + PCA": errors}},
        },
        "code-space": {
            None: {"dkAE": {"linear classifier": 1 - quality, "k-means": {"nmi": 1 - quality}}}
        },
    }[experiment]


@pytest.mark.parametrize(
    ("experiment", "contrast"), CONTRASTS, ids=lambda value: getattr(value, "text", value)
)
@pytest.mark.parametrize(("paper", "network", "expected"), [(1, 0, "better"), (0, 1, "worse")])
def test_each_knows_what_is_better(experiment, contrast, paper, network, expected):
    runs = [
        invented(experiment, scores, seed, point, recipe)
        for recipe, quality in {"paper": paper, "network": network}.items()
        for point, scores in scores_of(experiment, quality).items()
        for seed in (0, 1)
    ]
    difference = contrast_recipes(contrast, runs)
    assert difference.change == expected
    assert difference.n_seeds == 2


@pytest.mark.parametrize(
    ("paper", "network", "expected"),
    [
        ([1.0], [1.25], "+0.2500"),
        ([1.0], [0.5], "−0.5000"),
        ([1.0, 1.0], [1.1, 1.2], "+0.1500 ± 0.6353"),  # t = 12.7
    ],
)
def test_a_difference_has_its_sign(paper, network, expected):
    difference = contrast_recipes(LOSS, runs_of(paper, network))
    assert _sides(difference) == expected


def test_differences_along_an_axis_are_counted():
    difference = contrast_recipes(LOSS, runs_of([1, 1, 1], [0.5, 0.9, 2], points=[1, 2, 3]))
    assert _sides(difference) == "lower at 2 of 3"


def test_growth_is_that_of_the_range_the_paper_speaks_of():
    growth = find("Largest L_r")
    losses = dict.fromkeys(ALIGNMENT_WEIGHTS, 1.5)
    losses |= {0: 9.0, 0.01: 0.1, 0.1: 1.0, 0.75: 3.0, 0.9: 2.0, 0.99: 50.0, 1: 70.0}
    runs = [
        invented("lambda", {"validation": {"reconstruction_mse": x}}, recipe=r, point=weight)
        for weight, x in losses.items()
        for r in ("paper", "network")
    ]
    assert contrast_recipes(growth, runs).first[0].mean == 3.0
    assert contrast_recipes(growth, [run for run in runs if run.point != 0.75]) is None
