"""Files that mean harm, with a right checksum. As a program: load each, and say what it took."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import sys
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from dkae import load, save
from dkae._runtime import container
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    center,
    normalize,
)
from dkae.networks import ConvolutionalAutoencoder, ResidualAutoencoder
from dkae.persistence import ModelFileError
from dkae.spectral import KernelPCA, PreImage
from tests.persistence.helpers import X, make, read, rewrite, state_of

ZEROS = "0" * 64
BIG = 2**40


# --- files by the byte ---------------------------------------------------------------------------


def with_checksum(header, payload=b""):
    """Return a file with this header, an object or JSON, behind the checksum that it must have."""
    text = header if isinstance(header, str) else json.dumps(header, separators=(",", ":"))
    begin = f'{{"__metadata__":{{"sha256":"{ZEROS}","format":"dkae model 3","state":"null"}}'
    raw = (begin + ("," + text[1:] if text[1:] != "}" else "}")).encode()
    file = len(raw).to_bytes(8, "little") + raw + payload
    return file.replace(ZEROS.encode(), hashlib.sha256(file).hexdigest().encode(), 1)


def tensor(shape, begin=0, end=4, dtype="F32", **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]} | more


HEADERS = {
    "a petabyte": {"a": tensor([2**50 // 4])},
    "a petabyte with its offsets": {"a": tensor([2**48], 0, 2**50)},
    "a product that overflows": {"a": tensor([2**32, 2**32, 2**2])},
    "a product that overflows to four": {"a": tensor([2**62, 4, 1])},
    "a negative size": {"a": tensor([-1])},
    "two negative sizes": {"a": tensor([-1, -1])},
    "a size that is a float": {"a": tensor([1.0])},
    "a size that is true": {"a": tensor([True])},
    "a size that is text": {"a": tensor(["1"])},
    "a shape that is none": {"a": tensor(None)},
    "17 dimensions": {"a": tensor([1] * 17)},
    "nothing of a huge size": {"a": tensor([0, 2**62, 2**62], 0, 0), "b": tensor([1])},
    "nothing of 2^33": {"a": tensor([2**33, 0], 0, 0), "b": tensor([1])},
    "negative offsets": {"a": tensor([1], -4, 0)},
    "offsets the wrong way round": {"a": tensor([1], 4, 0)},
    "three offsets": {"a": tensor([1]) | {"data_offsets": [0, 4, 4]}},
    "offsets beyond the end": {"a": tensor([1], 4, 8)},
    "overlapping tensors": {"a": tensor([1]), "b": tensor([1])},
    "partly overlapping tensors": {"a": tensor([4], dtype="U8"), "b": tensor([2], 2, 4, "U8")},
    "a gap": {"a": tensor([1], 0, 1, "U8"), "b": tensor([1], 3, 4, "U8")},
    "a gap at the beginning": {"a": tensor([3], 1, 4, "U8")},
    "a gap at the end": {"a": tensor([3], 0, 3, "U8")},
    "no tensors for the bytes": {},
    "a tensor at an odd place": {
        "a": tensor([1], 0, 1, "U8"), "b": tensor([1], 1, 3, "F16"), "c": tensor([1], 3, 4, "U8"),
    },
    "an unknown type": {"a": tensor([1], dtype="F4")},
    "a type that is none": {"a": tensor([1], dtype=None)},
    "a type that is a list": {"a": tensor([1], dtype=["F32"])},
    "a tensor with more to say": {"a": tensor([1], more=1)},
    "a tensor with less to say": {"a": {"dtype": "F32", "shape": [1]}},
    "a tensor that is a list": {"a": [1, 2, 3]},
    "a boolean of 7": {"a": tensor([4], dtype="BOOL")},
}  # fmt: skip
TEXTS = {
    "a hundred thousand tensors": json.dumps(
        {str(i): tensor([0], 4 if i else 0, 4) for i in range(100_000)}, separators=(",", ":")
    ),
    "a tensor twice": '{"a":' + json.dumps(tensor([1])) + ',"a":' + json.dumps(tensor([1])) + "}",
    "metadata twice": '{"__metadata__":{}}',
    "a header of open brackets": '{"a":' + "[" * 100_000,
    "a header of nested lists": '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    "a header of nested objects": '{"a":' + '{"a":' * 50_000 + "1" + "}" * 50_000 + "}",
    "a header of a million lists": '{"a":[' + "[]," * 1_000_000 + "[]]}",
    "a size of NaN": '{"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,4]}}',
    "a size of Infinity": '{"a":{"dtype":"F32","shape":[Infinity],"data_offsets":[0,4]}}',
    "a size of a million digits": '{"a":{"shape":[' + "1" * 1_000_000 + "]}}",
    "a float of a million digits": '{"a":{"shape":[0.' + "1" * 1_000_000 + "]}}",
    "a name of 20 megabytes": '{"' + "a" * 20_000_000 + '":1}',
}


def other_files():
    """Return files of other kinds by name, and no file at all."""
    arrays, module = io.BytesIO(), io.BytesIO()
    np.savez(arrays, a=np.ones(3))
    torch.save({"a": torch.ones(3)}, module)
    return {
        "an empty file": b"",
        "eight bytes": b"\x08" + b"\0" * 7,
        "a header longer than the file": (2**62).to_bytes(8, "little") + b"{}",
        "a header of all 64 bits": b"\xff" * 64,
        "a header of 33 megabytes": (33 * 2**20).to_bytes(8, "little") + b" " * 33 * 2**20,
        "a pickle": pickle.dumps({"a": 1}),
        "a pickle that runs": b"cos\nsystem\n(S'exit 3'\ntR.",
        "an npz": arrays.getvalue(),
        "a module of torch": module.getvalue(),
        "a text": b"hello " * 100,
    }


# --- states --------------------------------------------------------------------------------------


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

#: For each model, changes of its state, or of its tensors.
CHANGES = {
    "stack": {
        "a layer of 15,000 squared": widths(0, n_in=15_000, n_out=15_000),
        "a layer of 50,000 squared": widths(0, n_in=50_000, n_out=50_000),
        "a layer of 2^31 squared": widths(0, n_in=2**31, n_out=2**31),
        "a layer of 2^63": widths(0, n_in=2**63),
        "a layer of a negative width": widths(0, n_out=-6),
        "a layer of half a width": widths(0, n_out=6.5),
        "a layer of text": widths(0, n_out="6"),
        "a layer with a generator": widths(0, generator=1),
        "a layer of an unknown activation": widths(0, activation="os.system"),
        "a layer that does not fit the next": widths(1, n_in=7),
        "a layer that does not fit its weights": widths(0, n_out=7),
        "a million layers": layers(lambda described: [{"dict": LAYER}] * 70_000),
        "no layers": layers(lambda described: []),
        "layers that are none": layers(lambda described: [1, 2]),
        "layers in another order": layers(lambda described: described[::-1]),
        "a linear path of NaN": set_in(*NETWORK, linear_path={"float": "nan"}),
        "a linear path without weights": set_in(*NETWORK, linear_path=0.5),
        "a state without layers": drop(*NETWORK, "layers"),
        "a state without weights": drop(*NETWORK, "weights"),
        "a state without params": lambda state: state_of(state).pop("params"),
        "a state without learnt": lambda state: state_of(state).pop("learnt"),
        "__class__ as learnt": set_learnt(__class__="x"),
        "__dict__ as learnt": set_learnt(__dict__={"dict": {}}),
        "fit as learnt": set_learnt(fit=1),
        "transform as learnt": set_learnt(transform=1),
        "_maps as learnt": set_learnt(_maps=1),
        "an unknown parameter": set_params(nonsense=1),
        "a network of numbers": set_params(network=3),
        "row_shape_ of 10^9": set_learnt(row_shape_={"tuple": [10**9]}, n_features_in_=10**9),
        "row_shape_ of 6": set_learnt(row_shape_={"tuple": [6]}),
        "row_shape_ of many": set_learnt(row_shape_={"tuple": [10**6] * 30}),
        "row_shape_ of text": set_learnt(row_shape_="5"),
        "n_features_in_ of 10^9": set_learnt(n_features_in_=10**9),
        "n_features_in_ of text": set_learnt(n_features_in_="5"),
        "n_components_ of 10^9": set_learnt(n_components_=10**9),
        "n_components_ of 4": set_learnt(n_components_=4),
        "n_components_ of text": set_learnt(n_components_="3"),
        "kernel_scale_ of NaN": set_learnt(kernel_scale_={"float": "nan"}),
        "kernel_scale_ of text": set_learnt(kernel_scale_="1"),
        "a history that is text": set_learnt(history_="x"),
        "a history of numbers": set_learnt(history_=[1, 2]),
        "n_iter_ that is text": set_learnt(n_iter_="x"),
        "alignment_ that is text": set_learnt(alignment_="x"),
        "no network": drop("learnt", "network_"),
        "a network that is none": set_learnt(network_=None),
        "no scaling": drop("learnt", "scaling_"),
        "a scaling that is a network": set_learnt(scaling_={"dict": {}}),
        "feature names of another number": set_learnt(feature_names_in_=["a", "b"]),
        "feature names that are numbers": set_learnt(feature_names_in_=[1, 2, 3, 4, 5]),
        "a fill that is text": set_learnt(fill_="x"),
        "a kernel that is text": set_learnt(kernel_="rbf"),
        "a kernel by an unknown name": set_learnt(kernel_=of_kernel("PairwiseKernel", metric="x")),
        "a kernel of NaN": set_in(*KERNEL, "learnt", gamma_={"float": "nan"}),
        "a kernel of a text": set_in(*KERNEL, "learnt", gamma_="1"),
        "a kernel without its gamma": drop(*KERNEL, "learnt", "gamma_"),
        "a kernel of no kernels": set_learnt(
            kernel_=of_kernel("SumKernel", {"kernels_": [], "weights_": []}, kernels=[])
        ),
        "a product of no kernels": set_learnt(
            kernel_=of_kernel("ProductKernel", {"kernels_": []}, kernels=[])
        ),
        "a sum of numbers": set_learnt(
            kernel_=of_kernel("SumKernel", {"kernels_": [1], "weights_": [1.0]}, kernels=[1])
        ),
        "a sum of fewer weights": set_learnt(
            kernel_=of_kernel(
                "SumKernel", {"kernels_": [of_kernel(*RBF)], "weights_": []}, kernels=[]
            )
        ),
        "a negative weight": set_learnt(
            kernel_=of_kernel(
                "SumKernel", {"kernels_": [of_kernel(*RBF)], "weights_": [-1.0]}, kernels=[]
            )
        ),
        "a sum that is not fitted": set_learnt(kernel_=of_kernel("SumKernel", kernels=[])),
        "a cosine of nothing": set_learnt(
            kernel_=of_kernel("NormalizedKernel", {"kernel_": None}, kernel=None)
        ),
        "a kernel of a process that is text": set_learnt(
            kernel_=of_kernel("GaussianProcessKernel", kernel="RBF")
        ),
        "a kernel of a process of text": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process RBF", length_scale="x"),
            )
        ),
        "a kernel of a process of zero": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process RBF", length_scale=0.0),
            )
        ),
        "a kernel of a process of six": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process RBF", length_scale=[1.0] * 6),
            )
        ),
        "an unknown name within a process": set_learnt(
            kernel_=of_kernel(
                "GaussianProcessKernel",
                kernel=of_object("sklearn gaussian_process PairwiseKernel", metric="os.system"),
            )
        ),
        "a transformer that is text": set_learnt(
            kernel_=of_kernel("TransformerKernel", transformer="x")
        ),
        "values of another kernel's shape": put("kernel_values", torch.zeros(3, 3).double()),
        "values in one dimension": put("kernel_values", torch.zeros(8).double()),
        "values of NaN": fill("kernel_values", torch.nan),
        "weights of NaN": fill("0.weight", torch.nan, 0),
        "weights of infinity": fill("1.bias", torch.inf, 0),
        "weights of another type": put("1.bias", torch.zeros(3, dtype=torch.float64)),
        "a mean of NaN": fill("scaling_.mean", torch.nan, 0),
        "a mean of another width": put("scaling_.mean", torch.zeros(4)),
        "a mean of a huge empty shape": put("scaling_.mean", torch.zeros(0, 2**31)),
        "a scale of zero": fill("scaling_.scale", 0),
        "a scale that is negative": fill("scaling_.scale", -1),
    },
    "layer": {
        "15,000 hidden units": set_in(*NETWORK, hidden_layer_sizes=[15_000]),
        "hidden units of 2^40": set_in(*NETWORK, hidden_layer_sizes=[BIG]),
        "a million hidden layers": set_in(*NETWORK, hidden_layer_sizes=[6] * 100_000),
        "hidden layers of text": set_in(*NETWORK, hidden_layer_sizes=["6"]),
        "an unknown output": set_in(*NETWORK, output_activation="x"),
        "an output that is none": set_in(*NETWORK, output_activation=None),
        "no similarity": set_in(*NETWORK, similarity=None),
        "an unknown formula": set_in(*NETWORK, "similarity", metric="chi2"),
        "a formula of other parameters": set_in(
            *NETWORK, "similarity", params={"dict": {"gamma": 1.0, "degree": 2}}
        ),
        "a formula of NaN": set_in(
            *NETWORK, "similarity", params={"dict": {"gamma": {"float": "nan"}}}
        ),
        "a formula of a negative gamma": set_in(
            *NETWORK, "similarity", params={"dict": {"gamma": -1e9}}
        ),
        "rows of NaN": fill("similarity.rows", torch.nan, 0),
        "rows of another width": put("similarity.rows", torch.zeros(30, 6)),
        "fewer rows than weights": put("similarity.rows", torch.zeros(29, 5)),
        "rows of another type": put("similarity.rows", torch.zeros(30, 5).double()),
        "directions of a huge empty shape": put("directions", torch.zeros(2**31, 0)),
        "a code scale of zero": fill("code_scale", 0),
        "no scaling of the output": set_in(*NETWORK, "scaling", scales_output="x"),
        "a scaling of another width": put("scaling.mean", torch.zeros(4)),
    },
    "evaluated layer": {
        "variances that are negative": fill("covariances", -1, 0),
        "variances of zero": fill("covariances", 0, 0),
        "weights that are negative": fill("mixtures_.weights", -1, 0),
        "weights that do not sum to one": fill("mixtures_.weights", 1e9),
        "sizes that do not sum": fill("mixtures_.sizes", 1, 0),
        "sizes that overflow": fill("mixtures_.sizes", 2**62),
        "sizes that are negative": fill("mixtures_.sizes", -1, 0),
        "no mixtures": set_kind("ProbabilisticClusterKernel", "learnt", mixtures_=None),
        "means of NaN": fill("mixtures_.means", torch.nan, 0),
        "means of another width": put("mixtures_.means", torch.zeros(8, 3).double()),
        "another kind of covariance": set_kind(
            "ProbabilisticClusterKernel", "params", covariance_type="full"
        ),
        "more mixtures than there are": set_kind(
            "ProbabilisticClusterKernel", "learnt", n_mixtures_=10**9
        ),
        "a wider kernel": set_kind("ProbabilisticClusterKernel", "learnt", n_features_in_=6),
        "a kernel of 10^9 features": set_kind(
            "ProbabilisticClusterKernel", "learnt", n_features_in_=10**9
        ),
        "an unknown normalisation": set_kind("ProbabilisticClusterKernel", "params", normalize="x"),
        "a normalisation by what was not learnt": set_kind(
            "ProbabilisticClusterKernel", "params", normalize="max"
        ),
        "a device of its own": set_kind("ProbabilisticClusterKernel", "params", device="nonsense"),
        "a basis beyond the rows": fill("_basis", 99, 0),
        "a basis of fractions": put("_basis", torch.tensor([0.5, 1, 2, 3, 4])),
    },
    "residual": {
        "a million blocks": set_in(*NETWORK, "config", n_blocks=10**6),
        "blocks of text": set_in(*NETWORK, "config", n_blocks="1"),
        "a width of 50,000": set_in(*NETWORK, "config", width=50_000),
        "a width of 2^60": set_in(*NETWORK, "config", width=2**60),
        "a shape of 10^9": set_in(*NETWORK, "config", shape=[10**9]),
        "a generator": set_in(*NETWORK, "config", generator=1),
        "another parameter": set_in(*NETWORK, "config", nonsense=1),
    },
    "convolution": {
        "a million channels": set_in(*NETWORK, "config", channels=[2] * 100_000),
        "channels of 10^9": set_in(*NETWORK, "config", channels=[10**9]),
        "an image of 10^6 squared": huge_image,
        "an image of other rows": set_learnt(row_shape_={"tuple": [1, 6, 9]}),
    },
    "forest": {
        "a forest with a cycle": fill("forest.left", 0, 0),
        "a child in another tree": fill("forest.right", 10**6, 0),
        "a child that is negative": fill("forest.right", -5, 0),
        "features that rows have not": fill("forest.feature", 5, 0),
        "negative features": fill("forest.feature", -1, 0),
        "thresholds of NaN": fill("forest.threshold", torch.nan, 0),
        "trees that do not fill the forest": fill("forest.bounds", 1, -1),
        "trees in descending order": fill("forest.bounds", 10**6, 1),
        "trees of fractions": put("forest.left", torch.tensor([0.5])),
        "no forest": set_kind("ForestKernel", "learnt", forest_=None),
        "a forest of 10^9 features": set_kind("ArrayForest", None, n_features_in_=10**9),
        "a forest of text": set_kind("ArrayForest", None, n_features_in_="5"),
        "a forest of more": set_kind("ArrayForest", None, more=1),
    },
    "KernelPCA": {
        "coefficients of NaN": fill("model.learnt.coefficients_", torch.nan, 0),
        "coefficients of other rows": put("model.learnt.coefficients_", torch.zeros(9, 2).double()),
        "no training rows": set_learnt(X_fit_=None),
        "training rows of another width": set_learnt(n_features_in_=6),
        "10^9 features": set_learnt(n_features_in_=10**9),
        "more components": set_learnt(n_components_=3),
        "components of text": set_learnt(n_components_="2"),
        "a solver that is none": set_params(solver="x"),
        "an inverse that is a kernel": set_learnt(preimage_=of_kernel(*RBF)),
        "an inverse of other components": set_kind("PreImage", "learnt", n_features_in_=3),
        "an inverse of 10^9 components": set_kind("PreImage", "learnt", n_features_in_=10**9),
        "an inverse without regression": set_kind("PreImage", "learnt", regression_="x"),
        "an inverse of NaN": fill("dual_coef_", torch.nan, 0),
        "an inverse of other rows": put("mean_", torch.zeros(3)),
        "an inverse by the kernel x": set_kind("sklearn KernelRidge", "params", kernel="x"),
        "a parameter of scikit-learn's that is none": set_kind(
            "sklearn KernelRidge", "params", nonsense=1
        ),
    },
    "KernelPCA of features": {
        "features of another number": put("model.learnt.coefficients_", torch.zeros(9, 2).double()),
        "features of 10^9 inputs": set_learnt(n_features_in_=10**9),
        "a sampler of 10^10 inputs": set_kind(
            "sklearn RBFSampler", "learnt", n_features_in_=10**10
        ),
        "a sampler of no inputs": set_kind("sklearn RBFSampler", "learnt", n_features_in_=0),
        "a sampler of NaN": fill("random_weights_", torch.nan, 0),
        "__class__ of a sampler": set_kind("sklearn RBFSampler", "learnt", __class__=1),
        "transform of a sampler": set_kind("sklearn RBFSampler", "learnt", transform=1),
    },
    "Nystroem": {
        "a million workers": set_kind("sklearn Nystroem", "params", n_jobs=10**6),
        "a kernel that is none": set_kind("sklearn Nystroem", "params", kernel="x"),
        "components beyond the data": fill("normalization_", torch.nan, 0),
    },
    "centred": {
        "references of another width": put("reference_", torch.zeros(30, 4)),
        "no references": put("reference_", torch.zeros(0, 5)),
        "references of NaN": fill("reference_", torch.nan, 0),
        "a mean that is text": set_kind("CenteredKernel", "learnt", mean_="x"),
    },
    "pipeline": {
        "a scale of nothing": fill("scale_", 0, 0),
        "a variance of another width": put("var_", torch.ones(3).double()),
        "a scaler of 10^9 features": set_kind(
            "sklearn StandardScaler", "learnt", n_features_in_=10**9
        ),
    },
    "normaliser": {
        "a scaler of 10^10 features": set_kind(
            "sklearn Normalizer", "learnt", n_features_in_=10**10
        ),
        "an unknown norm": set_kind("sklearn Normalizer", "params", norm="x"),
    },
}


def base_models():
    labels = np.arange(len(X)) % 3
    forest = RandomForestClassifier(3, random_state=0).fit(X, labels)
    pck = ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2)
    image = np.random.default_rng(0).random((20, 1, 6, 5), dtype=np.float32)

    def flat(A, B):
        return A.reshape(len(A), -1) @ B.reshape(len(B), -1).T

    def kpca(kernel, **params):
        return KernelPCA(2, kernel=kernel, **params).fit(X)

    def residual(*args):
        return ResidualAutoencoder(*args, width=8, n_blocks=1)

    return {
        "stack": make().fit(X),
        "layer": make(network="kernel_layer").fit(X),
        "evaluated layer": make(network="kernel_layer", kernel=pck).fit(X),
        "residual": make(network=residual).fit(X),
        "convolution": make(network=ConvolutionalAutoencoder, kernel=flat).fit(image),
        "forest": kpca(ForestKernel(forest)),
        "KernelPCA": kpca("rbf", preimage=PreImage(random_state=0)),
        "KernelPCA of features": kpca(TransformerKernel(RBFSampler(n_components=6).fit(X))),
        "Nystroem": kpca(TransformerKernel(Nystroem(n_components=6).fit(X))),
        "centred": make(kernel=normalize(center(PairwiseKernel("rbf")))).fit(X),
        "pipeline": make_pipeline(StandardScaler(), make(kernel=gp.RBF())).fit(X),
        "normaliser": make_pipeline(Normalizer(), make()).fit(X),
    }


def write_all(folder):
    """Write all files, and return their names."""
    for name, header in (HEADERS | TEXTS).items():
        (folder / name).write_bytes(with_checksum(header, b"\7\7\7\7"))
    for name, content in other_files().items():
        (folder / name).write_bytes(content)
    models = base_models()
    for kind, model in models.items():
        save(model, folder / "base")
        tensors = read(folder / "base")[1]
        if kind == "stack":
            for name, text in STATES.items():
                (folder / safe(name)).write_bytes((folder / "base").read_bytes())
                rewrite(folder / safe(name), metadata={"state": text})
        for name, change in CHANGES[kind].items():
            path = folder / safe(f"{kind}: {name}")
            path.write_bytes((folder / "base").read_bytes())
            if change.__qualname__.startswith(("fill", "put")):
                rewrite(path, tensors=change(dict(tensors)))
            else:
                rewrite(path, change=change)
    (folder / "base").unlink()
    (folder / "a folder").mkdir()
    os.mkfifo(folder / "a pipe")
    (folder / "a loop").symlink_to(folder / "a loop")
    return sorted(path.name for path in folder.iterdir())


def safe(name):
    return name.replace("/", "|").replace("\0", "0")


# --- the program ---------------------------------------------------------------------------------


def memory(field):
    """Return a number of kilobytes that the system has of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1])
    raise LookupError(field)


def tried(path):
    """Return what became of loading a file, in how many seconds and megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), time.process_time()
    try:
        load(path)
        result = "loaded"
    except ModelFileError as error:
        result = f"refused: {error}"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - start
    return result, seconds, (memory("VmHWM") - before) / 1024


def main(folder):
    warnings.simplefilter("ignore")
    with (
        mock.patch.object(container, "MAX_SIGNS", 2**60),  # who means harm keeps no limits
        mock.patch.object(os, "fsync"),
    ):
        names = write_all(folder)
    for name in names:
        result, seconds, megabytes = tried(folder / name)
        print(json.dumps([name, result, seconds, megabytes]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
