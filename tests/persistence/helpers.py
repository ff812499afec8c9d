"""Small models of every kind, and model files that are changed."""

import numpy as np

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, load, save
from dkae._support import safe_file
from dkae.decoders import MLPDecoder
from dkae.networks import Stack

X = np.random.default_rng(0).random((30, 5), dtype=np.float32)
TINY = {"max_iter": 1, "decoder_max_iter": 0, "steps_per_epoch": 3, "random_state": 0}
MLP = MLPDecoder((6,), max_iter=1, steps_per_epoch=2)


def make(**params):
    return DeepKernelizedAutoencoder(
        **({"n_components": 3, "network": Stack((6,))} | TINY | params)
    )


def nystroem(**params):
    return InvertibleNystroem(**({"n_components": 3, "random_state": 0} | params))


def kpca(**params):
    return KernelPCA(**({"n_components": 2, "random_state": 0} | params))


def cube_of_inner_products(A, B):
    return (A @ B.T) ** 3


def save_and_load(model, folder, **options):
    save(model, folder / "model.safetensors")
    return load(folder / "model.safetensors", **options)


def assert_same_maps(loaded, model, rows=X):
    codes = model.transform(rows)
    np.testing.assert_array_equal(loaded.transform(rows), codes)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))


def rewrite(path, change):
    """Change the JSON and the tensors of a file, and write it again with a right checksum."""
    content = safe_file.read(path)
    change(content)
    path.write_bytes(safe_file.to_bytes(content.state, content.tensors))


def fields_of(state, kind):
    """Return the fields of all objects of a kind in the JSON of a file."""
    found = []
    if isinstance(state, dict):
        if isinstance(state.get("object"), list) and state["object"][0] == kind:
            found.append(state["object"][1])
        state = list(state.values())
    for part in state if isinstance(state, list) else []:
        found += fields_of(part, kind)
    return found


# --- changes of the content of a file ------------------------------------------------------------


def with_fields(kind, **values):
    """Set fields of all objects of a kind."""
    return lambda content: [fields.update(values) for fields in fields_of(content.state, kind)]


def without(kind, name):
    """Take a field away."""
    return lambda content: [fields.pop(name) for fields in fields_of(content.state, kind)]


def fill(ending, value, at=slice(None)):
    """Set entries of the tensors whose names end so."""

    def change(content):
        for tensor in named(content.tensors, ending).values():
            tensor.view(-1)[at] = value

    return change


def put(ending, value):
    """Put another tensor in place of those whose names end so."""
    return lambda content: content.tensors.update(
        dict.fromkeys(named(content.tensors, ending), value)
    )


def named(tensors, ending):
    found = {name: tensor for name, tensor in tensors.items() if name.endswith(ending)}
    assert found, sorted(tensors)
    return found
