"""Model files of kernel layers, and of stacks with what goes beyond the paper."""

from __future__ import annotations

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels.pairwise import pairwise_names
from dkae.networks import Autoencoder, KernelLayer, KernelLayerNetwork, StackedNetwork
from dkae.recipes import RECIPES
from tests.ids import plain_id
from tests.persistence.helpers import (
    X,
    cube_of_inner_products,
    indefinite_is_fine,
    make,
    save_and_load,
)

GAPS = np.random.default_rng(1).random(X.shape) < 0.15
GAPPY = np.where(GAPS, np.float32(np.nan), X)
PCK = {"kernel": "pck", "kernel_params": {"max_components": 3, "n_initializations": 2}}


def fit_layer(rows=X, **params):
    return make(**({"network": "kernel_layer", "max_iter": 1} | params)).fit(rows)


def assert_same(loaded, model, rows=X):
    codes = model.transform(rows)
    np.testing.assert_array_equal(loaded.transform(rows), codes)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))
    assert loaded.score(rows) == model.score(rows)
    assert loaded.history_ == model.history_
    for name in ("alignment_", "centered_alignment_", "r2_", "kernel_scale_", "n_components_"):
        assert getattr(loaded, name) == getattr(model, name)


@indefinite_is_fine
@pytest.mark.parametrize("name", pairwise_names())
def test_kernels_by_name(name, tmp_path):
    model = fit_layer(kernel=name)
    loaded = save_and_load(model, tmp_path)
    assert isinstance(loaded.network_, KernelLayer)
    assert_same(loaded, model)


@pytest.mark.parametrize(
    "params",
    [
        PCK,
        {"n_components": 20},
        {"network": KernelLayerNetwork(9, n_linear=0)},
        {"network": KernelLayerNetwork(9, "k-means", n_linear=3)},
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": (5, 4)},
        {"standardize": False},
        {"standardize": "features"},
        {"output_activation": "identity"},
        {"output_activation": "softplus"},
        {"kernel": "linear", "n_components": 9},  # beyond the rank of the kernel
    ],
    ids=plain_id,
)
def test_kernel_layers_of_every_kind(params, tmp_path):
    model = fit_layer(**params)
    assert_same(save_and_load(model, tmp_path), model)


@pytest.mark.parametrize(
    "params", [{}, {"kernel": "chi2"}, PCK, {"standardize": False}], ids=plain_id
)
@pytest.mark.parametrize("network", ["kernel_layer", "stacked"])
def test_models_of_rows_with_gaps(params, network, tmp_path):
    model = fit_layer(GAPPY, missing="mask", network=network, **params)
    assert_same(save_and_load(model, tmp_path), model, GAPPY)


@pytest.mark.parametrize(
    "params",
    [
        {"layer_norm": True},
        {"linear_path": 0.3},
        {"layer_norm": True, "linear_path": 0.1, "standardize": "features"},
        {"layer_norm": False, "standardize": False},
    ],
    ids=plain_id,
)
def test_stacks_with_what_goes_beyond_the_paper(params, tmp_path):
    model = make(**params).fit(X)
    loaded = save_and_load(model, tmp_path)
    assert isinstance(loaded.network_, Autoencoder)
    assert_same(loaded, model)


def test_a_layer_of_a_forest_is_whole(tmp_path):
    model = fit_layer(kernel="forest", kernel_params={"n_estimators": 5})
    assert_same(save_and_load(model, tmp_path), model)


def test_a_layer_of_a_kernel_that_no_file_holds_asks_for_it(tmp_path):
    model = fit_layer(kernel=cube_of_inner_products)
    with pytest.warns(UserWarning, match="does not hold kernel cube_of_inner_products"):
        save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    with pytest.raises(ValueError, match=r"call model\.attach_kernel"):
        loaded.transform(X)
    assert_same(loaded.attach_kernel(cube_of_inner_products), model)


@pytest.mark.parametrize(
    "params",
    [
        {"network": "kernel_layer"},
        {"network": KernelLayerNetwork(9, "k-means", n_linear=1)},
        {"network": StackedNetwork((4,), layer_norm=True, linear_path=0.2)},
        {"network": "stacked", "layer_norm": True, "linear_path": 0.2},
    ],
    ids=plain_id,
)
def test_a_loaded_model_fits_the_same_again(params, tmp_path):
    model = make(**params, random_state=0).fit(X)
    again = save_and_load(model, tmp_path).fit(X)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_a_fitted_layer_that_was_trained_on(tmp_path):
    first = fit_layer()
    second = make(network=first.network_).fit(X)
    assert_same(save_and_load(second, tmp_path), second)


def test_landmarks_may_be_on_the_file_only_once(tmp_path):
    """Not once more with the kernel, nor with the scaling."""
    rows = np.random.default_rng(0).random((400, 50), dtype=np.float32)
    model = make(network=KernelLayerNetwork(400), hidden_layer_sizes=()).fit(rows)
    save(model, tmp_path / "model")
    n_numbers = sum(t.numel() for t in model.network_.state_dict().values())
    assert (tmp_path / "model").stat().st_size < 4 * n_numbers + 10_000


# --- recipes -------------------------------------------------------------------------------------


def test_there_are_four_recipes():
    assert list(RECIPES) == ["default", "kernel_layer", "network", "paper"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("default", KernelLayer),
        ("kernel_layer", KernelLayer),
        ("network", Autoencoder),
        ("paper", Autoencoder),
    ],
)
def test_every_recipe_fits_and_stands_in_a_file(name, kind, tmp_path):
    small = {"n_components": 3, "hidden_layer_sizes": (6,), "steps_per_epoch": 2, "max_iter": 1}
    small |= {"pretrain_max_iter": 1, "kernel": "rbf"} if name == "paper" else {}
    model = RECIPES[name](**small, random_state=0)
    assert isinstance(model, DeepKernelizedAutoencoder)
    model.fit(X)
    assert type(model.network_) is kind
    assert_same(save_and_load(model, tmp_path), model)
    assert load(tmp_path / "model.safetensors").get_params()["network"] == model.network


def test_the_recipe_of_the_kernel_layer_takes_any_kernel_that_knows_new_rows():
    small = {"n_components": 3, "hidden_layer_sizes": (6,), "decoder_max_iter": 1}
    model = RECIPES["kernel_layer"](kernel=cube_of_inner_products, **small).fit(X)
    assert type(model.network_) is KernelLayer
