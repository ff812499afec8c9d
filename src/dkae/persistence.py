"""A fitted model as one safe file: the weights in safetensors, everything else as JSON within it.

Nothing in the file is ever executed, unlike a pickle. A kernel that is code of the user's (a
callable, a Gaussian-process kernel, a Gram matrix) cannot stand in such a file: the loaded model
maps there and back all the same, and `score` asks for the Gram matrix.

A pipeline of a `StandardScaler` and a model is one file too, in a format that earlier versions
refuse: they would leave the scaler out.
"""

import contextlib
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.torch import save_file
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from dkae import __version__
from dkae._runtime.devices import choose_device
from dkae._runtime.files import replacing
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel
from dkae.networks import (
    Autoencoder,
    ConvolutionalAutoencoder,
    Layer,
    ResidualAutoencoder,
    StackedNetwork,
)

__all__ = ["ModelFileError", "load", "replacing", "save"]

FORMAT = "dkae model 1"
#: Of a file with a scaler.
PIPELINE_FORMAT = "dkae pipeline 1"

#: Learned attributes that are plain data.
_PLAIN_ATTRIBUTES = ("history_", "kernel_scale_", "n_features_in_", "n_iter_")


#: What a StandardScaler has learnt.
_SCALER_ATTRIBUTES = ("mean_", "var_", "scale_", "n_features_in_", "n_samples_seen_")

#: Networks besides the stack, by name; `config` has the arguments that build one.
_NETWORKS: dict[str, Any] = {
    kind.__name__: kind for kind in (ConvolutionalAutoencoder, ResidualAutoencoder)
}


class ModelFileError(ValueError):
    """A file is not a dkae model, or is damaged."""


def save(model: DeepKernelizedAutoencoder | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file; one of that name is replaced only when all is written.

    The model may be the second step of a pipeline whose first one is a `StandardScaler`.
    """
    pipeline, model = _split(model)
    if not isinstance(model, DeepKernelizedAutoencoder):
        raise ValueError(
            f"model is a {type(model).__name__}, and only a DeepKernelizedAutoencoder, alone or "
            "after a StandardScaler, has a model file: pass the one in it, or pickle the whole"
        )
    if not hasattr(model, "network_"):
        raise ValueError("model is not fitted: call fit before save")
    header = {"format": FORMAT, "dkae": __version__, "model": json.dumps(_describe(model))}
    if pipeline is not None:
        header |= {"format": PIPELINE_FORMAT, "pipeline": json.dumps(_describe_pipeline(pipeline))}
    weights = {name: t.detach().cpu() for name, t in model.network_.state_dict().items()}
    with replacing(Path(path)) as temporary:
        try:
            save_file(weights, temporary, metadata=header)
        except safetensors.SafetensorError as error:  # a full disk, for example
            raise OSError(f"{path} could not be written: {error}") from error


def load(
    path: str | os.PathLike[str], *, device: str = "cpu"
) -> DeepKernelizedAutoencoder | Pipeline:
    """Read a model, or a pipeline, from a file that `save` wrote; its network runs on `device`."""
    choose_device(device)
    path = Path(path)
    header, weights = _read(path)
    if header.get("format") not in (FORMAT, PIPELINE_FORMAT):
        raise ModelFileError(
            f"{path} is a safetensors file of format {header.get('format')!r}, expected "
            f"{FORMAT!r}: pass a file that dkae.save or `dkae fit` wrote"
        )
    try:
        model = _rebuild(json.loads(header["model"]), weights, device)
        if header["format"] == FORMAT:
            return model
        return _rebuild_pipeline(json.loads(header["pipeline"]), model)
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged or from another version: {error}") from error


def _describe(model: DeepKernelizedAutoencoder) -> dict[str, Any]:
    """Return everything but the weights, as JSON can hold it."""
    described: dict[str, Any] = {
        "params": {},
        "attributes": {name: _plain(getattr(model, name)) for name in _PLAIN_ATTRIBUTES},
        "kernel": None,
        **_describe_network(model.network_),
    }
    if model.network is not None and "layers" in described:
        described["stack"] = _describe_stack(model.network_)
    for name, value in model.get_params(deep=False).items():
        with contextlib.suppress(TypeError):
            described["params"][name] = _plain(value)
    for name in ("alignment", "optimizer"):
        # By its name a function is refused when fit is called again, unless it is one of ours.
        value = getattr(model, name)
        described["params"].setdefault(name, getattr(value, "__name__", type(value).__name__))
    # A subclass may compute something else from the same parameters.
    if type(model.kernel_) is PairwiseKernel:
        described["kernel"] = _plain(model.kernel_.get_params() | {"gamma": model.kernel_.gamma_})
    if hasattr(model, "feature_names_in_"):
        described["feature_names"] = list(model.feature_names_in_)
    return described


def _rebuild(
    described: dict[str, Any], weights: dict[str, Tensor], device: str
) -> DeepKernelizedAutoencoder:
    kernel = _rebuild_kernel(described["kernel"])
    # What is not in the file must not turn into the default when fit is called again: a kernel, and
    # `decoder_max_iter`, which files of 0.1 predate.
    absent: dict[str, Any] = {"kernel": kernel or "precomputed", "decoder_max_iter": 0}
    params = described["params"] | {}
    if "steps_per_epoch" not in params and "epoch" in params:  # its name in files of 0.1
        params["steps_per_epoch"] = params.pop("epoch")
    model = DeepKernelizedAutoencoder(**(absent | params | {"device": device}))
    for name in _PLAIN_ATTRIBUTES:
        setattr(model, name, described["attributes"][name])
    network = _rebuild_network(model, described).eval()
    network.load_state_dict(weights)
    model.network_ = network.to(choose_device(device))
    model.kernel_ = kernel
    if "feature_names" in described:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    return model


def _split(model: Any) -> tuple[Pipeline | None, Any]:
    """Return a pipeline of a scaler and a model with the model in it; any other model alone."""
    if not isinstance(model, Pipeline) or len(model.steps) != 2:
        return None, model
    # A subclass may compute something else from the same attributes.
    return (model, model[1]) if type(model[0]) is StandardScaler else (None, model)


def _describe_pipeline(pipeline: Pipeline) -> dict[str, Any]:
    """Return everything but the model, as JSON can hold it; it keeps all digits of a float."""
    scaler = pipeline[0]
    if not hasattr(scaler, "scale_"):
        raise ValueError("the StandardScaler is not fitted: call fit before save")
    attributes = {name: _plain(getattr(scaler, name)) for name in _SCALER_ATTRIBUTES}
    if hasattr(scaler, "feature_names_in_"):
        attributes["feature_names_in_"] = _plain(scaler.feature_names_in_)
    params = {name: getattr(scaler, name) for name in ("with_mean", "with_std")}
    names = [name for name, _ in pipeline.steps]
    return {"steps": names, "params": params, "attributes": attributes}


def _rebuild_pipeline(described: dict[str, Any], model: DeepKernelizedAutoencoder) -> Pipeline:
    scaler = StandardScaler(**described["params"])
    for name, value in described["attributes"].items():
        if name not in (*_SCALER_ATTRIBUTES, "feature_names_in_"):
            raise ValueError(f"a StandardScaler has no {name!r}")
        kind = object if name == "feature_names_in_" else None
        setattr(scaler, name, np.array(value, kind) if isinstance(value, list) else value)
    if scaler.n_features_in_ != model.n_features_in_:
        raise ValueError(f"the scaler has {scaler.n_features_in_} features, not those of the model")
    return Pipeline(list(zip(described["steps"], (scaler, model), strict=True)))


def _describe_network(network: nn.Module) -> dict[str, Any]:
    """Return what builds the network; only those of this package stand in a file."""
    if type(network) is Autoencoder:
        return {"layers": [layer.config for layer in network.layers]}
    kind = type(network).__name__
    if _NETWORKS.get(kind) is not type(network):
        raise ValueError(
            f"model has a network of your own ({kind}), and a model file holds no code: pickle the "
            "model, or keep network_.state_dict()"
        )
    return {"network": {"kind": kind, "config": network.config}}


def _describe_stack(network: Any) -> dict[str, Any]:
    """Return the arguments of the factory of such a stack."""
    layers: list[Layer] = network.layers
    return {
        "hidden_layer_sizes": [layer.config["n_out"] for layer in layers[:-1]],
        "activation": layers[0].activation,
        "code_activation": layers[-1].activation,
        "output_activation": layers[0].output_activation,
    }


def _rebuild_network(model: DeepKernelizedAutoencoder, described: dict[str, Any]) -> nn.Module:
    """Return the network with weights that are still to be loaded, and tell the model its shape."""
    if "network" not in described:
        stack = Autoencoder([Layer(**config) for config in described["layers"]])
        if not stack.layers:
            raise ValueError("there are no layers")
        model.row_shape_, model.n_components_ = (model.n_features_in_,), stack.n_components
        if "stack" in described:  # `fit` builds this network again, not the default one
            model.network = StackedNetwork(**described["stack"])
        return stack
    sizes = dict(described["network"]["config"])
    model.row_shape_, model.n_components_ = tuple(sizes.pop("shape")), sizes.pop("n_components")
    model.network = partial(_NETWORKS[described["network"]["kind"]], **sizes)
    network: nn.Module = model.network(model.row_shape_, model.n_components_)
    return network


def _rebuild_kernel(described: dict[str, Any] | None) -> PairwiseKernel | None:
    if described is None:
        return None
    kernel = PairwiseKernel(**described)
    kernel.gamma_ = described["gamma"]
    return kernel


def _plain(value: Any) -> Any:
    """Return the value as JSON gives it back (lists for tuples); a TypeError if it cannot."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{type(value).__name__} is not plain data")


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = file.keys()  # the file is no mapping, and cannot be iterated over
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{path} is not a dkae model file ({error})") from error
