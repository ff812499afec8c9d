"""How a step runs: on which device, in which precision, in how many processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.processes import ALONE, Processes
from dkae.networks import evaluating
from dkae.training.optimization import Optimizer


@dataclass
class Engine:
    """One process on one device; `dkae.training.distributed` has one for several processes."""

    #: Where the network runs.
    device: torch.device
    #: Gradients are clipped to this norm.
    max_grad_norm: float | None = None
    #: Who trains together.
    processes: Processes = ALONE

    def __post_init__(self) -> None:
        self._run: Callable[..., tuple[Tensor, Tensor]] = run_maps

    def prepare(self, network: nn.Module) -> None:
        """Put the network where it is trained."""
        network.to(self.device)

    def begin(self, network: nn.Module, alignment_weight: float) -> None:
        """Prepare for a phase: what does not learn in it has no gradients by now."""

    def forward(
        self,
        network: nn.Module,
        inputs: Tensor,
        is_encoder_fixed: bool,
        kernel_values: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return the codes and the reconstructions of a batch."""
        return self._run(network, inputs, is_encoder_fixed, kernel_values)

    def gather(self, codes: Tensor) -> Tensor:
        """Return the codes of the whole batch, with their gradients."""
        return codes

    def mean(self, losses: Tensor) -> Tensor:
        """Return the losses of the whole batch."""
        return losses

    def mean_of(self, held_out: Sequence[Tensor]) -> Tensor | None:
        """Return the mean losses over all that is held out; None if nothing is."""
        return torch.stack(list(held_out)).mean(dim=0) if held_out else None

    def update(
        self, loss: Tensor, parameters: Sequence[nn.Parameter], optimizer: Optimizer
    ) -> None:
        """Take one step of the optimizer down the gradient of the loss."""
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
        optimizer.step()

    def synchronize(self, network: nn.Module) -> None:
        """Give all processes the network of the first, statistics of batches included."""


def run_maps(
    network: Any, inputs: Tensor, is_encoder_fixed: bool, kernel_values: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Return the codes and the reconstructions of inputs."""
    if kernel_values is not None:
        codes: Tensor = network.encode_values(kernel_values, inputs)
    else:
        codes = (_encode_as_it_is if is_encoder_fixed else _encode)(network, inputs)
    return codes, network.decode(codes)


def _encode(network: Any, inputs: Tensor) -> Tensor:
    codes: Tensor = network.encode(inputs)
    return codes


def _encode_as_it_is(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return codes as `transform` gives them: no gradient, no dropout, no statistics of batches."""
    with evaluating(network), torch.no_grad():
        return _encode(network, inputs)
