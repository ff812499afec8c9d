"""Small models of every kind, and model files that are changed."""

import copy

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


def rewrite(path, *, change=None, tensors=None):
    """Write a file again, with a right checksum, after changes of its JSON and its tensors."""
    content = safe_file.read(path)
    state, found = copy.deepcopy(content.state), dict(content.tensors)
    if change is not None:
        change(state)
    if tensors is not None:
        tensors(found)
    path.write_bytes(safe_file.to_bytes(state, found))


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


def with_fields(kind, **values):
    """Return a change of the fields of all objects of a kind; None takes a field away."""

    def change(state):
        found = fields_of(state, kind)
        assert found, kind
        for fields in found:
            fields.update(values)

    return change


def without(kind, name):
    return lambda state: [fields.pop(name) for fields in fields_of(state, kind)]


def of_tensors(change):
    """Mark a change that is one of tensors."""
    change.is_of_tensors = True
    return change


def named(tensors, ending):
    names = [name for name in tensors if name.endswith(ending)]
    assert names, sorted(tensors)
    return names


def fill(ending, value, at=None):
    """Return a change of the entries of tensors whose names end so."""

    def change(tensors):
        for name in named(tensors, ending):
            tensors[name] = tensors[name].clone()
            tensors[name].view(-1)[slice(None) if at is None else at] = value

    return of_tensors(change)


def put(ending, value):
    """Return a change that puts another tensor in place of those whose names end so."""
    return of_tensors(lambda t: t.update(dict.fromkeys(named(t, ending), value)))
