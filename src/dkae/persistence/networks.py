"""Networks of this package as plain values.

A network is built without memory, on torch's device "meta", from what the file says of its layers;
then the tensors of the file take the places of its weights. If they do not fit, nothing has been
allocated on the word of a file.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn

from dkae._support.states import check_array, check_finite_number, check_type
from dkae._support.trees import Codec, State
from dkae.kernels.base import Kernel
from dkae.kernels.formulas import FORMULAS, EvaluatedRows, Filled, FormulaRows
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

#: Entries of a configuration that say how many layers there are.
_COUNTS = ("n_blocks", "channels")
#: A row has at most so many times as many features as its network has weights.
MAX_FEATURES_PER_WEIGHT = 64


class OwnNetwork(nn.Module):
    """The weights of a network of the user's, whose code no file holds, under its name."""

    def __init__(self, name: str, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self.name, self.weights = name, weights


def assembled(build: Callable[[], nn.Module], weights: Mapping[str, Any]) -> nn.Module:
    """Return a module whose parameters and buffers are these tensors, and no copies of them."""
    with torch.device("meta"):
        module = build()
    expected = module.state_dict()
    if weights.keys() != expected.keys():
        names = sorted(weights.keys() ^ expected.keys())
        raise ValueError(f"weights are missing or too many: {', '.join(names)[:200]}")
    for name, weight in weights.items():
        _check_weight(name, weight, expected[name])
    module.load_state_dict(weights, assign=True)
    return module.eval()


def _check_weight(name: str, weight: Any, expected: Tensor) -> None:
    if not isinstance(weight, Tensor) or weight.dtype is not expected.dtype:
        raise ValueError(f"the weight {name[:80]!r} is not a tensor of {expected.dtype}")
    if weight.shape != expected.shape:
        found, right = tuple(weight.shape), tuple(expected.shape)
        raise ValueError(f"the weight {name[:80]!r} has the shape {found}, expected {right}")
    if weight.is_floating_point() and not weight.isfinite().all():
        raise ValueError(f"the weight {name[:80]!r} has NaN or infinite values")


def check_row_shape(network: nn.Module, shape: Any) -> tuple[int, ...]:
    """Return the shape of a row if a network of this size can have such rows."""
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("the shape of a row is none")
    n_weights = sum(t.numel() for t in network.state_dict().values() if isinstance(t, Tensor))
    if math.prod(shape) > MAX_FEATURES_PER_WEIGHT * max(1, n_weights):
        raise ValueError(
            f"rows of shape {shape} are too large for a network of {n_weights} weights"
        )
    return shape


# --- the stack -----------------------------------------------------------------------------------


def _stack_state(network: Autoencoder) -> State:
    path = network.linear_path
    return {
        "layers": [layer.config for layer in network.layers],
        "linear_path": None if path is None else path.weight,
        "weights": dict(network.state_dict()),
    }


def _build_stack(state: State) -> nn.Module:
    layers, weights = check_type(state, "layers", list), check_type(state, "weights", dict)
    if not 1 <= len(layers) <= len(weights):
        raise ValueError(f"there are {len(layers)} layers for {len(weights)} weights")
    return assembled(lambda: _stack(layers, state.get("linear_path")), weights)


def _stack(configs: list[dict[str, Any]], path_weight: float | None) -> Autoencoder:
    layers = [Layer(**config) for config in configs]
    if path_weight is None:
        return Autoencoder(layers)
    n_features, n_components = layers[0].config["n_in"], layers[-1].config["n_out"]
    directions = torch.empty(n_components, n_features)
    return Autoencoder(
        layers, linear_path=LinearPath(directions, torch.empty(n_features), float(path_weight))
    )


def _factory_state(factory: StackedNetwork) -> State:
    """Return the parameters of the factory; layers that it starts from have done their work."""
    return {f.name: getattr(factory, f.name) for f in fields(factory) if f.name != "lower"}


def stack_factory(network: Autoencoder) -> StackedNetwork:
    """Return the factory of such a stack: `fit` builds this network again, not the default one."""
    layers = network.layers
    return StackedNetwork(
        tuple(layer.config["n_out"] for layer in layers[:-1]),
        activation=layers[0].activation,
        code_activation=layers[-1].activation,
        output_activation=layers[0].output_activation,
        layer_norm=layers[0].norm,
        linear_path=0.0 if network.linear_path is None else network.linear_path.weight,
    )


# --- the kernel layer ----------------------------------------------------------------------------

#: Begin the names of tensors of parts that stand in a state by themselves.
_PARTS = ("similarity.", "decoder.scaling.")


def _layer_state(network: KernelLayer) -> State:
    decoder: Any = network.decoder
    return {
        "similarity": network.similarity,
        "scaling": decoder.scaling,
        "hidden_layer_sizes": [layer.out_features for layer in decoder.hidden],
        "output_activation": decoder.output_activation,
        "weights": {n: t for n, t in network.state_dict().items() if not n.startswith(_PARTS)},
    }


def _build_layer(state: State) -> nn.Module:
    weights = check_type(state, "weights", dict)
    similarity: Any = check_type(state, "similarity", (FormulaRows, EvaluatedRows, Filled))
    scaling = check_type(state, "scaling", Scaling)
    sizes = check_type(state, "hidden_layer_sizes", list)
    m, n_kernel = check_array("weight", weights.get("weight"), (None, None)).shape
    d, n_linear = check_array("directions", weights.get("directions"), (None, None)).shape
    rows: Any = getattr(similarity, "function", similarity).rows  # of what is filled, if it is
    if tuple(rows.shape) != (m, d) or scaling.mean.shape != (d,) or len(sizes) > len(weights):
        raise ValueError("landmarks, linear path, scaling and layers do not fit each other")

    def build() -> nn.Module:
        nothing: Any = nn.Identity()  # in place of parts that are whole already
        output = state["output_activation"]
        decoder = RidgeDecoder(n_kernel + n_linear, d, sizes, nothing, output)
        weight, directions = torch.empty(m, n_kernel), torch.empty(d, n_linear)
        return KernelLayer(nothing, weight, directions, torch.empty(d), decoder)

    layer: Any = assembled(build, weights)
    layer.similarity, layer.decoder.scaling = similarity, scaling
    return cast(nn.Module, layer)


def _build_scaling(state: State) -> Scaling:
    mean, scale = (check_type(state, name, Tensor) for name in ("mean", "scale"))
    check_array("mean", mean, mean.shape)
    check_array("scale", scale, mean.shape if scale.ndim else ())
    fill = state.get("fill")
    if fill is not None:
        check_array("fill", fill, mean.shape)
    if not (scale > 0).all():
        raise ValueError("a scale is not positive")
    return Scaling(mean, scale, fill, scales_output=check_type(state, "scales_output", bool))


def _scaling_state(scaling: Scaling) -> State:
    return {**scaling.state_dict(), "scales_output": scaling.scales_output}


def _formula_state(module: FormulaRows) -> State:
    return {**module.config, "rows": module.rows}


def _build_formula(state: State) -> FormulaRows:
    metric, params = check_type(state, "metric", str), check_type(state, "params", dict)
    rows = check_array("rows", state.get("rows"), (None, None))
    if metric not in FORMULAS or sorted(params) != sorted(FORMULAS[metric][1]):
        raise ValueError(f"{metric[:80]!r} is no formula, or has other parameters")
    numbers = {name: check_finite_number(name, value) for name, value in params.items()}
    if numbers.get("gamma", 0) < 0:
        raise ValueError("a gamma is negative")
    return FormulaRows(metric, numbers, rows)


def _evaluated_state(module: EvaluatedRows) -> State:
    return {"kernel": module.kernel, "rows": module.rows}


def _build_evaluated(state: State) -> EvaluatedRows:
    rows = check_array("rows", state.get("rows"), (None, None), may_be_missing=True)
    kernel = None if state.get("kernel") is None else check_type(state, "kernel", Kernel)
    return EvaluatedRows(kernel, rows.numpy())


def _build_filled(state: State) -> Filled:
    function = check_type(state, "function", (FormulaRows, EvaluatedRows))
    return Filled(function, check_array("fill", state.get("fill"), (function.rows.shape[1],)))


# --- networks with a configuration, and those of users -------------------------------------------


def _configured_state(network: Any) -> State:
    return {"config": network.config, "weights": dict(network.state_dict())}


def _build_configured(state: State, kind: Callable[..., nn.Module]) -> nn.Module:
    config, weights = check_type(state, "config", dict), check_type(state, "weights", dict)
    # Modules take memory, even those without weights.
    counts = [len(v) if isinstance(v, list) else v for v in map(config.get, _COUNTS)]
    if any(isinstance(n, int) and n > len(weights) for n in counts):
        raise ValueError("there are more layers than weights")
    return assembled(partial(kind, **config), weights)


def configured_factory(network: Any) -> Any:
    """Return what builds such a network for other rows."""
    sizes = {k: v for k, v in network.config.items() if k not in ("shape", "n_components")}
    kind: Any = type(network)
    return partial(kind, **sizes)


def _build_own(state: State) -> OwnNetwork:
    weights = check_type(state, "weights", dict)
    for name, weight in weights.items():
        check_array(name, weight, weight.shape if isinstance(weight, Tensor) else ())
    return OwnNetwork(check_type(state, "name", str), weights)


_CONFIGURED: dict[str, Any] = {
    kind.__name__: kind for kind in (ConvolutionalAutoencoder, ResidualAutoencoder)
}
CODECS = {
    "Autoencoder": Codec(Autoencoder, _stack_state, _build_stack),
    "StackedNetwork": Codec(StackedNetwork, _factory_state, lambda s: StackedNetwork(**s)),
    "KernelLayerNetwork": Codec(KernelLayerNetwork, vars, lambda s: KernelLayerNetwork(**s)),
    "KernelLayer": Codec(KernelLayer, _layer_state, _build_layer),
    "Scaling": Codec(Scaling, _scaling_state, _build_scaling),
    "FormulaRows": Codec(FormulaRows, _formula_state, _build_formula),
    "EvaluatedRows": Codec(EvaluatedRows, _evaluated_state, _build_evaluated),
    "Filled": Codec(Filled, lambda m: {"function": m.function, "fill": m.fill}, _build_filled),
    "OwnNetwork": Codec(OwnNetwork, lambda n: {"name": n.name, "weights": n.weights}, _build_own),
    **{
        name: Codec(kind, _configured_state, partial(_build_configured, kind=kind))
        for name, kind in _CONFIGURED.items()
    },
}
