r"""Several processes that train one network: what they share, and whether they agree.

Each of W processes has a part of the batch, and all have its loss. With the codes :math:`c_r` of
the rows of process r, the Gram matrix of the batch needs all of them. They are gathered, and each
process computes the loss of all pairs,

.. math:: L = \frac1W \sum_r (1 - \lambda) L_r(x_r, \tilde x_r) + \lambda L_c(C, P), \qquad
    C = c\,c^\top, \quad c = (c_1, \dots, c_W) ,

but a gradient only through its own part. The gradients of the processes are averaged, so L_c counts
W times for the own part: the average is the gradient of one process with the whole batch. A gather
without gradients would give 1/W of it, and the pairs within each process alone another matrix.

Whether the processes agree is checked in values, before the first step. Every rank compares what
all ranks have with what rank 0 has, so that all raise the same error. Call `check_same_presence`
first, `check_same_inputs` before a kernel is fitted, and `check_same_prior` after: each of them
guards the messages that the next steps exchange.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dkae._support.processes import Processes
from dkae.grams import Gram, read_block, sample_ids
from dkae.training.fingerprint import described, rows_digest

#: Kernel values of so many rows with so many others are compared: less than a step computes.
N_ROWS, N_COLUMNS = 64, 512
#: Gaps between kernel values, relative to the largest, that are round-off of different processors.
ROUND_OFF = 1e-4
#: Parameters that may differ: GPUs have numbers, and the first process alone writes messages.
_MAY_DIFFER = ("device", "verbose", "callbacks", "n_jobs")
#: Longer values are not shown, such as digests.
_N_SHOWN = 30

# --- one network ---------------------------------------------------------------------------------


def synchronize(network: nn.Module, processes: Processes) -> None:
    """Give all processes the network of the first, statistics of batches included."""
    tensors = [t.detach() for t in network.state_dict().values() if isinstance(t, Tensor)]
    shapes = ", ".join(f"{tuple(tensor.shape)} {tensor.dtype}" for tensor in tensors)
    check_same(processes, {"the shapes of the network": shapes})
    processes.copy_first(*tensors)


def gather_codes(codes: Tensor, processes: Processes) -> Tensor:
    """Return the codes of the whole batch, with their gradients."""
    if processes.size == 1:
        return codes
    whole: Tensor = _GatherRows.apply(codes, processes)  # type: ignore[no-untyped-call]
    return whole


class _GatherRows(torch.autograd.Function):
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


def average_gradients(parameters: Sequence[nn.Parameter], processes: Processes) -> None:
    """Average the gradients; a parameter that no process uses keeps none."""
    if processes.size == 1:
        return
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    used = gradients[0].new_tensor([p.grad is not None for p in parameters])
    sums = torch.cat([used, *[g.ravel() for g in gradients]])
    processes.sum(sums.div_(processes.size))
    means = torch.split(sums, [len(parameters), *[p.numel() for p in parameters]])
    for p, mean, is_used in zip(parameters, means[1:], means[0].tolist(), strict=True):
        if is_used:
            p.grad = mean.view_as(p).to(p.dtype)


# --- one mind ------------------------------------------------------------------------------------


def check_same_presence(processes: Processes, **arguments: Any) -> None:
    """Raise if some ranks have an argument that others lack; None and False are absent."""
    is_given = {k: v is not None and v is not False for k, v in arguments.items()}
    check_same(processes, {k: "given" if there else "absent" for k, there in is_given.items()})


def check_same_inputs(
    processes: Processes, params: Mapping[str, Any], X: Any, y: Any = None
) -> None:
    """Raise if the parameters, the rows or the labels differ between ranks."""
    if processes.size == 1:
        return
    # Nested parameters have the names of their owners before them.
    own = {
        # The parameters of an object are compared one by one.
        name: type(value).__qualname__ if hasattr(value, "get_params") else described(value)
        for name, value in params.items()
        if name.split("__")[-1] not in _MAY_DIFFER
    }
    labels = None if y is None else described(np.asarray(y))
    rows = {"the shape of X": str(tuple(X.shape)), "the rows of X": rows_digest(X)}
    check_same(processes, own | rows | {"y": labels})


def check_same_prior(processes: Processes, prior: Gram) -> None:
    """Raise if the Gram matrices of the ranks have other entries, on a sample of the rows."""
    if processes.size == 1:
        return
    check_same(processes, {"the number of rows of the Gram matrix": str(len(prior))})
    rows, columns = sample_ids(len(prior), N_ROWS), sample_ids(len(prior), N_COLUMNS)
    block = read_block(prior, rows, columns)
    first = processes.first_arrays({"block": block})["block"]
    differs = bool(np.abs(block - first).max() > ROUND_OFF * np.abs(first).max())
    name = "the kernel values of the same rows"
    _raise_for([[name] if is_other else [] for is_other in processes.gather(differs)])


def check_same(processes: Processes, values: Mapping[str, str | None]) -> None:
    """Raise if the named values of any rank differ from those of rank 0."""
    of_ranks = processes.gather(dict(values))
    _raise_for([_differences(of_ranks[0], own) for own in of_ranks])


def _raise_for(differences: Sequence[Sequence[str]]) -> None:
    """Raise if there are differences; they are by rank."""
    named = [
        f"rank {rank} differs from rank 0 in {', '.join(names)}"
        for rank, names in enumerate(differences)
        if names
    ]
    if named:
        raise ValueError(
            f"{'; '.join(named)}: start all processes with the same arguments, rows and kernel, "
            "and fit a random kernel with a seed"
        )


def _differences(first: Mapping[str, str | None], own: Mapping[str, str | None]) -> list[str]:
    """Return the names of what differs, with the values if they are short."""
    found = []
    for name in {**first, **own}:
        expected, value = first.get(name), own.get(name)
        if value != expected:
            is_short = all(v is not None and len(v) <= _N_SHOWN for v in (expected, value))
            found.append(f"{name} ({value}, not {expected})" if is_short else name)
    return found
