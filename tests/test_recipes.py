"""Recipes: visible settings of the maps, any of which can be overridden."""

from __future__ import annotations

import pytest
from sklearn.gaussian_process.kernels import RBF

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, recipes
from dkae.kernels import PairwiseKernel, ProbabilisticClusterKernel

LEARNED, COMPUTED = DeepKernelizedAutoencoder, InvertibleNystroem


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ("rbf", COMPUTED),
        ("pck", COMPUTED),
        (ProbabilisticClusterKernel(), COMPUTED),
        ("forest", LEARNED),
        (RBF(), LEARNED),
        (PairwiseKernel("rbf"), LEARNED),
    ],
)
def test_default_is_the_map_that_suits_a_kernel(kernel, expected):
    model = recipes.default(kernel, n_components=7)
    assert type(model) is expected
    params = model.get_params(deep=False)
    assert params == expected(7, kernel=kernel).get_params(deep=False)


def test_network_is_the_constructor():
    assert recipes.network().get_params() == DeepKernelizedAutoencoder().get_params()


def test_paper_is_the_paper():
    model = recipes.paper()
    expected = {
        "n_components": 2000,
        "kernel": "pck",
        "alignment": "frobenius",
        "network__hidden_layer_sizes": (500, 500, 2000),
        "network__activation": "sigmoid",
        "network__code_activation": "sigmoid",
        "network__output_activation": "sigmoid",
        "network__layer_norm": False,
        "network__input_scaling": False,
        "network__tied_weights": True,
        "alignment_weight": 0.1,
        "batch_size": 200,
        "pretrain_max_iter": 30,
        "max_iter": 100,
        "decoder_max_iter": 0,
        "steps_per_epoch": "pairs",
        "optimization__optimizer": "adam",
        "optimization__learning_rate": "constant",
    }
    assert expected.items() <= model.get_params().items()


@pytest.mark.parametrize("recipe", [recipes.default, recipes.network, recipes.paper])
def test_any_parameter_can_be_overridden(recipe):
    assert recipe(n_components=7, random_state=3).get_params()["n_components"] == 7


def test_the_paper_s_recipe_trains(digits):
    model = recipes.paper(
        n_components=6, pretrain_max_iter=1, max_iter=1, batch_size=100, kernel="rbf",
        steps_per_epoch=3, random_state=0,
    ).set_params(network__hidden_layer_sizes=(8, 8, 12)).fit(digits)  # fmt: skip
    assert [r["phase"] for r in model.history_][-1] == "fine-tuning"
    codes = model.transform(digits)
    assert 0 < codes.min() < codes.max() < 1
