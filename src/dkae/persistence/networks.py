"""Networks as plain data that builds them again; their weights are kept apart.

Only networks of this package stand in a file: it holds no code.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dkae.kernels.formulas import EvaluatedRows, Filled, FormulaRows
from dkae.networks import (
    Autoencoder,
    ConvolutionalAutoencoder,
    KernelLayer,
    KernelLayerNetwork,
    Layer,
    LinearPath,
    ResidualAutoencoder,
    RidgeDecoder,
    Scaling,
    StackedNetwork,
)
from dkae.persistence.kernels import can_hold

#: Networks that are a class with a `config`, the arguments that build one.
_CLASSES: dict[str, Any] = {
    kind.__name__: kind for kind in (ConvolutionalAutoencoder, ResidualAutoencoder)
}


def describe_network(network: nn.Module, kernel: Any) -> dict[str, Any]:
    """Return what builds a network; `kernel` is the model's."""
    if type(network) is Autoencoder:
        path = network.linear_path
        described: dict[str, Any] = {"layers": [layer.config for layer in network.layers]}
        return described if path is None else described | {"linear_path": path.weight}
    if type(network) is KernelLayer:
        return {"kernel_layer": _describe_kernel_layer(network, kernel)}
    kind = type(network).__name__
    if _CLASSES.get(kind) is not type(network):
        raise ValueError(
            f"model has a network of your own ({kind}), and a model file holds no code: pickle the "
            "model, or keep network_.state_dict()"
        )
    return {"network": {"kind": kind, "config": network.config}}


def describe_scaling(scaling: Scaling | None) -> dict[str, Any] | None:
    """Return what builds a scaling."""
    return None if scaling is None else scaling.config


def describe_stack(network: Any) -> dict[str, Any]:
    """Return the arguments of the factory of such a stack."""
    layers: list[Layer] = network.layers
    return {
        "hidden_layer_sizes": [layer.config["n_out"] for layer in layers[:-1]],
        "activation": layers[0].activation,
        "code_activation": layers[-1].activation,
        "output_activation": layers[0].output_activation,
        **({"layer_norm": True} if layers[0].norm else {}),
        **({} if network.linear_path is None else {"linear_path": network.linear_path.weight}),
    }


def rebuild_network(model: Any, described: dict[str, Any], weights: dict[str, Tensor]) -> nn.Module:
    """Return the network with weights that are still to be loaded, and tell the model its shape."""
    if "kernel_layer" in described:
        layer = _rebuild_kernel_layer(model, described, weights)
        model.row_shape_ = (model.n_features_in_,)
        model.n_components_ = len(layer.decoder.code_mean)  # type: ignore[arg-type]
        if "spec" in described:  # as with a stack
            model.network = KernelLayerNetwork(**described["spec"])
        return layer
    if "network" not in described:
        return _rebuild_stack(model, described)
    sizes = dict(described["network"]["config"])
    model.row_shape_, model.n_components_ = tuple(sizes.pop("shape")), sizes.pop("n_components")
    model.network = partial(_CLASSES[described["network"]["kind"]], **sizes)
    network: nn.Module = model.network(model.row_shape_, model.n_components_)
    return network


def rebuild_scaling(described: dict[str, Any] | None) -> Scaling | None:
    """Return a scaling whose tensors are still to be loaded."""
    if described is None:
        return None
    mean = torch.zeros(described["mean"])
    fill = torch.zeros(described["mean"]) if described["fill"] else None
    scale = torch.ones(described["scale"])
    return Scaling(mean, scale, fill, scales_output=described["scales_output"])


def _rebuild_stack(model: Any, described: dict[str, Any]) -> Autoencoder:
    layers = [Layer(**config) for config in described["layers"]]
    if not layers:
        raise ValueError("there are no layers")
    n_features, n_components = layers[0].config["n_in"], layers[-1].config["n_out"]
    path = None
    if "linear_path" in described:
        directions = torch.zeros(n_components, n_features)
        path = LinearPath(directions, torch.zeros(n_features), described["linear_path"])
    model.row_shape_, model.n_components_ = (model.n_features_in_,), n_components
    if "stack" in described:  # `fit` builds this network again, not the default one
        model.network = StackedNetwork(**described["stack"])
    return Autoencoder(layers, linear_path=path)


def _describe_kernel_layer(network: KernelLayer, kernel: Any) -> dict[str, Any]:
    similarity: Any = network.similarity
    is_filled = isinstance(similarity, Filled)
    inner = similarity.function if is_filled else similarity
    if isinstance(inner, EvaluatedRows) and not can_hold(kernel):
        raise ValueError(
            f"the model evaluates {kernel} for every code, and a model file does not hold it: "
            "pickle the model, or fit it with network='stacked'"
        )
    decoder: Any = network.decoder
    return {
        "formula": inner.config if isinstance(inner, FormulaRows) else None,
        "filled": is_filled,
        "n_landmarks": len(inner.rows),
        "n_linear": network.n_linear,
        "hidden_layer_sizes": [layer.out_features for layer in decoder.hidden],
        "output_activation": decoder.output_activation,
    }


def _rebuild_kernel_layer(
    model: Any, described: dict[str, Any], weights: dict[str, Tensor]
) -> KernelLayer:
    config, d = described["kernel_layer"], model.n_features_in_
    n_kernel = weights["weight"].shape[1]
    scaling = rebuild_scaling(described["scaling"])
    similarity: nn.Module
    if config["formula"] is not None:
        similarity = FormulaRows(**config["formula"], rows=torch.zeros(config["n_landmarks"], d))
    else:
        prefix = "similarity.function." if config["filled"] else "similarity."
        similarity = EvaluatedRows(model.kernel_, weights[f"{prefix}rows"].numpy())
    if config["filled"]:
        similarity = Filled(similarity, torch.zeros(d))
    if scaling is None:
        raise ValueError("a kernel layer needs a scaling")
    decoder = RidgeDecoder(
        n_kernel + config["n_linear"],
        d,
        config["hidden_layer_sizes"],
        scaling,
        config["output_activation"],
    )
    return KernelLayer(
        similarity,
        torch.zeros(config["n_landmarks"], n_kernel),
        torch.zeros(d, config["n_linear"]),
        torch.zeros(d),
        decoder,
    )
