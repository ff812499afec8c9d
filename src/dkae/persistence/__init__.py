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
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.torch import save_file
from sklearn.pipeline import Pipeline
from torch import Tensor, nn

from dkae import __version__
from dkae._runtime.devices import choose_device
from dkae._runtime.files import replacing
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.networks import KernelLayer, KernelLayerNetwork
from dkae.persistence.kernels import PREFIX, describe_kernel, rebuild_kernel
from dkae.persistence.networks import (
    describe_network,
    describe_scaling,
    describe_stack,
    rebuild_network,
    rebuild_scaling,
)
from dkae.persistence.pipelines import describe_pipeline, rebuild_pipeline, split_pipeline
from dkae.persistence.plain import plain
from dkae.training.building import is_own

__all__ = ["ModelFileError", "load", "replacing", "save"]

#: Version 1 has no scaling; those who know only that version would leave it out, and must not read
#: a file with one.
FORMAT = "dkae model 2"
FORMATS = ("dkae model 1", FORMAT)
#: Of a file with a scaler before the model.
PIPELINE_FORMAT = "dkae pipeline 1"

#: Learned attributes that are plain data; those of the second line came with version 2.
_PLAIN_ATTRIBUTES = ("history_", "kernel_scale_", "n_features_in_", "n_iter_")
_LATER_ATTRIBUTES = ("alignment_", "centered_alignment_", "r2_")
#: Parameters of files of version 1: what is not in a file must not turn into the default when `fit`
#: is called again.
_VERSION_1 = {
    "alignment": "frobenius",
    "network": "stacked",
    "standardize": False,
    "layer_norm": False,
    "decoder_max_iter": 0,
}
#: Begins the names of the scaling's tensors, which stand in a kernel layer already.
_SCALING = "scaling."


class ModelFileError(ValueError):
    """A file is not a dkae model, or is damaged."""


def save(model: DeepKernelizedAutoencoder | Pipeline, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file; one of that name is replaced only when all is written.

    The model may be the second step of a pipeline whose first one is a `StandardScaler`.
    """
    pipeline, model = split_pipeline(model)
    if not isinstance(model, DeepKernelizedAutoencoder):
        raise ValueError(
            f"model is a {type(model).__name__}, and only a DeepKernelizedAutoencoder, alone or "
            "after a StandardScaler, has a model file: pass the one in it, or pickle the whole"
        )
    if not hasattr(model, "network_"):
        raise ValueError("model is not fitted: call fit before save")
    header = {"format": FORMAT, "dkae": __version__, "model": json.dumps(_describe(model))}
    if pipeline is not None:
        header |= {"format": PIPELINE_FORMAT, "pipeline": json.dumps(describe_pipeline(pipeline))}
    weights = {name: t.detach().cpu().contiguous() for name, t in _state(model).items()}
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
    if header.get("format") not in (*FORMATS, PIPELINE_FORMAT):
        raise ModelFileError(
            f"{path} is a safetensors file of format {header.get('format')!r}, expected "
            f"{' or '.join(map(repr, FORMATS))}: pass a file that dkae.save or `dkae fit` wrote"
        )
    try:
        model = _rebuild(json.loads(header["model"]), weights, device)
        if header["format"] != PIPELINE_FORMAT:
            return model
        return rebuild_pipeline(json.loads(header["pipeline"]), model)
    except (KeyError, TypeError, RuntimeError, ValueError) as error:
        raise ModelFileError(f"{path} is damaged or from another version: {error}") from error


def _state(model: DeepKernelizedAutoencoder) -> dict[str, Tensor]:
    """Return all tensors of a model by name."""
    state: dict[str, Tensor] = model.network_.state_dict()
    if model.scaling_ is not None and not isinstance(model.network_, KernelLayer):
        state |= {_SCALING + name: t for name, t in model.scaling_.state_dict().items()}
    return state | describe_kernel(model.kernel_)[1]


def _describe(model: DeepKernelizedAutoencoder) -> dict[str, Any]:
    """Return everything but the weights, as JSON can hold it."""
    described: dict[str, Any] = {
        "params": {},
        "attributes": {
            name: plain(getattr(model, name))
            for name in (*_PLAIN_ATTRIBUTES, *_LATER_ATTRIBUTES)
            if hasattr(model, name)
        },
        "kernel": describe_kernel(model.kernel_)[0],
        "scaling": describe_scaling(model.scaling_),
        **describe_network(model.network_, model.kernel_),
    }
    if is_own(model.network) and "layers" in described:
        described["stack"] = describe_stack(model.network_)
    if isinstance(model.network, KernelLayerNetwork):
        described["spec"] = vars(model.network)
    for name, value in model.get_params(deep=False).items():
        with contextlib.suppress(TypeError):
            described["params"][name] = plain(value)
    for name in ("alignment", "optimizer"):
        # By its name a function is refused when fit is called again, unless it is one of ours.
        value = getattr(model, name)
        described["params"].setdefault(name, getattr(value, "__name__", type(value).__name__))
    if hasattr(model, "feature_names_in_"):
        described["feature_names"] = list(model.feature_names_in_)
    return described


def _rebuild(
    described: dict[str, Any], weights: dict[str, Tensor], device: str
) -> DeepKernelizedAutoencoder:
    kernel = rebuild_kernel(described["kernel"], weights)
    weights = {n: t for n, t in weights.items() if not n.startswith(PREFIX)}
    absent: dict[str, Any] = {"kernel": kernel or "precomputed"}
    if "scaling" not in described:
        absent |= _VERSION_1
    params = described["params"] | {}
    if "steps_per_epoch" not in params and "epoch" in params:  # its name in files of 0.1
        params["steps_per_epoch"] = params.pop("epoch")
    if "scaling" not in described and params.get("network") is None:
        params.pop("network", None)
    model = DeepKernelizedAutoencoder(**(absent | params | {"device": device}))
    for name in _PLAIN_ATTRIBUTES:
        setattr(model, name, described["attributes"][name])
    for name in set(_LATER_ATTRIBUTES) & described["attributes"].keys():
        setattr(model, name, described["attributes"][name])
    model.kernel_ = kernel
    network = rebuild_network(model, described, weights).eval()
    if isinstance(network, KernelLayer):
        network.load_state_dict(weights)
        model.scaling_ = network.decoder.scaling  # type: ignore[assignment]  # a RidgeDecoder
    else:
        own = {n: t for n, t in weights.items() if not n.startswith(_SCALING)}
        network.load_state_dict(own)
        model.scaling_ = rebuild_scaling(described.get("scaling"))
        if model.scaling_ is not None:
            rest = {name: t for name, t in weights.items() if name not in own}
            nn.ModuleDict({"scaling": model.scaling_}).load_state_dict(rest)
            model.scaling_.to(choose_device(device))
    model.network_ = network.to(choose_device(device))
    fill = None if model.scaling_ is None else model.scaling_.fill
    model.fill_ = None if fill is None else fill.cpu().numpy()
    if "feature_names" in described:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    return model


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = file.keys()  # the file is no mapping, and cannot be iterated over
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{path} is not a dkae model file ({error})") from error
