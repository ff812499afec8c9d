"""Estimators of this package as plain values: parameters, and what was learnt.

A parameter that is code (a function as measure or optimizer, a callback, a factory) cannot stand in
a file. It is replaced by its name, or left out: what was learnt does not need it, and when `fit` is
called again, a name that nobody knows is an error.
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from dkae._support.states import StateMixin, check_array
from dkae._support.trees import Codec, NotPlainError, Registry, State, encode
from dkae.autoencoder import DeepKernelizedAutoencoder
from dkae.kernels import (
    ForestKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
)
from dkae.kernels.cluster.mixtures import Mixtures
from dkae.kernels.compose import CenteredKernel, NormalizedKernel, ProductKernel, SumKernel
from dkae.kernels.forests import ArrayForest
from dkae.kernels.formulas import EvaluatedRows
from dkae.networks import (
    Autoencoder,
    ConvolutionalAutoencoder,
    KernelLayer,
    KernelLayerNetwork,
    ResidualAutoencoder,
    StackedNetwork,
    check_network,
)
from dkae.persistence import foreign, networks
from dkae.persistence.networks import (
    OwnNetwork,
    check_row_shape,
    configured_factory,
    stack_factory,
)
from dkae.spectral import KernelPCA, PreImage
from dkae.training.building import is_own

#: Kernels that are parameters and what `fit` has learnt, and nothing else.
_KERNELS = (
    PairwiseKernel,
    ProbabilisticClusterKernel,
    ForestKernel,
    TransformerKernel,
    GaussianProcessKernel,
    SumKernel,
    ProductKernel,
    NormalizedKernel,
    CenteredKernel,
)
_CONFIGURED = (ConvolutionalAutoencoder, ResidualAutoencoder)


def _methods(kind: Any) -> Codec:
    """Return the codec of a class that gives and takes its state."""
    return Codec(kind, kind.to_state, kind.from_state)


# --- parameters that are code --------------------------------------------------------------------


def _is_plain(value: Any) -> bool:
    try:
        encode(value, REGISTRY)
    except NotPlainError:
        return False
    return True


def _plain_params(params: State) -> State:
    """Return the parameters that a file can hold; functions by name, and code by nothing."""
    plain: State = {}
    for name, value in params.items():  # in this order, whatever they are: equal bytes
        if _is_plain(value):
            plain[name] = value
        elif name in ("alignment", "optimizer"):
            # Never the name of one of ours: `fit` must not take that for it.
            plain[name] = f"your {getattr(value, '__name__', type(value).__name__)}"
        elif name == "kernel":
            plain[name] = "precomputed"
    return plain


def _model_state(model: StateMixin) -> State:
    state = model.to_state()
    return state | {"params": _plain_params(state["params"])}


def _autoencoder_state(model: DeepKernelizedAutoencoder) -> State:
    state = _model_state(model)
    params, network = state["params"], model.network_
    if is_own(model.network):
        params.pop("network", None)
        if type(network) is Autoencoder:
            params["network"] = stack_factory(network)
        elif type(network) not in (KernelLayer, *_CONFIGURED):
            own = OwnNetwork(type(network).__name__, dict(network.state_dict()))
            state["learnt"] = state["learnt"] | {"network_": own}
    return state


def _build_autoencoder(state: State) -> DeepKernelizedAutoencoder:
    model = DeepKernelizedAutoencoder.from_state(state)
    network: nn.Module = model.network_
    shape = check_row_shape(network, model.row_shape_)
    _check_notes(model, shape)
    if not isinstance(network, OwnNetwork):
        _try_maps(model, shape)
    if isinstance(network, _CONFIGURED):
        model.network = configured_factory(network)
    elif not isinstance(model.network, str | StackedNetwork | KernelLayerNetwork):
        raise ValueError("network is none")
    return model


def _check_notes(model: DeepKernelizedAutoencoder, shape: tuple[int, ...]) -> None:
    """Refuse what a model has noted beside its maps if it is not what `fit` notes."""
    history = model.history_
    if not isinstance(history, list) or not all(isinstance(record, dict) for record in history):
        raise ValueError("history_ is no list of records")
    if type(model.n_iter_) is not int or not shape or model.n_features_in_ != shape[0]:
        raise ValueError("n_iter_ or n_features_in_ is none")
    for name in ("alignment_", "centered_alignment_", "r2_"):
        if not isinstance(getattr(model, name, 0.0), int | float):
            raise ValueError(f"{name} is no number")
    if model.fill_ is not None:
        check_array("fill_", model.fill_, shape)


def _try_maps(model: DeepKernelizedAutoencoder, shape: tuple[int, ...]) -> None:
    """Map a row there and back: whatever does not fit is found here, not by a user."""
    maps: Any = model._maps
    if any(isinstance(m, EvaluatedRows) and m.kernel is None for m in maps.modules()):
        with torch.no_grad():
            rows = maps.decode(torch.zeros(1, model.n_components_))
        if tuple(rows.shape) != (1, *shape):
            raise ValueError(f"the decoder gives rows of shape {tuple(rows.shape)[1:]}")
        return
    rows = np.zeros((1, *shape), dtype=np.float32)
    check_network(maps, rows, model.n_components_)
    with torch.no_grad():
        codes = maps.encode(torch.from_numpy(rows))
        if not codes.isfinite().all() or not maps.decode(codes).isfinite().all():
            raise ValueError("the network gives NaN or infinite values")


REGISTRY = Registry(
    networks.CODECS
    | foreign.CODECS
    | {kind.__name__: _methods(kind) for kind in (*_KERNELS, ArrayForest, Mixtures)}
    | {
        "DeepKernelizedAutoencoder": Codec(
            DeepKernelizedAutoencoder, _autoencoder_state, _build_autoencoder
        ),
        "KernelPCA": Codec(KernelPCA, _model_state, KernelPCA.from_state),
        "PreImage": Codec(PreImage, _model_state, PreImage.from_state),
    }
)
#: What `save` takes: each of them, or a pipeline that ends in one.
MODELS = (DeepKernelizedAutoencoder, KernelPCA, PreImage, ProbabilisticClusterKernel)


def why_not_plain(value: Any) -> str | None:
    """Say what of a value no file can hold; None if it can."""
    try:
        encode(value, REGISTRY)
    except NotPlainError as error:
        return str(error).replace("the value", "it")
    return None
