"""A fitted model as one safe file: the weights in safetensors, everything else as JSON within it.

Nothing in the file is ever executed, unlike a pickle. A kernel that is code of the user's (a
callable, a Gaussian-process kernel, a Gram matrix) cannot stand in such a file: the loaded model
maps there and back all the same, and `score` asks for the Gram matrix.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.torch import save_file
from torch import Tensor

from dkae import __version__
from dkae._runtime.devices import choose_device
from dkae._runtime.files import replacing
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel
from dkae.networks.stacked import Autoencoder, Layer

__all__ = ["ModelFileError", "load", "save"]

FORMAT = "dkae model 1"

#: Learned attributes that are plain data.
_PLAIN_ATTRIBUTES = ("history_", "kernel_scale_", "n_features_in_", "n_iter_")


class ModelFileError(ValueError):
    """A file is not a dkae model, or is damaged."""


def save(model: DeepKernelizedAutoencoder, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to one file; one of that name is replaced only when all is written."""
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
        "attributes": {name: getattr(model, name) for name in _PLAIN_ATTRIBUTES},
        "layers": [layer.config for layer in model.network_.layers],
        "kernel": None,
    }
    for name, value in model.get_params(deep=False).items():
        with contextlib.suppress(TypeError):
            described["params"][name] = _plain(value)
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
    # in files of version 0.1 a phase that there was not.
    absent = {"kernel": kernel or "precomputed", "decoder_max_iter": 0}
    model = DeepKernelizedAutoencoder(**(absent | described["params"] | {"device": device}))
    for name in _PLAIN_ATTRIBUTES:
        setattr(model, name, described["attributes"][name])
    model.network_ = Autoencoder([Layer(**config) for config in described["layers"]]).eval()
    if not model.network_.layers:
        raise ValueError("there are no layers")
    model.network_.load_state_dict(weights)
    model.network_.to(choose_device(device))
    model.kernel_ = kernel
    if "feature_names" in described:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    return model


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
