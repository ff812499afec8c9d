"""How a step runs: on which device, in float32, in how many processes."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from dkae._support.devices import float32_math, single_threaded_blas
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

    @contextmanager
    def running(self) -> Iterator[None]:
        """Prepare the process for a training: steps are in float32, BLAS has one thread."""
        with float32_math(), single_threaded_blas(self.device):
            yield

    def prepare(self, network: nn.Module) -> None:
        """Put the network where it is trained."""
        network.to(self.device)

    def synchronize(self, network: nn.Module) -> None:
        """Give all processes the network of the first, statistics of batches included."""

    def forward(
        self, network: Any, inputs: Tensor, is_encoder_fixed: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the codes and the reconstructions of a batch."""
        codes = (_fixed_codes if is_encoder_fixed else _codes)(network, inputs)
        return codes, network.decode(codes)

    def gather(self, codes: Tensor) -> Tensor:
        """Return the codes of the whole batch, with their gradients."""
        return codes

    def mean(self, losses: Tensor) -> Tensor:
        """Return the losses of the whole batch."""
        return losses

    def mean_of(self, held_out: Sequence[Tensor]) -> Tensor | None:
        """Return the mean losses over all held-out rows; None if there are none."""
        return torch.stack(list(held_out)).mean(dim=0) if held_out else None

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Average the gradients over all processes."""

    def update(
        self, loss: Tensor, parameters: Sequence[nn.Parameter], optimizer: Optimizer
    ) -> None:
        """Take one step of the optimizer down the gradient of the loss."""
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.average(parameters)
        if self.max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_(parameters, self.max_grad_norm)
        optimizer.step()


def _codes(network: Any, inputs: Tensor) -> Tensor:
    codes: Tensor = network.encode(inputs)
    return codes


def _fixed_codes(network: nn.Module, inputs: Tensor) -> Tensor:
    """Return codes as `transform` gives them: no gradient, no dropout, no statistics of batches."""
    with evaluating(network), torch.no_grad():
        return _codes(network, inputs)
