"""Fitted models as one safe file: tensors in safetensors, the rest as JSON within it.

A file has a checksum, is written whole or not at all, and has the same bytes for the same model.
Nothing in it is executed, and no name in it is imported: what a file may hold is declared, class by
class, in `dkae.persistence.schemas`.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted
from torch import nn

from dkae import __version__
from dkae._support import safe_file
from dkae._support.checks import warn_caller
from dkae._support.devices import choose_device, float32_math
from dkae._support.json_state import NotPlainError, check_form
from dkae._support.safe_file import Content, ModelFileError
from dkae.files import check_writable
from dkae.networks import ConvolutionalAutoencoder, build_network, check_network
from dkae.persistence import schemas
from dkae.persistence.objects import CustomNetwork, Reader, Writer
from dkae.persistence.schema import array, kind_of
from dkae.statistics import Statistics

__all__ = ["ModelFileError", "info", "load", "save"]

#: A version that changes what a file means gets another number.
FORMAT = "dkae model 1"


def save(model: Any, path: str | os.PathLike[str], *, kernel: bool = True) -> None:
    """Write a fitted model to one file; a file of that name is replaced once all is written.

    A kernel that is code (a function, a Gram matrix) is not in the file, with a warning; see
    `attach_kernel` of the loaded model. A custom network is there with its weights and the name of
    its class: `load` needs ``network=``.

    Parameters
    ----------
    model : DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, \
ProbabilisticClusterKernel or Pipeline
        A pipeline has one of them as its last step, and scalers before it.
    path : path
        The file, by custom with the suffix ``.safetensors``.
    kernel : bool, default=True
        Whether the fitted kernel is in the file. The mixtures of a Probabilistic Cluster Kernel
        are most of it: 2 · 13,920 · d numbers of eight bytes with the paper's Q and G.
    """
    path = _as_path(path)
    check_writable(path, "path")
    last = _check_model(model)
    fitted_kernel = getattr(last, "kernel_", None)
    missing = None if fitted_kernel is None or not kernel else Writer().why_not(fitted_kernel)
    with float32_math():
        values = last.kernel_values() if hasattr(last, "kernel_values") else None
    writer = Writer(fitted_kernel if missing is not None or not kernel else None)
    try:
        state = {
            "format": FORMAT,
            "dkae": __version__,
            "kind": type(model).__name__,
            "model": writer.pack(model),
            "kernel_values": writer.pack(values, "kernel_values"),
        }
        _read(Content(state, writer.tensors, ""))
    except (NotPlainError, ModelFileError) as error:
        raise ValueError(
            f"the model cannot be written ({str(error)[:300]}): use what dkae.persistence.schemas "
            "lists, such as a decoder of dkae.decoders"
        ) from error
    safe_file.write(path, state, writer.tensors)
    for what, remedy in _left_out(last, values, missing) if kernel else ():
        warn_caller(f"{path} does not hold {what}: {remedy}")


def load(path: str | os.PathLike[str], *, device: str = "cpu", network: Any = None) -> Any:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path
        The file.
    device : str, default="cpu"
        Where the networks of the model run.
    network : torch.nn.Module or factory, optional
        For a model with a custom network: a module of the same class, or the factory that built
        it; the weights come from the file.

    Raises
    ------
    ModelFileError
        The file is damaged, not a model of dkae, or has an unknown format.
    """
    target = choose_device(device)
    path = _as_path(path)
    content = _content(path)
    try:
        model = _read(content)
    except ModelFileError as error:
        raise ModelFileError(f"{path} is damaged or not from dkae: {error}") from error
    last = _last(model)
    built: Any = getattr(last, "network_", None)
    if isinstance(built, CustomNetwork):
        with float32_math():
            _attach_network(path, last, built, network)
    elif network is not None:
        raise ValueError(f"{path} has no custom network: leave network= out")
    elif isinstance(built, ConvolutionalAutoencoder):  # `fit` can build it again
        last.network = partial(ConvolutionalAutoencoder, channels=built.config["channels"])
    _move(last, device, target)
    return model


def info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says of itself; its checksum was compared.

    What the file *says* is not checked, as `load` would.
    """
    content = _content(_as_path(path))
    tensors = content.tensors.items()
    return {
        "format": FORMAT,
        "dkae": str(content.state.get("dkae")),
        "kind": str(content.state.get("kind")),
        "checksum": content.checksum,
        "tensors": {name: (str(t.dtype)[len("torch.") :], tuple(t.shape)) for name, t in tensors},
        "state": content.state.get("model"),
    }


# --- saving --------------------------------------------------------------------------------------


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) and model.steps else model


def _check_model(model: Any) -> Any:
    """Return the model at the end of a pipeline, or the model itself, if it can be written."""
    last = _last(model)
    if kind_of(last) not in schemas.MODELS:
        raise ValueError(
            f"model is a {type(last).__name__}, and only {', '.join(schemas.MODELS)}, alone or at "
            "the end of a Pipeline of scalers, have a model file: pass one of them"
        )
    for step in [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]:
        try:
            check_is_fitted(step)
        except NotFittedError as error:
            name = type(step).__name__
            raise ValueError(f"model is not fitted ({name}): call fit before save") from error
        except TypeError:  # "passthrough"
            pass
    return last


def _left_out(last: Any, values: Any, missing: str | None) -> Iterator[tuple[str, str]]:
    """Yield what a file lacks because it is code or data of the caller, and what to do about it."""
    attach = "after load, pass it to model.attach_kernel(kernel)"
    if missing is not None:
        yield f"{last.kernel_}, which is code or data ({missing})", attach
    elif hasattr(last, "kernel_values") and last.kernel_ is None and values is None:
        yield "a kernel, because the model was fitted with a Gram matrix, which it lacks", attach
    optimization = getattr(last, "optimization", None)
    for name, owner in (("alignment", last), ("optimizer", optimization), ("augment", last)):
        if Writer().why_not(getattr(owner, name, None)) is not None:
            yield f"{name}, a function", f"set {name}= before you call fit again"


# --- loading -------------------------------------------------------------------------------------


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path={path!r} must be the path of a file")
    return Path(path)


def _content(path: Path) -> Content:
    """Return what a file of our format holds; a pipe would be waited for, a device never ends."""
    if not path.is_file():
        if path.is_symlink() or path.exists():
            raise ModelFileError(
                f"{path} is a folder, a pipe, a device or a link to nothing: pass the path of a "
                "model file"
            )
        raise FileNotFoundError(f"there is no model file {path}")
    content = safe_file.read(path)
    state = content.state if isinstance(content.state, dict) else {}
    if state.get("format") != FORMAT:
        raise ModelFileError(
            f"{path} has the format {str(state.get('format'))[:40]!r}, of dkae "
            f"{str(state.get('dkae'))[:20]}, and this dkae {__version__} reads {FORMAT!r}: pass a "
            "file of dkae.save, or install the version that wrote it"
        )
    return content


def _read(content: Content) -> Any:
    """Return the model of a file, if all that it holds is declared and fits."""
    reader = Reader(content.tensors)
    try:
        with float32_math(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            model = reader.unpack(content.state["model"])
            values = reader.unpack_all(content.state["kernel_values"])
            last = _check_model(model)
            if hasattr(last, "kernel_values"):
                if values is not None:
                    array("p", "p").check(values, {})
                last._stored_kernel_values = values
            _try_out(model, last)
    except Exception as error:  # any error of an estimator whose state does not fit
        raise ModelFileError(f"{type(error).__name__}: {str(error)[:300]}") from error
    return model


def _try_out(model: Any, last: Any) -> None:
    """Map a row there and back, and evaluate the kernel, to find a state that does not fit."""
    kernel, network = (getattr(last, name, None) for name in ("kernel_", "network_"))
    shape: Any = getattr(last, "row_shape_", None)
    if kernel is not None:
        kernel.gram(np.zeros((1, *shape), dtype=np.float32))
    if isinstance(network, CustomNetwork):
        return
    # Without its kernel, only a network maps rows; a kernel that is a model has neither.
    if kernel is not None or network is not None or shape is None:
        first = model.steps[0][1] if isinstance(model, Pipeline) else model
        given = getattr(first, "row_shape_", None) or (first.n_features_in_,)
        center = getattr(first, "center_", None)
        row = np.zeros((1, *given), dtype=np.float32)
        model.transform(row if center is None else row + center)
    if hasattr(last, "inverse_transform"):
        rows = last.inverse_transform(np.zeros((1, last.n_components_), dtype=np.float32))
        if rows.shape[1:] != shape:
            raise ValueError("codes decode to rows of another shape")


# --- networks ------------------------------------------------------------------------------------


def _attach_network(path: Path, model: Any, custom: CustomNetwork, network: Any) -> None:
    """Build a custom network, and give it the weights of the file."""
    if network is None:
        raise ModelFileError(
            f"{path} has the weights of a custom network, {custom.name[:80]!r}, and a file "
            "holds no code: pass load(path, network=...), a module of that class or its factory"
        )
    shape, n_components = model.row_shape_, model.n_components_
    known = Statistics.of(np.zeros((2, *shape), dtype=np.float32))  # of rows like those of the fit
    built = build_network(network, known, n_components, torch.Generator().manual_seed(0))
    if type(built).__name__ != custom.name:
        raise ValueError(
            f"network= gives a {type(built).__name__}, but the file has the weights of a "
            f"{custom.name[:80]!r}: pass a module of that class, or its factory"
        )
    try:
        check_form(custom.weights, dict(built.state_dict()), "weights:")
        built.load_state_dict(custom.weights)
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"network= gives a {type(built).__name__} of other sizes than the file has weights "
            f"for: pass one like that of the fit. {error}"
        ) from error
    model.network_, model.network = built.eval(), network
    check_network(built, np.zeros((1, *shape), dtype=np.float32), n_components)


def _move(model: Any, device: str, target: torch.device) -> None:
    """Move the networks of a model to a device, where it goes on working."""
    if hasattr(model, "device"):
        model.device = device
    for owner in (model, getattr(model, "decoder_", None)):
        network = getattr(owner, "network_", None)
        if isinstance(network, nn.Module):
            network.to(target)
