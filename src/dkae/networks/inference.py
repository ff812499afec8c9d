"""A trained network on one chunk of rows in memory, without gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.devices import float32_math
from dkae.grams import Floats
from dkae.networks.protocol import evaluating


def encode_rows(network: nn.Module, rows: Floats) -> Floats:
    """Return the codes of rows."""
    return _applied(network, network.encode, rows)  # type: ignore[arg-type]


def decode_rows(network: nn.Module, codes: Floats) -> Floats:
    """Return the rows that codes decode to."""
    return _applied(network, network.decode, codes)  # type: ignore[arg-type]


def _applied(network: nn.Module, function: Callable[[Tensor], Tensor], rows: Floats) -> Floats:
    device = next(network.parameters()).device
    with evaluating(network), float32_math(), torch.inference_mode():
        values: Floats = function(torch.from_numpy(rows).to(device)).cpu().numpy()
    return values


def summary_of(network: nn.Module) -> str:
    """Return a few words about a network."""
    own: Any = getattr(network, "summary", None)
    if own is not None:
        return str(own)
    n = sum(parameter.numel() for parameter in network.parameters())
    return f"{type(network).__name__} of {n:,} weights"
