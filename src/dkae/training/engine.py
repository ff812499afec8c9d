"""How a step runs: on which device, in which precision, in how many processes."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dkae._runtime.devices import autocast
from dkae.networks import evaluating
from dkae.training.optimization import Optimizer


@dataclass
class Engine:
    """One process on one device.

    An engine for several processes overrides these three methods: it would give each process its
    share of the rows in `forward` and gather the codes, and average the gradients in `update`.
    """

    #: Where the network runs.
    device: torch.device
    #: Precision of the network, "float32" or "bfloat16"; the losses are always in float32.
    precision: str = "float32"
    #: Gradients are clipped to this norm.
    max_grad_norm: float | None = None

    def prepare(self, network: nn.Module) -> None:
        """Put the network where it is trained."""
        network.to(self.device)

    def forward(
        self,
        network: nn.Module,
        inputs: Tensor,
        is_encoder_fixed: bool,
        kernel_values: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the codes and the reconstructions of a batch."""
        with autocast(self.device, self.precision):
            if kernel_values is not None:
                codes: Tensor = network.encode_values(kernel_values, inputs)  # type: ignore[operator]
            else:
                codes = (_encode_as_it_is if is_encoder_fixed else _encode)(network, inputs)
            return codes, network.decode(codes)  # type: ignore[operator]

    def update(
        self, loss: Tensor, parameters: Sequence[nn.Parameter], optimizer: Optimizer
    ) -> None:
        """Take one step of the optimizer down the gradient of the loss."""
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
        optimizer.step()


def _encode(network: nn.Module, inputs: Tensor) -> Tensor:
    codes: Tensor = network.encode(inputs)  # type: ignore[operator]
    return codes


def _encode_as_it_is(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return codes as `transform` gives them: no gradient, no dropout, no statistics of batches."""
    with evaluating(network), torch.no_grad():
        return _encode(network, inputs)
