"""Networks as a file holds them: a configuration, and weights that must fit it.

A network is built without memory, on torch's device "meta", from its configuration; then the
tensors of the file take the places of its weights. Nothing is allocated on the word of a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.json_state import Fields, check_form
from dkae.networks import Layer
from dkae.persistence.schema import N_ROWS, Cost, Scope, Writer


@dataclass(frozen=True)
class CustomNetwork:
    """The weights of a network whose code no file holds, under the name of its class."""

    name: str
    weights: Mapping[str, Tensor]


@contextmanager
def plain_torch() -> Iterator[None]:
    """Build networks with torch's own defaults, whatever the caller has set."""
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


def network_state(network: Any, writer: Writer) -> Fields:
    """Return configuration and weights of a network; its scaling stands by itself."""
    weights = network.state_dict()
    return {
        **_config(network),
        "scaling": getattr(network, "scaling", None),
        "weights": {n: t for n, t in weights.items() if not n.startswith("scaling.")},
    }


def _config(network: Any) -> Fields:
    """Return the arguments that build a network."""
    if hasattr(network, "config"):
        return dict(network.config)
    if hasattr(network, "layers"):
        return {"layers": [layer.config for layer in network.layers]}
    n_features, n_components = network.linear.weight.shape
    return {
        "n_components": n_components,
        "n_features": n_features,
        "hidden_layer_sizes": [layer.out_features for layer in network.hidden],
        "output_activation": network.output_activation,
    }


def check_network(fields: Fields, scope: Scope) -> None:
    """Raise an error for more layers than weights, or for rows that no weights explain."""
    lists = (fields.get(name, ()) for name in ("layers", "channels", "hidden_layer_sizes"))
    if max(fields.get("n_blocks", 0), *map(len, lists)) > len(fields["weights"]):
        raise ValueError("there are more layers than weights")
    if math.prod(fields.get("shape", ())) > scope["widest"]:
        raise ValueError(f"rows of shape {fields['shape']} are more than the weights explain")


def build_network(kind: Any, fields: Fields) -> nn.Module:
    """Return the network that `network_state` describes; its parameters are these tensors."""
    with torch.device("meta"):
        network: nn.Module = _blank(
            kind, {n: v for n, v in fields.items() if n not in ("scaling", "weights")}
        )
    check_form(fields["weights"], dict(network.state_dict()), "weights:")
    network.load_state_dict(fields["weights"], assign=True)
    if fields.get("scaling") is not None:
        network.scaling = fields["scaling"]
    network.eval()
    return network


def _blank(kind: Any, config: Fields) -> Any:
    """Return a network of this configuration, whose scaling is still to come."""
    if "layers" in config:
        return kind([Layer(**layer) for layer in config["layers"]])
    if "hidden_layer_sizes" in config:
        return kind(**config, scaling=nn.Module())
    return kind(**config)


def convolution_cost(fields: Fields, parts: Cost) -> Cost:
    """Return what the convolutions take on all places of an image, up and down."""
    before, *sides = fields["shape"]
    work, memory = sum(t.numel() for t in fields["weights"].values()), 0
    for channels in fields["channels"]:
        sides = [math.ceil(n / 2) for n in sides]
        n_places = math.prod(sides)
        work += 2 * 9 * before * channels * n_places
        memory = max(memory, channels * n_places)
        before = channels
    return Cost(0, N_ROWS * work, memory + math.prod(fields["shape"]))


def factory_of(network: Any) -> Any:
    """Return what builds a configured network for other rows."""
    sizes = {k: v for k, v in network.config.items() if k not in ("shape", "n_components")}
    kind: Any = type(network)
    return partial(kind, **sizes)


def scaling_state(scaling: Any, writer: Writer) -> Fields:
    """Return the arrays of a scaling, and whether it scales outputs."""
    return {**scaling.state_dict(), "scales_output": scaling.scales_output}
