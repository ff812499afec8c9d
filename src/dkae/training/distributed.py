r"""A step in several processes: each has a part of the batch, all have its loss.

With the codes :math:`c_r` of the rows of process r, the Gram matrix of the batch needs all of them.
They are gathered, and each process computes the loss of all pairs,

.. math:: L = \frac1W \sum_r (1 - \lambda) L_r(x_r, \tilde x_r) + \lambda L_c(C, P), \qquad
    C = c\,c^\top, \quad c = (c_1, \dots, c_W) ,

but a gradient only through its own part. The gradients of the W processes are averaged, so L_c
counts W times for the own part: the average is the gradient of one process with the whole batch. A
gather without gradients would give 1/W of it, and the pairs within each process alone another
matrix.
"""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from dkae._support.processes import DistributedProcesses, gathered
from dkae.training.agreement import check_same
from dkae.training.engine import Engine


class DistributedEngine(Engine):
    """One of several processes, each with its part of every batch."""

    @property
    def _group(self) -> Any:
        assert isinstance(self.processes, DistributedProcesses)
        return self.processes.model

    def synchronize(self, network: nn.Module) -> None:
        tensors = [t for t in network.state_dict().values() if isinstance(t, Tensor)]
        shapes = ", ".join(f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors)
        check_same(self.processes, {"the shapes of the network": shapes})
        for tensor in tensors:
            dist.broadcast(tensor.detach(), src=0, group=self._group)

    def gather(self, codes: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return codes
        whole: Tensor = GatherRows.apply(codes, self._group)  # type: ignore[no-untyped-call]
        return whole

    def mean(self, losses: Tensor) -> Tensor:
        dist.all_reduce(losses, group=self._group)
        return losses / self.processes.size

    def mean_of(self, held_out: Sequence[Tensor]) -> Tensor | None:
        sums = torch.zeros(4, device=self.device)  # three losses, and the number of their blocks
        for losses in held_out:
            sums += torch.cat([losses, torch.ones_like(losses[:1])])
        dist.all_reduce(sums, group=self._group)
        return sums[:3] / sums[3] if sums[3] > 0 else None

    def average(self, parameters: Sequence[nn.Parameter]) -> None:
        """Average the gradients; a parameter that no process uses keeps none."""
        used = torch.tensor([p.grad is not None for p in parameters], device=self.device)
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        sums = torch.cat([used.to(gradients[0].dtype), *[g.ravel() for g in gradients]])
        dist.all_reduce(sums.div_(self.processes.size), group=self._group)
        means = torch.split(sums, [len(parameters), *[p.numel() for p in parameters]])
        for p, mean, is_used in zip(parameters, means[1:], means[0].tolist(), strict=True):
            if is_used:
                p.grad = mean.view_as(p).to(p.dtype)


class GatherRows(torch.autograd.Function):
    """The rows of all processes; each has W times the gradient of its own part."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, group: Any) -> Tensor:
        ctx.rank, ctx.size = dist.get_rank(group), dist.get_world_size(group)
        return gathered(part, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # All processes compute the same loss: the others' gradients of this part are this one.
        return ctx.size * gradient.chunk(ctx.size)[ctx.rank], None
