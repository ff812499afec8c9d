"""Estimators of this package as plain values: parameters, and what was learnt.

A parameter that is code (a function as measure or optimizer, a callback, a factory) cannot stand in
a file. It is replaced by its name, or left out: what was learnt does not need it, and when `fit` is
called again, a name that nobody knows is an error.
"""

from typing import Any

import numpy as np
import torch
from torch import nn

from dkae._runtime.states import StateMixin
from dkae._runtime.trees import Codec, NotPlainError, Registry, State, encode
from dkae.estimator import DeepKernelizedAutoencoder
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
            plain[name] = getattr(value, "__name__", type(value).__name__)
        elif name == "kernel":
            plain[name] = "precomputed"
    return plain


def _model_state(model: StateMixin) -> State:
    state = model.to_state()
    return state | {"params": _plain_params(state["params"])}


def _autoencoder_state(model: DeepKernelizedAutoencoder) -> State:
    state = _model_state(model)
    params, network = state["params"], model.network_
    params.pop("device", None)  # that of whoever reads it
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
    if not isinstance(network, OwnNetwork):
        _try_maps(model, shape)
    if isinstance(network, _CONFIGURED):
        model.network = configured_factory(network)
    elif not isinstance(model.network, str | StackedNetwork | KernelLayerNetwork):
        raise ValueError("network is none")
    return model


def _try_maps(model: DeepKernelizedAutoencoder, shape: tuple[int, ...]) -> None:
    """Map a row there and back: whatever does not fit is found here, not by a user."""
    maps: Any = model._maps
    if any(isinstance(m, EvaluatedRows) and m.kernel is None for m in maps.modules()):
        with torch.no_grad():
            rows = maps.decode(torch.zeros(1, model.n_components_))
        if tuple(rows.shape) != (1, *shape):
            raise ValueError(f"the decoder gives rows of shape {tuple(rows.shape)[1:]}")
        return
    check_network(maps, np.zeros((1, *shape), dtype=np.float32), model.n_components_)


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
