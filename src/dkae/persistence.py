"""A fitted model as one safe file: the weights in safetensors, everything else as JSON within it.

Nothing in the file is ever executed, unlike a pickle. A kernel that is code of the user's (a
callable, a Gaussian-process kernel, a Gram matrix) cannot stand in such a file: the loaded model
maps there and back all the same, and `score` asks for the Gram matrix.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
from safetensors.torch import save_file
from torch import Tensor

from dkae import __version__
from dkae.autoencoder import Autoencoder, Layer
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel
from dkae.training.devices import choose_device

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
    with _replacing(Path(path)) as temporary:
        save_file(weights, temporary, metadata=header)


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
        "params": {k: v for k, v in model.get_params(deep=False).items() if _is_plain(v)},
        "attributes": {name: getattr(model, name) for name in _PLAIN_ATTRIBUTES},
        "layers": [layer.config for layer in model.network_.layers],
        "kernel": None,
    }
    if isinstance(model.kernel_, PairwiseKernel):
        described["kernel"] = model.kernel_.get_params() | {"gamma": model.kernel_.gamma_}
    if hasattr(model, "feature_names_in_"):
        described["feature_names"] = list(model.feature_names_in_)
    return described


def _rebuild(
    described: dict[str, Any], weights: dict[str, Tensor], device: str
) -> DeepKernelizedAutoencoder:
    model = DeepKernelizedAutoencoder(**(described["params"] | {"device": device}))
    for name in _PLAIN_ATTRIBUTES:
        setattr(model, name, described["attributes"][name])
    model.network_ = Autoencoder(Layer(**config) for config in described["layers"]).eval()
    model.network_.load_state_dict(weights)
    model.network_.to(choose_device(device))
    kernel = described["kernel"]
    model.kernel_ = None if kernel is None else PairwiseKernel(**kernel)
    if model.kernel_ is not None:
        model.kernel_.gamma_ = kernel["gamma"]
    if "feature_names" in described:
        model.feature_names_in_ = np.array(described["feature_names"], dtype=object)
    return model


def _is_plain(value: Any) -> bool:
    """Say whether JSON gives the value back as it was, but for tuples, which become lists."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(item) for key, item in value.items())
    return value is None or isinstance(value, (bool, int, float, str))


def _read(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no model file {path}")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            names = file.keys()  # the file is no mapping, and cannot be iterated over
            return file.metadata() or {}, {name: file.get_tensor(name) for name in names}
    except safetensors.SafetensorError as error:
        raise ModelFileError(f"{path} is not a dkae model file ({error})") from error


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes its place when all went well."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        # mkstemp makes the file private; a model is as readable as any file that a user writes.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
