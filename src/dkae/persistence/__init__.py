"""Everything that is fitted as one safe file: tensors in safetensors, the rest as JSON within it.

A file has a checksum, is written whole or not at all, and has the same bytes for the same model.
Nothing in it is ever executed, and no name in it is ever imported: it may name the kinds of objects
of `dkae.persistence.models.REGISTRY`, and no others.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from dkae import __version__
from dkae._support.container import (
    Content,
    ModelFileError,
    parse_json,
    read_container,
    read_metadata,
    write_container,
)
from dkae._support.devices import choose_device
from dkae._support.files import check_writable, owning, replacing
from dkae._support.trees import NotPlainError, decode, encode
from dkae._support.warning import warn_caller
from dkae.autoencoder import DeepKernelizedAutoencoder
from dkae.kernels.attaching import HasKernel
from dkae.networks import build_network, check_network
from dkae.persistence.migrations import FORMAT_1, model_of_format_1
from dkae.persistence.models import MODELS, REGISTRY, why_not_plain
from dkae.persistence.networks import OwnNetwork

__all__ = ["ModelFileError", "info", "load", "owning", "replacing", "save"]

#: A version that changes what a file means gets another number, and a migration.
FORMAT = "dkae model 3"
_PREFIX, _NEWEST = "dkae model ", 3
#: Whatever a file with a right checksum may still do wrong.
_WRONG = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    RuntimeError,
    TypeError,
    ValueError,
)


def save(model: Any, path: str | os.PathLike[str], *, kernel: bool = True) -> None:
    """Write a fitted model to one file; one of that name is replaced only when all is written.

    A kernel that is code of yours (a function, a Gram matrix) is not in the file, with a warning;
    see `attach_kernel` of the loaded model. A network of yours is there with its weights and its
    name: `load` needs ``network=``.

    Parameters
    ----------
    model : DeepKernelizedAutoencoder, KernelPCA, PreImage, ProbabilisticClusterKernel or Pipeline
        A pipeline has one of them as its last step, and scalers before it.
    path : path
        The file, by custom with the suffix ``.safetensors``.
    kernel : bool, default=True
        Whether the fitted kernel is in the file. The mixtures of a Probabilistic Cluster Kernel
        are most of it: 2 · 13,920 · d numbers of eight bytes with the paper's Q and G.
    """
    path = Path(path)
    check_writable(path, "path")
    last = _check_model(model)
    fitted_kernel, values, missing = getattr(last, "kernel_", None), None, None
    if isinstance(last, HasKernel):
        missing = why_not_plain(fitted_kernel) if kernel else None
        values = last._stored_kernel_values if fitted_kernel is None else last.kernel_values()
    left_out = [fitted_kernel] if missing is not None or not kernel else []
    described, tensors = _encode({"model": model, "kernel_values": values}, left_out)
    metadata = {
        "format": FORMAT,
        "dkae": __version__,
        "kind": type(model).__name__,
        "state": json.dumps(described),
    }
    write_container(path, metadata, tensors)
    for what, remedy in _left_out(last, values, missing) if kernel else ():
        warn_caller(f"{path} does not hold {what}: {remedy}")


def _left_out(last: Any, values: Any, missing: str | None) -> Iterator[tuple[str, str]]:
    """Yield what a file lacks because it is code or data of the user's, and what to do about it."""
    attach = "after load, pass it to model.attach_kernel(kernel)"
    if missing is not None:
        yield f"{last.kernel_}, which is code or data of yours ({missing})", attach
    elif isinstance(last, HasKernel) and last.kernel_ is None and values is None:
        yield "a kernel, because the model was fitted with a Gram matrix, which it lacks", attach
    for name in ("alignment", "optimizer"):
        if callable(getattr(last, name, None)):
            yield f"{name}, a function of yours", f"set {name}= before you call fit again"


def _encode(state: dict[str, Any], left_out: list[Any]) -> tuple[Any, dict[str, Any]]:
    """Return what goes into a file, if `load` would take it: better now than when it is needed."""
    try:
        described, tensors = encode(state, REGISTRY, left_out)
        with torch.random.fork_rng(devices=[]):
            decode(described, tensors, REGISTRY)
    except (NotPlainError, *_WRONG) as error:
        raise ValueError(
            f"the model cannot be written, because it could not be read again: {str(error)[:300]}"
        ) from error
    return described, tensors


def _check_model(model: Any) -> Any:
    """Return the model at the end of a pipeline, or the model itself, if it can be written."""
    last = model.steps[-1][1] if isinstance(model, Pipeline) and model.steps else model
    if type(last) not in MODELS:
        names = ", ".join(kind.__name__ for kind in MODELS)
        raise ValueError(
            f"model is a {type(last).__name__}, and only {names}, alone or at the end of a "
            "Pipeline of scalers, have a model file: pass one of them"
        )
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    for step in steps:
        try:
            check_is_fitted(step)
        except NotFittedError as error:
            name = "model" if step is model else type(step).__name__
            raise ValueError(f"{name} is not fitted: call fit before save") from error
        except TypeError:  # "passthrough" and the like
            pass
    try:
        encode([step for step in steps if step is not last], REGISTRY)
    except NotPlainError as error:
        raise ValueError(
            f"the pipeline cannot be written, because {error}: use steps of scikit-learn that are "
            "scalers, or save its last step alone"
        ) from error
    return last


def load(path: str | os.PathLike[str], *, device: str = "cpu", network: Any = None) -> Any:
    """Read what `save` wrote.

    Parameters
    ----------
    path : path
        The file. Files of 0.1 and 0.2 are read too.
    device : str, default="cpu"
        Where the network of an autoencoder runs.
    network : torch.nn.Module or factory, optional
        For a model with a network of yours: a module of the same class, or the factory that built
        it; the weights come from the file.

    Raises
    ------
    ModelFileError
        The file is damaged, not a model of dkae, or from a newer version.
    """
    choose_device(device)
    path = _check_file(path)
    content = read_container(path, lambda metadata: metadata.get("format") == FORMAT)
    version = _check_format(content.metadata, path)
    with torch.random.fork_rng(devices=[]):  # building a module may draw random numbers
        try:
            model = _build(content, version)
        except _WRONG as error:
            why = str(error)[:300]
            raise ModelFileError(f"{path} is damaged or not from dkae: {why}") from error
        last = model.steps[-1][1] if isinstance(model, Pipeline) else model
        if isinstance(last, DeepKernelizedAutoencoder):
            _complete(last, path, device, network)
        elif network is not None:
            raise ValueError(f"{path} has a {type(last).__name__}, no network: leave network= out")
    return model


def _check_file(path: str | os.PathLike[str]) -> Path:
    """Return a path if a file is there; a pipe would be waited for, and a device never ends."""
    path = Path(path)
    if path.is_file():
        return path
    if path.is_symlink() or path.exists():
        raise ModelFileError(
            f"{path} is no ordinary file, but a folder, a device or a link to nothing: pass the "
            "path of a model file"
        )
    raise FileNotFoundError(f"there is no model file {path}")


def _check_format(metadata: dict[str, str], path: Path) -> int:
    """Return the version of the format; versions between 1 and 3 were never released."""
    found = metadata.get("format", "")
    number = found.removeprefix(_PREFIX)
    if not found.startswith(_PREFIX) or not number.isdecimal() or len(number) > 9:
        raise ModelFileError(
            f"{path} is a safetensors file of format {found[:80]!r}, expected {FORMAT!r}: pass a "
            "file that dkae.save or `dkae fit` wrote"
        )
    if int(number) > _NEWEST:
        raise ModelFileError(
            f"{path} has the format {found!r}, of dkae {metadata.get('dkae', '?')[:20]}, and this "
            f"is {__version__}, which knows formats up to {FORMAT!r}: install a newer dkae"
        )
    if found not in (FORMAT_1, FORMAT):
        raise ModelFileError(
            f"{path} has the format {found!r}, which was never released: fit the model again"
        )
    return int(number)


def _build(content: Content, version: int) -> Any:
    if version == 1:
        return model_of_format_1(parse_json(content.metadata["model"]), content.tensors)
    tree = parse_json(content.metadata["state"])
    state = decode(tree, content.tensors, REGISTRY)
    model, values = state["model"], state["kernel_values"]
    last = _check_model(model)
    if isinstance(last, HasKernel):
        last._take_stored_values(values)
        if not isinstance(getattr(last, "network_", None), OwnNetwork):
            last._check_kernel()
    elif values is not None:
        raise ValueError("there are values of a kernel that the model has not")
    return model


def _complete(model: DeepKernelizedAutoencoder, path: Path, device: str, network: Any) -> None:
    """Give a model its device, and a network of the user's its code."""
    if isinstance(model.network_, OwnNetwork):
        if network is None:
            raise ModelFileError(
                f"{path} has the weights of a network of yours, {model.network_.name[:80]!r}, and "
                "a file holds no code: pass load(path, network=...), a module of that class or its "
                "factory"
            )
        _attach_network(model, model.network_, network)
    elif network is not None:
        raise ValueError(
            f"{path} has a {type(model.network_).__name__}, which needs no code of yours: leave "
            "network= out"
        )
    model.device = device
    model.network_ = model.network_.to(choose_device(device))
    if model.scaling_ is not None:
        model.scaling_.to(choose_device(device))


def _attach_network(model: DeepKernelizedAutoencoder, own: OwnNetwork, network: Any) -> None:
    """Build a network of the user's, and give it the weights of the file."""
    shape, n_components = model.row_shape_, model.n_components_
    built = build_network(network, shape, n_components, torch.Generator().manual_seed(0))
    if type(built).__name__ != own.name:
        raise ValueError(
            f"network= gives a {type(built).__name__}, but the file has the weights of a "
            f"{own.name[:80]!r}: pass a module of that class, or its factory"
        )
    try:
        built.load_state_dict(own.weights)
    except RuntimeError as error:
        raise ValueError(
            f"network= gives a {type(built).__name__} of other sizes than the file has weights "
            f"for: pass one like that of the fit. {error}"
        ) from error
    model.network_, model.network = built.eval(), network
    check_network(model._maps, np.zeros((1, *shape), dtype=np.float32), n_components)


def info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a model file says of itself, without making its tensors.

    The checksum is compared, where there is one; what the file *says* is not checked, as `load`
    would.
    """
    path = _check_file(path)
    metadata, shapes = read_metadata(path)
    version = _check_format(metadata, path)
    text = metadata.get("state" if version > 1 else "model", "")
    try:
        described = parse_json(text)
    except ValueError as error:
        raise ModelFileError(f"{path} is damaged: its description is not JSON") from error
    return {
        "format": metadata["format"],
        "dkae": metadata.get("dkae", "?"),
        "kind": metadata.get("kind", "DeepKernelizedAutoencoder"),
        "checksum": metadata.get("sha256"),
        "tensors": shapes,
        "state": described,
    }
