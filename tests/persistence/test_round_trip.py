"""What is loaded is what was saved."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from dkae import load, save
from dkae.kernels import PairwiseKernel, ProbabilisticClusterKernel
from dkae.kernels.pairwise import pairwise_names
from dkae.spectral import PreImage
from tests.persistence.helpers import (
    GRAM,
    X,
    as_json,
    assert_same_maps,
    fit_kind,
    indefinite_is_fine,
    left_out_is_fine,
    make,
    save_and_load,
    unsaved_kinds,
)

# --- the loaded model is the saved one -----------------------------------------------------------


def test_transform_is_bit_identical(model, path):
    np.testing.assert_array_equal(load(path).transform(X), model.transform(X))


def test_inverse_transform_is_bit_identical(model, path):
    codes = model.transform(X)
    expected = model.inverse_transform(codes)
    np.testing.assert_array_equal(load(path).inverse_transform(codes), expected)


def test_gram_is_bit_identical(model, path):
    np.testing.assert_array_equal(load(path).gram(X, X[:4]), model.gram(X, X[:4]))


def test_score_is_bit_identical(model, path):
    assert load(path).score(X) == model.score(X)


@pytest.mark.parametrize("name", ["history_", "kernel_scale_", "n_features_in_", "n_iter_"])
def test_learned_attribute_survives(name, model, path):
    assert getattr(load(path), name) == getattr(model, name)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"tied_weights": False},
        {"hidden_layer_sizes": ()},
        {"hidden_layer_sizes": (), "tied_weights": False},
        {"hidden_layer_sizes": [7, 4]},
        {"hidden_layer_sizes": 7},
        {"activation": "tanh", "code_activation": "sigmoid", "output_activation": "identity"},
        {"gamma": 0.5, "alignment_weight": 1},
        {"gamma": None, "degree": 2, "coef0": 0.5},
        {"early_stopping": True, "validation_fraction": 0.2, "tol": 0.0},
        {"max_grad_norm": 5.0, "input_noise": 0.1},
        {"random_state": None},
        {"pretrain_max_iter": 1, "learning_rate": "cosine"},
        {"kernel_params": {"gamma": 0.3}},
        {"kernel": "poly", "kernel_params": {"degree": 2, "coef0": 0.5}},
    ],
    ids=str,
)
def test_params_survive(params, tmp_path):
    fitted = make(**params).fit(X)
    loaded = save_and_load(fitted, tmp_path)
    assert as_json(loaded.get_params()) == as_json(fitted.get_params())
    assert_same_maps(loaded, fitted)
    assert loaded.score(X) == fitted.score(X)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", np.int64(3)),
        ("hidden_layer_sizes", (np.int64(6),)),
        ("hidden_layer_sizes", np.array([6])),
        ("alignment_weight", np.float32(0.5)),
        ("alignment_weight", np.float64(0.5)),
        ("tied_weights", np.False_),
        ("degree", np.int64(2)),
        ("coef0", np.float32(0.5)),
        ("gamma", np.float32(0.5)),
        ("random_state", np.int64(2)),
    ],
    ids=lambda value: value if isinstance(value, str) else repr(value),
)
def test_params_of_numpy_types_survive(name, value, tmp_path):
    loaded = save_and_load(make(**{name: value}).fit(X), tmp_path)
    np.testing.assert_array_equal(loaded.get_params()[name], value)


def test_loaded_model_can_be_fitted_again(model, path):
    again = load(path).fit(X)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_loaded_model_can_be_cloned(model, path):
    again = clone(load(path)).fit(X)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))


def test_loaded_model_can_be_saved_again(path, tmp_path):
    save(load(path), tmp_path / "again.safetensors")
    assert_same_maps(load(tmp_path / "again.safetensors"), load(path))


def test_a_file_name_may_be_a_string(model, tmp_path):
    save(model, str(tmp_path / "m"))
    assert_same_maps(load(str(tmp_path / "m")), model)


def test_saving_leaves_the_model_as_it_was(tmp_path):
    fitted = make().fit(X)
    before = pickle.dumps(fitted)
    save(fitted, tmp_path / "m")
    assert pickle.dumps(fitted) == before


def test_feature_names_survive(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "größe", "λ", "e 1"])
    fitted = make().fit(frame)
    loaded = save_and_load(fitted, tmp_path)
    np.testing.assert_array_equal(loaded.feature_names_in_, fitted.feature_names_in_)
    np.testing.assert_array_equal(loaded.transform(frame), fitted.transform(frame))


def test_wrong_feature_names_are_refused_after_loading(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcde"))
    loaded = save_and_load(make().fit(frame), tmp_path)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame[list("edcba")])


def test_without_feature_names_there_are_none_after_loading(path):
    assert not hasattr(load(path), "feature_names_in_")


def test_set_params_after_fit_does_not_reach_what_was_learned(model, tmp_path):
    changed = (
        make()
        .fit(X)
        .set_params(
            n_components=9,
            hidden_layer_sizes=(2, 2),
            tied_weights=False,
            activation="tanh",
            kernel="linear",
            gamma=7.0,
        )
    )
    loaded = save_and_load(changed, tmp_path)
    assert loaded.n_components == 9
    assert_same_maps(loaded, model)
    assert loaded.score(X) == model.score(X)


# --- kernels -------------------------------------------------------------------------------------


@indefinite_is_fine
@pytest.mark.parametrize("name", pairwise_names())
def test_kernel_of_scikit_learn_survives(name, tmp_path):
    fitted = make(kernel=name).fit(X)
    loaded = save_and_load(fitted, tmp_path)
    assert loaded.kernel == name
    assert loaded.kernel_.gamma_ == fitted.kernel_.gamma_
    assert loaded.score(X) == fitted.score(X)


@pytest.mark.parametrize("gamma", ["median", "scale", 0.3, None])
def test_gamma_that_was_chosen_survives(gamma, tmp_path):
    fitted = make(gamma=gamma).fit(X)
    loaded = save_and_load(fitted, tmp_path)
    # On other rows a heuristic would choose another gamma: the old one must be used.
    assert loaded.score(10 * X[:7]) == fitted.score(10 * X[:7])


def test_kernel_object_with_a_name_can_be_scored(tmp_path):
    fitted = make(kernel=PairwiseKernel("laplacian", gamma=0.7)).fit(X)
    assert save_and_load(fitted, tmp_path).score(X) == fitted.score(X)


@left_out_is_fine
@unsaved_kinds
def test_model_of_an_unsaved_kernel_maps(kind, tmp_path):
    fitted = fit_kind(kind)
    assert_same_maps(save_and_load(fitted, tmp_path), fitted)


@left_out_is_fine
@unsaved_kinds
def test_model_of_an_unsaved_kernel_asks_for_the_gram(kind, tmp_path):
    loaded = save_and_load(fit_kind(kind), tmp_path)
    with pytest.raises(ValueError, match="pass gram="):
        loaded.score(X)


@left_out_is_fine
@unsaved_kinds
def test_model_of_an_unsaved_kernel_is_scored_with_a_gram(kind, tmp_path):
    fitted = fit_kind(kind)
    loaded = save_and_load(fitted, tmp_path)
    assert loaded.score(X, gram=GRAM) == fitted.score(X, gram=GRAM)


class CubedKernel(PairwiseKernel):
    """Code of a user's, derived from a kernel that can be saved."""

    def evaluate(self, X, Y):
        return super().evaluate(X, Y) ** 3


def test_subclass_of_a_named_kernel_is_not_mistaken_for_it(tmp_path):
    with pytest.warns(UserWarning, match=r"does not hold kernel 'linear'.* \(it is a CubedKernel"):
        loaded = save_and_load(make(kernel=CubedKernel("linear")).fit(X), tmp_path)
    with pytest.raises(ValueError, match="pass gram="):
        loaded.score(X)


def test_names_of_scores_survive_in_a_pre_image(tmp_path):
    """And nothing warns of rows without names while it is read."""
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    fitted = PreImage(random_state=0).fit(frame, X)
    loaded = save_and_load(fitted, tmp_path)
    np.testing.assert_array_equal(loaded.predict(frame), fitted.predict(frame))


def test_the_device_of_a_kernel_is_not_that_of_its_reader(tmp_path):
    kernel = ProbabilisticClusterKernel(3, 2, reg_covar=1e-2, device="auto").fit(X)
    assert save_and_load(kernel, tmp_path).device == "cpu"
