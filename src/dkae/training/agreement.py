"""Whether the processes of a run agree, in values and before the first step.

Every rank compares what all ranks have with what rank 0 has, so that all raise the same error. Call
`check_same_presence` first, `check_same_inputs` before a kernel is fitted, and `check_same_prior`
after. Each of them guards the messages that the next steps exchange.
"""

import re
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae._support.processes import Processes
from dkae.grams import Gram, read_block, sample_rows
from dkae.training.fingerprint import rows_digest

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
    own = {k: described(v) for k, v in params.items() if k.split("__")[-1] not in _MAY_DIFFER}
    labels = None if y is None else described(np.asarray(y))
    rows = {"the shape of X": str(tuple(X.shape)), "the rows of X": rows_digest(X)}
    check_same(processes, own | rows | {"y": labels})


def check_same_prior(processes: Processes, prior: Gram) -> None:
    """Raise if the Gram matrices of the ranks have other entries, on a sample of the rows."""
    if processes.size == 1:
        return
    check_same(processes, {"the number of rows of the Gram matrix": str(len(prior))})
    rows, columns = sample_rows(len(prior), N_ROWS), sample_rows(len(prior), N_COLUMNS)
    parts = processes.gather_arrays({"block": read_block(prior, rows, columns)})
    first, *others = [part["block"] for part in parts]
    limit = ROUND_OFF * np.abs(first).max()
    _refuse(
        {rank: ["the kernel values of the same rows"]
         for rank, block in enumerate(others, 1) if np.abs(block - first).max() > limit}
    )  # fmt: skip


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


# --- values as text --------------------------------------------------------------------------


def described(value: Any) -> str:
    """Return text that is the same for equal values in all processes."""
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {_digest(value)}"
    if hasattr(value, "get_params"):  # its parameters are compared one by one
        return type(value).__qualname__
    code = getattr(value, "__code__", None)
    if code is None:
        return _without_addresses(repr(value))
    # Functions of one name may do different things.
    cells = [getattr(cell, "cell_contents", None) for cell in value.__closure__ or ()]
    text = repr((_instructions(code), value.__defaults__, value.__kwdefaults__, cells))
    return f"{value.__qualname__} {_hashed(_without_addresses(text).encode())}"


def _instructions(code: CodeType) -> tuple[Any, ...]:
    return code.co_code, [_constant(c) for c in code.co_consts], code.co_names


def _constant(value: Any) -> Any:
    if isinstance(value, frozenset):  # in another order in each process
        return sorted(map(repr, value))
    return _instructions(value) if isinstance(value, CodeType) else value


def _digest(array: NDArray[Any]) -> str:
    if array.dtype.hasobject:
        return _hashed(_without_addresses(repr(array.tolist())).encode())
    if isinstance(array, np.memmap):  # it may be larger than the memory
        array = array[sample_rows(len(array), N_ROWS)]
    return _hashed(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def _hashed(data: bytes | memoryview) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x\w+", "", text)
