r"""How a step runs: on which device, in float32, in how many processes.

Each of W processes has a part of the batch, and all have its loss. With the codes :math:`c_r` of
the rows of process r, the Gram matrix of the batch needs all of them. They are gathered, and each
process computes the loss of all pairs,

.. math:: L = \frac1W \sum_r (1 - \lambda) L_r(x_r, \tilde x_r) + \lambda L_c(C, P), \qquad
    C = c\,c^\top, \quad c = (c_1, \dots, c_W) ,

but a gradient only through its own part. The gradients of the processes are averaged, so L_c counts
W times for the own part: the average is the gradient of one process with the whole batch. A gather
without gradients would give 1/W of it, and the pairs within each process alone another matrix.
"""

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
from dkae.training.rank_checks import check_same


@dataclass
class Engine:
    """A device, and the processes that train together."""

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

    def synchronize(self, network: nn.Module) -> None:
        """Give all processes the network of the first, statistics of batches included."""
        network.to(self.device)
        tensors = [t.detach() for t in network.state_dict().values() if isinstance(t, Tensor)]
        shapes = ", ".join(f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors)
        check_same(self.processes, {"the shapes of the network": shapes})
        self.processes.copy_first(*tensors)

    def forward(
        self, network: Any, inputs: Tensor, is_encoder_fixed: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the codes and the reconstructions of a batch."""
        if is_encoder_fixed:  # as `transform` gives them: no gradient, no dropout
            with evaluating(network), torch.no_grad():
                codes = network.encode(inputs)
        else:
            codes = network.encode(inputs)
        return codes, network.decode(codes)

    def gather(self, codes: Tensor) -> Tensor:
        """Return the codes of the whole batch, with their gradients."""
        if self.processes.size == 1 or not torch.is_grad_enabled():
            return codes
        whole: Tensor = GatherRows.apply(codes, self.processes)  # type: ignore[no-untyped-call]
        return whole

    def mean(self, losses: Tensor) -> Tensor:
        """Return the losses of the whole batch."""
        self.processes.sum(losses)
        return losses / self.processes.size

    def mean_of(self, held_out: Sequence[Tensor]) -> Tensor | None:
        """Return the mean losses over all held-out rows, or None without such rows."""
        if self.processes.size == 1:
            return torch.stack(list(held_out)).mean(dim=0) if held_out else None
        sums = torch.zeros(4, device=self.device)  # three losses, and the number of their blocks
        for losses in held_out:
            sums += torch.cat([losses, torch.ones_like(losses[:1])])
        self.processes.sum(sums)
        return sums[:3] / sums[3] if sums[3] > 0 else None

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Average the gradients; a parameter that no process uses keeps none."""
        if self.processes.size == 1:
            return
        used = torch.tensor([p.grad is not None for p in parameters], device=self.device)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        sums = torch.cat([used.to(gradients[0].dtype), *[g.ravel() for g in gradients]])
        self.processes.sum(sums.div_(self.processes.size))
        means = torch.split(sums, [len(parameters), *[p.numel() for p in parameters]])
        for p, mean, is_used in zip(parameters, means[1:], means[0].tolist(), strict=True):
            if is_used:
                p.grad = mean.view_as(p).to(p.dtype)

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


class GatherRows(torch.autograd.Function):
    """The rows of all processes; each has W times the gradient of its own part."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, processes: Processes) -> Tensor:
        ctx.processes = processes
        return processes.rows(part, in_step=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # All processes compute the same loss: the others' gradients of this part are this one.
        size = ctx.processes.size
        return size * gradient.chunk(size)[ctx.processes.rank], None
