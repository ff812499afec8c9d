"""Tests of model files: what is loaded is what was saved, and nothing but a model is loaded."""

import json
import os
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

import dkae.persistence
from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels import PairwiseKernel, Precomputed
from dkae.kernels.pairwise import pairwise_names
from dkae.persistence import ModelFileError

TINY = {"hidden_layer_sizes": (6,), "max_iter": 1, "epoch": 3, "random_state": 0}
X = np.random.default_rng(0).random((30, 5), dtype=np.float32)
GRAM = X @ X.T

indefinite_is_fine = pytest.mark.filterwarnings("ignore:.*not positive semi-definite")


def cube_of_inner_products(A, B):
    return (A @ B.T) ** 3


def make(**params):
    return DeepKernelizedAutoencoder(**({"n_components": 3} | TINY | params))


def save_and_load(model, folder):
    save(model, folder / "model.safetensors")
    return load(folder / "model.safetensors")


def assert_same_maps(loaded, model):
    codes = model.transform(X)
    np.testing.assert_array_equal(loaded.transform(X), codes)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))
    np.testing.assert_array_equal(loaded.gram(X), model.gram(X))


def as_json(params):
    """Return params but the device, which `load` is told, as JSON gives them back."""
    return json.loads(json.dumps({k: v for k, v in params.items() if k != "device"}))


def rewrite(path, *, weights=None, header=None, described=None):
    """Write a model file again with another part in place of its own."""
    with safe_open(path, "pt") as file:
        old_header = file.metadata()
    old_weights = load_file(path)
    new_header = old_header | (header or {})
    if described is not None:
        new_header["model"] = json.dumps(json.loads(old_header["model"]) | described)
    save_file(old_weights if weights is None else weights, path, metadata=new_header)


@pytest.fixture(scope="module")
def model():
    return make().fit(X)


@pytest.fixture
def path(model, tmp_path):
    """Return the path of a saved model, alone in its folder."""
    save(model, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


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
        {"kernel_params": {"a": [1, 2.5, None]}},
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


def fit_kind(kind, rows=X):
    """Fit a model with a kernel of that kind, on rows that the kernel may hold on to."""
    if kind == "gram":
        return make().fit(rows, gram=rows @ rows.T)
    kernels = {
        "name": "rbf",
        "callable": cube_of_inner_products,
        "lambda": lambda A, B: A @ B.T,
        "Gaussian process": RBF(2.0) + WhiteKernel(0.1),
        "Precomputed": Precomputed(rows @ rows.T, rows=rows),
    }
    return make(kernel=kernels[kind]).fit(rows)


UNSAVED_KINDS = ["callable", "lambda", "Gaussian process", "Precomputed", "gram"]
unsaved_kinds = pytest.mark.parametrize("kind", UNSAVED_KINDS)


@unsaved_kinds
def test_model_of_an_unsaved_kernel_maps(kind, tmp_path):
    fitted = fit_kind(kind)
    assert_same_maps(save_and_load(fitted, tmp_path), fitted)


@unsaved_kinds
def test_model_of_an_unsaved_kernel_asks_for_the_gram(kind, tmp_path):
    loaded = save_and_load(fit_kind(kind), tmp_path)
    with pytest.raises(ValueError, match="pass gram="):
        loaded.score(X)


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
    loaded = save_and_load(make(kernel=CubedKernel("linear")).fit(X), tmp_path)
    with pytest.raises(ValueError, match="pass gram="):
        loaded.score(X)


# --- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["name", *UNSAVED_KINDS])
def test_file_does_not_grow_with_the_rows(kind, tmp_path):
    for name, n_rows in {"few": 20, "many": 500}.items():
        rows = np.random.default_rng(0).random((n_rows, 5), dtype=np.float32)
        save(fit_kind(kind, rows), tmp_path / name)
    few, many = ((tmp_path / name).stat().st_size for name in ("few", "many"))
    assert abs(many - few) < 100  # the losses of the history may take more or fewer digits


def test_tied_weights_are_stored_once(tmp_path):
    save(make().fit(X), tmp_path / "tied")
    save(make(tied_weights=False).fit(X), tmp_path / "untied")
    n_tied, n_untied = (
        sum(tensor.numel() for tensor in load_file(tmp_path / name).values())
        for name in ("tied", "untied")
    )
    assert n_untied - n_tied == 5 * 6 + 6 * 3


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_file_mode_honours_the_umask(umask, mode, model, tmp_path):
    before = os.umask(umask)
    try:
        save(model, tmp_path / "m")
        after = os.umask(umask)
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == mode
    assert after == umask


def test_an_existing_file_is_replaced(model, path):
    save(make(n_components=2).fit(X), path)
    assert load(path).n_components == 2
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, RuntimeError])
def test_existing_file_survives_a_failed_write(error, model, path, monkeypatch):
    def write_half(weights, filename, metadata):
        filename.write_bytes(b"half")
        raise error

    before = path.read_bytes()
    monkeypatch.setattr(dkae.persistence, "save_file", write_half)
    with pytest.raises(error):
        save(model, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_first_write_leaves_nothing(model, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(dkae.persistence, "save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_named(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save(model, tmp_path / "nowhere/m")


def test_unfitted_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted: call fit before save"):
        save(make(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


# --- what is no model ----------------------------------------------------------------------------


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*nothing"):
        load(tmp_path / "nothing")


def test_unknown_device_is_refused(path):
    with pytest.raises(ValueError, match=r"device='cpuu'.*did you mean 'cpu'"):
        load(path, device="cpuu")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"{}" * 50])
def test_other_file_is_refused(content, tmp_path):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match="m is not a dkae model file"):
        load(tmp_path / "m")


def test_pickle_is_refused(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "m")
    with pytest.raises(ModelFileError, match="m is not a dkae model file"):
        load(tmp_path / "m")


@pytest.mark.parametrize("n_bytes", [4, 100, -1])
def test_truncated_file_is_refused(n_bytes, path):
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ModelFileError, match="is not a dkae model file"):
        load(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "dkae model 2"}])
def test_safetensors_file_of_something_else_is_refused(metadata, tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "m", metadata=metadata)
    with pytest.raises(ModelFileError, match="expected 'dkae model 1'"):
        load(tmp_path / "m")


def test_every_missing_tensor_is_noticed(path):
    weights = load_file(path)
    for name in weights:
        rewrite(path, weights={k: v for k, v in weights.items() if k != name})
        with pytest.raises(ModelFileError, match=rf"damaged[\s\S]*{name}"):
            load(path)


def test_a_tensor_too_many_is_refused(path):
    rewrite(path, weights=load_file(path) | {"surplus": torch.ones(1)})
    with pytest.raises(ModelFileError, match=r"damaged[\s\S]*surplus"):
        load(path)


def test_a_tensor_of_another_shape_is_refused(path):
    rewrite(path, weights=load_file(path) | {"_layers.0.bias": torch.ones(99)})
    with pytest.raises(ModelFileError, match=r"damaged[\s\S]*_layers\.0\.bias"):
        load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", "3"])
def test_damaged_description_is_refused(text, path):
    rewrite(path, header={"model": text})
    with pytest.raises(ModelFileError, match="is damaged or from another version"):
        load(path)


LAYER = {"n_in": 5, "n_out": 3, "activation": "relu", "output_activation": "relu", "tied": True}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("params", {"nonsense": 1}),
        ("params", []),
        ("attributes", {}),
        ("attributes", None),
        ("layers", []),
        ("layers", [{}]),
        ("layers", [LAYER | {"n_in": -1}]),
        ("kernel", {"nonsense": 1}),
        ("kernel", {}),
    ],
)
def test_wrong_part_of_the_description_is_refused(part, value, path):
    rewrite(path, described={part: value})
    with pytest.raises(ModelFileError, match="is damaged or from another version"):
        load(path)


def test_unknown_activation_is_refused(path):
    with safe_open(path, "pt") as file:
        layers = json.loads(file.metadata()["model"])["layers"]
    layers[0]["activation"] = "of a later version"
    rewrite(path, described={"layers": layers})
    with pytest.raises(ModelFileError, match="of a later version"):
        load(path)


def test_network_without_layers_is_refused(path):
    rewrite(path, weights={}, described={"layers": []})
    with pytest.raises(ModelFileError, match="is damaged or from another version"):
        load(path)
