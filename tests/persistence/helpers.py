"""Small models of every kind, and model files that are changed."""

import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels import Precomputed

TINY = {
    "network": "stacked",
    "hidden_layer_sizes": (6,),
    "max_iter": 1,
    "steps_per_epoch": 3,
    "random_state": 0,
}
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
