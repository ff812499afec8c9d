"""States that are none, and ways to change the state of a model."""

from __future__ import annotations

import json

from tests.persistence.helpers import state_of


def deep(n, begin, end, middle="null"):
    return begin * n + middle + end * n


#: What is in place of the whole state, as text.
STATES = {
    "a state 100,000 levels deep": deep(100_000, "[", "]"),
    "a state 100,000 tuples deep": deep(100_000, '{"tuple":[', "]}"),
    "a state 300 tuples deep": deep(300, '{"tuple":[', "]}"),
    "a state of a million lists": "[" + "[]," * 999_999 + "[]]",
    "a state of a key twice": '{"dict":{"model":null},"dict":{"model":null}}',
    "a state of NaN": '{"dict":{"model":NaN,"kernel_values":null}}',
    "a state of Infinity": '{"dict":{"model":-Infinity,"kernel_values":null}}',
    "a state of 1e999": '{"dict":{"model":1e999,"kernel_values":null}}',
    "a state of a million digits": "1" * 1_000_000,
    "a state of nothing": "null",
    "a state that is text": '"model"',
    "a model that is none": '{"dict":{"model":null,"kernel_values":null}}',
    "a model that is a list": '{"dict":{"model":[],"kernel_values":null}}',
    "a model that is a scaler": (
        '{"dict":{"model":{"object":["sklearn Normalizer",{"params":{"dict":{}},'
        '"learnt":{"dict":{}}}]},"kernel_values":null}}'
    ),
    "a model within itself": '{"dict":{"model":{"again":0},"kernel_values":null}}',
    "a cycle": '{"dict":{"model":{"object":["KernelPCA",{"params":{"again":0}}]}}}',
    "a kernel that is not fitted": (
        '{"dict":{"model":{"object":["ProbabilisticClusterKernel",{"params":{"dict":{}},'
        '"learnt":{"dict":{}}}]},"kernel_values":null}}'
    ),
    **{
        f"the kind {kind}": json.dumps({"dict": {"model": {"object": [kind, {}]}}})
        for kind in (
            "os.system", "../../x", "builtins.eval", "sklearn.svm.SVC", "sklearn Pickle", "", "\0",
            "__class__", "torch.nn.Linear", "Kernel",
        )
    },
}  # fmt: skip


def set_learnt(**values):
    return lambda state: state_of(state, "learnt").update(values)


def set_params(**values):
    return lambda state: state_of(state, "params").update(values)


def set_in(*names, **values):
    return lambda state: state_of(state, *names).update(values)


def states(described, kind):
    """Return the states of all objects of a kind, wherever they are."""
    found = []
    if isinstance(described, dict):
        if isinstance(described.get("object"), list) and described["object"][0] == kind:
            found.append(described["object"][1])
        described = list(described.values())
    for part in described if isinstance(described, list) else []:
        found += states(part, kind)
    return found


def set_kind(kind, part, **values):
    """Return a change of what the objects of a kind have learnt, or of their parameters."""

    def change(described):
        found = states(described, kind)
        assert found, kind
        for state in found:
            (state[part]["dict"] if part else state).update(values)

    return change


def drop(*names):
    def change(state):
        del state_of(state, *names[:-1])[names[-1]]

    return change


def layers(change):
    """Change the described layers of a stack."""

    def change_state(state):
        network = state_of(state, "learnt", "network_")
        network["layers"] = change(network["layers"])

    return change_state


def widths(i, **values):
    def change(described):
        described[i]["dict"].update(values)
        return described

    return layers(change)


def fill(pattern, value, at=None):
    """Return a change of the tensors whose name ends so."""

    def change(tensors):
        names = [name for name in tensors if name.endswith(pattern)]
        assert names, sorted(tensors)
        for name in names:
            tensors[name] = tensors[name].clone()
            flat = tensors[name].view(-1)
            flat[slice(None) if at is None else at] = value
        return tensors

    return change


def put(pattern, value):
    """Return a change that puts another tensor in place of one whose name ends so."""

    def change(tensors):
        names = [name for name in tensors if name.endswith(pattern)]
        assert names, sorted(tensors)
        return tensors | dict.fromkeys(names, value)

    return change


def huge_image(state):
    state_of(state, *NETWORK, "config")["shape"] = [1, 10**6, 10**6]
    state_of(state, "learnt")["row_shape_"] = {"tuple": [1, 10**6, 10**6]}


def of_object(kind, **state):
    return {"object": [kind, state]}


def of_kernel(kind, learnt=None, **params):
    return of_object(kind, params={"dict": params}, learnt={"dict": learnt or {}})


RBF = ("PairwiseKernel", {"gamma_": 1.0})
NETWORK, KERNEL = ("learnt", "network_"), ("learnt", "kernel_")
LAYER = {"n_in": 5, "n_out": 6, "activation": "relu", "output_activation": "relu", "tied": True}
