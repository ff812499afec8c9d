"""Networks as a file holds them: a configuration, and weights that must fit it.

A network is built without memory, on torch's device "meta", from its configuration; then the
tensors of the file take the places of its weights. Nothing is allocated on the word of a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.json_state import Fields, check_form
from dkae.persistence.schema import Cost, Scope


class CustomNetwork(nn.Module):
    """The weights of a network whose code no file holds, under the name of its class."""

    def __init__(self, name: str, weights: Mapping[str, Tensor]) -> None:
        super().__init__()
        self.name, self.weights = name, dict(weights)


@contextmanager
def plain_torch() -> Iterator[None]:
    """Keep the caller's defaults of torch and its random numbers out of what is built here."""
    dtype = torch.get_default_dtype()
    with (
        torch.random.fork_rng(devices=[]),
        torch.device("cpu"),
        torch.autocast("cpu", enabled=False),
    ):
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


def assembled(build: Callable[[], nn.Module], weights: Mapping[str, Tensor]) -> nn.Module:
    """Return a module whose parameters and buffers are these tensors, and no copies of them."""
    with torch.device("meta"):
        module = build()
    check_form(weights, dict(module.state_dict()), "weights:")
    module.load_state_dict(weights, assign=True)
    return module.eval()


# --- the stack -----------------------------------------------------------------------------------


def stack_state(network: Any) -> Fields:
    """Return what builds a stack again; its scaling stands by itself."""
    weights = network.state_dict()
    return {
        "layers": [layer.config for layer in network.layers],
        "scaling": getattr(network, "scaling", None),
        "weights": {n: t for n, t in weights.items() if not n.startswith("scaling.")},
    }


def build_stack(kind: Any, fields: Fields) -> nn.Module:
    """Return the stack that `stack_state` describes."""
    from dkae.networks import Layer

    layers = fields["layers"]
    network = assembled(lambda: kind([Layer(**config) for config in layers]), fields["weights"])
    if fields.get("scaling") is not None:
        network.scaling = fields["scaling"]
    return network


def check_stack(fields: Fields, scope: Scope) -> None:
    """Raise an error for more layers than weights: modules take memory too."""
    if len(fields["layers"]) > len(fields["weights"]):
        raise ValueError(f"there are {len(fields['layers'])} layers, more than there are weights")


def scaling_state(scaling: Any) -> Fields:
    """Return the arrays of a scaling, and whether it scales outputs."""
    return {**scaling.state_dict(), "scales_output": scaling.scales_output}


def build_scaling(kind: Any, fields: Fields) -> Any:
    """Return the scaling that `scaling_state` describes."""
    return kind(fields["mean"], fields["scale"], scales_output=fields["scales_output"])


# --- the network of a decoder --------------------------------------------------------------------


def decoder_state(network: Any) -> Fields:
    """Return what builds the network of a decoder again; its scaling stands by itself."""
    weights = network.state_dict()
    return {
        "hidden_layer_sizes": [layer.out_features for layer in network.hidden],
        "output_activation": network.output_activation,
        "scaling": network.scaling,
        "weights": {n: t for n, t in weights.items() if not n.startswith("scaling.")},
    }


def check_decoder_layers(fields: Fields, scope: Scope) -> None:
    """Raise an error for more layers than weights, or for an activation that no decoder has."""
    weights = fields["weights"]
    if len(fields["hidden_layer_sizes"]) > len(weights) or "linear.weight" not in weights:
        raise ValueError("there are more layers than weights")
    if weights["linear.weight"].ndim != 2:
        raise ValueError("linear.weight is not a matrix")
    if fields["output_activation"] not in ("identity", "sigmoid"):
        raise ValueError("output_activation is that of no decoder")


def build_decoder(kind: Any, fields: Fields) -> nn.Module:
    """Return the network that `decoder_state` describes."""
    width, n_components = fields["weights"]["linear.weight"].shape
    sizes, output = fields["hidden_layer_sizes"], fields["output_activation"]
    blank = nn.Module()  # the scaling joins when the weights are in place
    network = assembled(lambda: kind(n_components, width, sizes, blank, output), fields["weights"])
    network.scaling = fields["scaling"]
    return network


# --- networks with a configuration ---------------------------------------------------------------


def configured_state(network: Any) -> Fields:
    """Return the configuration and the weights."""
    return {**network.config, "weights": dict(network.state_dict())}


def build_configured(kind: Any, fields: Fields) -> nn.Module:
    """Return the network of a configuration."""
    config = {name: value for name, value in fields.items() if name != "weights"}
    return assembled(partial(kind, **config), fields["weights"])


def check_layers(fields: Fields, scope: Scope) -> None:
    """Raise an error for more layers than weights, or for rows that no weights explain."""
    counts = (len(fields.get("channels", ())), fields.get("n_blocks", 0))
    if max(counts) > len(fields["weights"]):
        raise ValueError("there are more layers than weights")
    if math.prod(fields["shape"]) > scope["widest"]:
        raise ValueError(f"rows of shape {fields['shape']} are more than the weights explain")


def convolution_cost(fields: Fields, scope: Scope, parts: Cost) -> Cost:
    """Return what the convolutions take on all places of an image, up and down."""
    before, *size = fields["shape"]
    work = memory = 0
    for channels in fields["channels"]:
        size = [math.ceil(n / 2) for n in size]
        n_places = math.prod(size)
        work += 2 * 9 * before * channels * n_places
        memory = max(memory, channels * n_places)
        before = channels
    n_weights = sum(t.numel() for t in fields["weights"].values())
    return parts.plus(Cost(0, work + n_weights, memory + math.prod(fields["shape"])))


def factory_of(network: Any) -> Any:
    """Return what builds a configured network for other rows."""
    sizes = {k: v for k, v in network.config.items() if k not in ("shape", "n_components")}
    kind: Any = type(network)
    return partial(kind, **sizes)
