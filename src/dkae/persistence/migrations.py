"""Models in the format of 0.1 and 0.2: the weights, and one JSON text for everything else.

That format has no checksum, and only kernels by name. Whatever it says goes the way of any other
state, and is checked there.
"""

from typing import Any

from torch import Tensor

from dkae._support.states import check_type
from dkae.autoencoder import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel
from dkae.persistence.models import REGISTRY

FORMAT_1 = "dkae model 1"

#: What is not in a file must not turn into a default of today when `fit` is called again.
_DEFAULTS = {
    "alignment": "frobenius",
    "network": "stacked",
    "standardize": False,
    "layer_norm": False,
    "decoder_max_iter": 0,
}
#: Learned attributes under the names that they still have.
_LEARNT = ("history_", "kernel_scale_", "n_features_in_", "n_iter_")


def model_of_format_1(
    described: dict[str, Any], weights: dict[str, Tensor]
) -> DeepKernelizedAutoencoder:
    """Return the model that a file of format 1 describes."""
    params = {name: v for name, v in check_type(described, "params", dict).items() if v is not None}
    if "steps_per_epoch" not in params and "epoch" in params:  # its name in files of 0.1
        params["steps_per_epoch"] = params.pop("epoch")
    attributes = check_type(described, "attributes", dict)
    kernel = _kernel(described.get("kernel"))
    kind, network = _network(described, weights)
    shape = (attributes["n_features_in_"],) if kind == "Autoencoder" else network.config["shape"]
    learnt = {name: attributes[name] for name in _LEARNT} | {
        "network_": network,
        "kernel_": kernel,
        "scaling_": None,
        "fill_": None,
        "row_shape_": tuple(shape),
        "n_components_": getattr(network, "n_components", None) or network.config["n_components"],
    }
    if "feature_names" in described:
        learnt["feature_names_in_"] = described["feature_names"]
    if "stack" in described:
        build = REGISTRY.codecs["StackedNetwork"].from_state
        params["network"] = build(check_type(described, "stack", dict))
    if kind != "Autoencoder":
        params.pop("network", None)
    absent = _DEFAULTS | {"kernel": kernel or "precomputed"}
    state = {"params": absent | params, "learnt": learnt}
    state["params"].pop("device", None)
    build_model = REGISTRY.codecs["DeepKernelizedAutoencoder"].from_state
    model: DeepKernelizedAutoencoder = build_model(state)
    return model


def _kernel(described: Any) -> PairwiseKernel | None:
    if described is None:
        return None
    if not isinstance(described, dict):
        raise ValueError("the kernel is none")
    learnt = {"gamma_": described.get("gamma")}
    return PairwiseKernel.from_state({"params": described, "learnt": learnt})


def _network(described: dict[str, Any], weights: dict[str, Tensor]) -> tuple[str, Any]:
    """Return the name of the network's class, and the network."""
    if "network" not in described:
        state: dict[str, Any] = {"layers": described.get("layers"), "weights": weights}
        return "Autoencoder", REGISTRY.codecs["Autoencoder"].from_state(state)
    network = check_type(described, "network", dict)
    kind = network.get("kind")
    if kind not in ("ConvolutionalAutoencoder", "ResidualAutoencoder"):
        raise ValueError(f"{str(kind)[:80]!r} is no network of this package")
    state = {"config": network.get("config"), "weights": weights}
    return kind, REGISTRY.codecs[kind].from_state(state)
