"""Whether the processes of a run agree, in values and before the first step.

Every rank compares what all ranks have with what rank 0 has, so that all raise the same error. Call
`check_same_presence` first, `check_same_inputs` before a kernel is fitted, and `check_same_prior`
after. Each of them guards the messages that the next steps exchange.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dkae._support.processes import Processes
from dkae.grams import Gram, read_block, sample_rows
from dkae.training.fingerprint import described, rows_digest

#: Kernel values of so many rows with so many others are compared: less than a step computes.
N_ROWS, N_COLUMNS = 64, 512
#: Gaps between kernel values, relative to the largest, that are round-off of different processors.
ROUND_OFF = 1e-4
#: Parameters that may differ: GPUs have numbers, and the first process alone writes messages.
_MAY_DIFFER = ("device", "verbose", "callbacks", "n_jobs")
#: Longer values are not shown, such as digests.
_N_SHOWN = 30


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
    rows, columns = sample_rows(len(prior), N_ROWS), sample_rows(len(prior), N_COLUMNS)
    block = read_block(prior, rows, columns)
    first = processes.first_arrays({"block": block})["block"]
    differs = bool(np.abs(block - first).max() > ROUND_OFF * np.abs(first).max())
    what = ["the kernel values of the same rows"]
    _refuse({rank: what for rank, is_other in enumerate(processes.gather(differs)) if is_other})


def check_same(processes: Processes, values: Mapping[str, str | None]) -> None:
    """Raise if the named values of any rank differ from those of rank 0."""
    first, *others = processes.gather(dict(values))
    _refuse(
        {rank: [_difference(name, first.get(name), theirs.get(name))
                for name in first | theirs if first.get(name) != theirs.get(name)]
         for rank, theirs in enumerate(others, 1)}
    )  # fmt: skip


def _refuse(differences: Mapping[int, Iterable[str]]) -> None:
    named = [f"rank {r} differs from rank 0 in {', '.join(d)}" for r, d in differences.items() if d]
    if named:
        raise ValueError(
            f"{'; '.join(named)}: start all processes with the same arguments, rows and kernel, "
            "and fit a random kernel with a seed"
        )


def _difference(name: str, first: str | None, other: str | None) -> str:
    is_short = all(value is not None and len(value) <= _N_SHOWN for value in (first, other))
    return f"{name} ({other}, not {first})" if is_short else name
