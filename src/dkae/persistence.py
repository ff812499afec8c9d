"""A fitted model as one safe file: the weights in safetensors, everything else as JSON within it.

Nothing in the file is ever executed, unlike a pickle. A kernel that is code of the user's (a
callable, a Gaussian-process kernel, a Gram matrix) cannot stand in such a file: the loaded model
maps there and back all the same, and `score` asks for the Gram matrix.
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

#: Learned attributes that are plain data.
_PLAIN_ATTRIBUTES = ("history_", "kernel_scale_", "n_features_in_", "n_iter_")


#: Networks besides the stack, by name; `config` has the arguments that build one.
_NETWORKS: dict[str, Any] = {
    kind.__name__: kind for kind in (ConvolutionalAutoencoder, ResidualAutoencoder)
}


class ModelFileError(ValueError):
    """A file is not a dkae model, or is damaged."""


def save(model: DeepKernelizedAutoencoder, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file; one of that name is replaced only when all is written."""
    if not isinstance(model, DeepKernelizedAutoencoder):
        raise ValueError(
            f"model is a {type(model).__name__}, and only a DeepKernelizedAutoencoder has a model "
            "file: pass the one in it, or pickle the whole"
        )
    if not hasattr(model, "network_"):
        raise ValueError("model is not fitted: call fit before save")
    header = {"format": FORMAT, "dkae": __version__, "model": json.dumps(_describe(model))}
    weights = {name: t.detach().cpu() for name, t in model.network_.state_dict().items()}
    with replacing(Path(path)) as temporary:
        try:
            save_file(weights, temporary, metadata=header)
        except safetensors.SafetensorError as error:  # a full disk, for example
            raise OSError(f"{path} could not be written: {error}") from error


def load(path: str | os.PathLike[str], *, device: str = "cpu") -> DeepKernelizedAutoencoder:
    """Read a model from a file that `save` wrote, and put its network on `device`."""
    choose_device(device)
    path = Path(path)
    header, weights = _read(path)
    if header.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} is a safetensors file of format {header.get('format')!r}, expected "
            f"{FORMAT!r}: pass a file that dkae.save or `dkae fit` wrote"
        )
    try:
        return _rebuild(json.loads(header["model"]), weights, device)
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
