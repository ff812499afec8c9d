r"""A step in several processes: each has a part of the batch, all have its loss.

With the codes :math:`c_r` of the rows of process r, the Gram matrix of the batch needs all of them.
They are gathered, and each process computes the loss of all pairs,

.. math:: L = \frac1W \sum_r (1 - \lambda) L_r(x_r, \tilde x_r) + \lambda L_c(C, P), \qquad
    C = c\,c^\top, \quad c = (c_1, \dots, c_W) ,

but a gradient only through its own part. Torch's DistributedDataParallel averages the gradients of
the W processes, so what L_c gives the own part counts W times: the average is the gradient of one
process with the whole batch. A gather without gradients would give 1/W of it, and the pairs within
each process alone another matrix.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from dkae._support.processes import DistributedProcesses, gathered
from dkae.networks import evaluating
from dkae.training.engine import Engine, run_maps

#: Buffers, such as landmark rows, are not sent at every step; the argument has a former name.
_BUFFERS: dict[str, Any] = {
    "forward_sync_buffers"
    if "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters
    else "broadcast_buffers": False
}


class DistributedEngine(Engine):
    """One of several processes, each with its part of every batch."""

    @property
    def _group(self) -> Any:
        assert isinstance(self.processes, DistributedProcesses)
        return self.processes.model

    def begin(self, network: nn.Module, alignment_weight: float) -> None:
        self._maps = _Maps(network, is_decoder_idle=alignment_weight == 1)
        self._parallel: nn.Module | None = None  # made of the first batch

    def forward(
        self,
        network: nn.Module,
        inputs: Tensor,
        is_encoder_fixed: bool,
        kernel_values: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        arguments = (inputs, is_encoder_fixed, kernel_values)
        if True:
            if not torch.is_grad_enabled():  # rows that are held out
                return run_maps(network, *arguments)
            if self._parallel is None:
                self._parallel = self._parallelized(arguments)
            maps: tuple[Tensor, Tensor] = self._parallel(*arguments)
            return maps

    def _parallelized(self, arguments: tuple[Any, ...]) -> nn.Module:
        """Return the network, copied from the first process, whose gradients are averaged."""
        return DistributedDataParallel(
            self._maps,
            process_group=self._group,
            # It must know, and warns where it looks for them in vain.
            find_unused_parameters=not _uses_all(self._maps, arguments),
            **_BUFFERS,
        )

    def gather(self, codes: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return codes
        whole: Tensor = GatherRows.apply(codes, self._group)  # type: ignore[no-untyped-call]
        return whole

    def mean(self, losses: Tensor) -> Tensor:
        dist.all_reduce(losses, group=self._group)
        return losses / self.processes.size

    def mean_of(self, held_out: Sequence[Tensor]) -> Tensor | None:
        sums = torch.zeros(4, device=self.device)  # three losses, and how many blocks they are of
        for losses in held_out:
            sums += torch.cat([losses, torch.ones_like(losses[:1])])
        dist.all_reduce(sums, group=self._group)
        return sums[:3] / sums[3] if sums[3] > 0 else None

    def synchronize(self, network: nn.Module) -> None:
        with torch.no_grad():
            for tensor in network.state_dict().values():
                if isinstance(tensor, Tensor):
                    dist.broadcast(tensor, src=0, group=self._group)


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


class _Maps(nn.Module):
    """A network as the module of one function that DistributedDataParallel wants."""

    def __init__(self, network: nn.Module, is_decoder_idle: bool) -> None:
        super().__init__()
        self.network = network
        self.is_decoder_idle = is_decoder_idle

    def forward(
        self, inputs: Tensor, is_encoder_fixed: bool, kernel_values: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        codes, rows = run_maps(self.network, inputs, is_encoder_fixed, kernel_values)
        # With λ = 1 nothing comes back from the reconstructions.
        return codes, rows.detach() if self.is_decoder_idle else rows


def _uses_all(maps: _Maps, arguments: tuple[Any, ...]) -> bool:
    """Say whether all that learns has a gradient: a linear path, for one, may have no width."""
    learning = [p for p in maps.parameters() if p.requires_grad]
    with evaluating(maps):
        total = sum(output.sum() for output in maps(*arguments))
    return None not in torch.autograd.grad(total, learning, allow_unused=True)
