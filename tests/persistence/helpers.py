"""Small models of every kind, and model files that are changed."""

import json

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, WhiteKernel

from dkae import DeepKernelizedAutoencoder, load, save
from dkae._support.container import read_container, write_container
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


def read(path):
    """Return the text and the tensors of a model file, of any format."""
    content = read_container(path, lambda metadata: False)
    content.metadata.pop("sha256", None)
    return content.metadata, content.tensors


def rewrite(path, *, change=None, tensors=None, metadata=None):
    """Write a model file again, with a right checksum, after a change.

    `change` is a function that changes the described state in place, or returns another.
    """
    old_metadata, old_tensors = read(path)
    new_metadata = old_metadata | (metadata or {})
    if change is not None:
        name = "state" if "state" in old_metadata else "model"
        state = json.loads(old_metadata[name])
        changed = change(state)
        new_metadata[name] = json.dumps(state if changed is None else changed)
    write_container(path, new_metadata, old_tensors if tensors is None else tensors)


def state_of(described, *names):
    """Return the state of an object in a described state, such as that of learnt, network_."""
    found = described["dict"]["model"]["object"][1]
    for name in names:
        while set(found) <= {"dict", "object"} and len(found) == 1:
            found = found["dict"] if "dict" in found else found["object"][1]
        found = found[name]
    while isinstance(found, dict) and len(found) == 1 and set(found) <= {"dict", "object"}:
        found = found["dict"] if "dict" in found else found["object"][1]
    return found


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


UNSAVED_KINDS = ["callable", "lambda", "Precomputed", "gram"]
#: Of those, the ones that a user has to be told of: a Gram matrix is in no fitted model either.
left_out_is_fine = pytest.mark.filterwarnings("ignore:.* does not hold ")
unsaved_kinds = pytest.mark.parametrize("kind", UNSAVED_KINDS)
