"""The processes of one run, as ``torchrun`` starts them, and the messages between them.

All processes call the same methods in the same order, and every wait has a limit. They send JSON
and arrays, and nothing that arrives is unpickled. A process that fails leaves a note, so that the
next wait of the others ends with its rank and its error.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from dkae._support.rendezvous import (
    LostProcessError,
    connect,
    run_of_environment,
    timeout_of_environment,
)

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]

#: Seconds in which the survivors of an error report that they are alive.
ROLL_CALL = 3.0
#: Errors of gloo have no type of their own, but begin with a line of its source.
_GLOO = re.compile(r"\[\S*gloo/\S+\.(cc|h):\d+\]")


class Processes:
    """One process on its own: what it sends comes back."""

    rank = 0
    size = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and messages."""
        return self.rank == 0

    def part(self, n: int) -> slice:
        """Return this process's share of n things."""
        return slice(self.rank * n // self.size, (self.rank + 1) * n // self.size)

    def gather(self, value: T) -> list[T]:
        """Return the JSON value of each process, by rank."""
        return [value]

    def first(self, value: T) -> T:
        """Return the JSON value of the first process."""
        return value

    def gather_arrays(self, arrays: Arrays) -> list[Arrays]:
        """Return the named arrays of each process, by rank; shapes and types may differ."""
        return [arrays]

    def first_arrays(self, arrays: Arrays) -> Arrays:
        """Return the named arrays of the first process."""
        return arrays

    def sum(self, *tensors: Tensor) -> None:
        """Add up each tensor over all processes, in place."""

    def copy_first(self, *tensors: Tensor) -> None:
        """Give each tensor the values of the first process, in place."""

    def rows(self, part: Tensor, *, in_step: bool = False) -> Tensor:
        """Return the rows of all processes, by rank; all have as many. There are no gradients.

        `in_step` is for the thread that trains; another one may read batches meanwhile.
        """
        return part

    def highest(self, number: int) -> int:
        """Return the largest of the numbers of all processes."""
        return number

    def lost(self, error: BaseException) -> BaseException:
        """Return the error to raise where work has ended with one."""
        return error

    def close(self) -> None:
        """Close the connections to the others."""


class DistributedProcesses(Processes):
    """The processes of a process group of torch.

    Two threads must not share a group: `_main` is for the main thread, `_data` for the thread that
    reads batches. `_model` is for tensors of the main thread on a GPU.
    """

    def __init__(self, timeout: float, device_type: str) -> None:
        self._timeout = timedelta(seconds=timeout)
        if not dist.is_initialized():
            connect(run_of_environment(), self._timeout)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._store = dist.distributed_c10d._get_default_store()
        self._main: Any = self._group("gloo")
        self._fit = str(self._main.group_name)
        types = self.gather(device_type)
        if len(set(types)) > 1:
            raise ValueError(
                f"the ranks compute on {', '.join(types)}: pass the same device to all"
            )
        self._data: Any = self._group("gloo")
        self._model: Any = self._group("nccl") if device_type == "cuda" else self._main

    def _group(self, backend: str) -> Any:
        return dist.new_group(backend=backend, timeout=self._timeout)

    def gather(self, value: T) -> list[T]:
        return [self._value_of(rank, value) for rank in range(self.size)]

    def first(self, value: T) -> T:
        return self._value_of(0, value)

    def gather_arrays(self, arrays: Arrays) -> list[Arrays]:
        return [self._arrays_of(rank, arrays) for rank in range(self.size)]

    def first_arrays(self, arrays: Arrays) -> Arrays:
        return self._arrays_of(0, arrays)

    def sum(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            dist.all_reduce(tensor, group=self._group_of(tensor))

    def copy_first(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            dist.broadcast(tensor, src=0, group=self._group_of(tensor))

    def rows(self, part: Tensor, *, in_step: bool = False) -> Tensor:
        part = part.contiguous()
        parts = [torch.empty_like(part) for _ in range(self.size)]
        dist.all_gather(parts, part, group=self._group_of(part) if in_step else self._data)
        return torch.cat(parts)

    def _group_of(self, tensor: Tensor) -> Any:
        return self._model if tensor.is_cuda else self._main

    def highest(self, number: int) -> int:
        tensor = torch.tensor(number)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self._main)
        return int(tensor)

    def _value_of(self, rank: int, value: T) -> T:
        """Return the value of a rank, which sends the length of its JSON and then the JSON."""
        is_own = rank == self.rank
        text = json.dumps(value).encode() if is_own else b""
        length = int(self._broadcast(np.array(len(text)), rank))
        data = np.frombuffer(bytearray(text), np.uint8) if is_own else np.empty(length, np.uint8)
        received: T = json.loads(self._broadcast(data, rank).tobytes())
        return received

    def _arrays_of(self, rank: int, arrays: Arrays) -> Arrays:
        """Return the arrays of a rank, which sends their types and shapes and then their bytes."""
        kinds = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
        kinds = self._value_of(rank, kinds)
        if rank != self.rank:
            arrays = {name: np.empty(shape, kind) for name, (kind, shape) in kinds.items()}
        return {name: self._broadcast(array, rank) for name, array in arrays.items()}

    def _broadcast(self, array: NDArray[Any], rank: int) -> NDArray[Any]:
        """Return the array of a rank, given one of the same shape and type."""
        if array.dtype.hasobject:
            raise TypeError(f"arrays of type {array.dtype} cannot be sent to other processes")
        own = np.require(array, requirements=["C", "W"])
        if own.nbytes:
            data = torch.from_numpy(own.reshape(-1).view(np.uint8))
            dist.broadcast(data, src=rank, group=self._main)
        return own

    # --- when one of them fails --------------------------------------------------------------

    def lost(self, error: BaseException) -> BaseException:
        """Leave a note of this process's own error, or find out which process has failed."""
        if not _is_of_a_connection(error):
            with contextlib.suppress(RuntimeError):  # the store may be gone too
                self._store.set(self._note_of(self.rank), f"{type(error).__name__}: {error}")
            return error
        try:
            self._store.set(self._note_of(self.rank), "")  # alive
            cause = self._cause()
        except RuntimeError:
            cause = "rank 0, which keeps the list of processes, is gone"
        return LostProcessError(f"{cause}; this process, rank {self.rank}, ends too")

    def _cause(self) -> str:
        """Return which of the others has failed, by their notes."""
        silent = set(range(self.size)) - {self.rank}
        end = time.monotonic() + ROLL_CALL
        while time.monotonic() < end:
            for rank in range(self.size):
                if self._store.check([self._note_of(rank)]):
                    silent.discard(rank)
                    if text := self._store.get(self._note_of(rank)).decode():
                        return f"rank {rank} failed ({text})"
            time.sleep(0.05)
        names = ", ".join(map(str, sorted(silent))) or "unknown"
        return f"rank {names} was killed, is cut off, or did not answer in time"

    def _note_of(self, rank: int) -> str:
        return f"dkae {self._fit} note {rank}"

    def close(self) -> None:
        groups = {self._main, self._data, self._model}
        self._main = self._data = self._model = None
        for group in groups:
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group(group)


ALONE = Processes()
_PRESENT: ContextVar[Processes] = ContextVar("processes", default=ALONE)


def present() -> Processes:
    """Return the processes that work together now."""
    return _PRESENT.get()


@contextlib.contextmanager
def joined(device: torch.device) -> Iterator[Processes]:
    """Work together with the other processes of the run meanwhile, if there are others."""
    if present() is not ALONE or _rank_and_size()[1] == 1:
        yield present()
        return
    processes = DistributedProcesses(timeout_of_environment(), device.type)
    token = _PRESENT.set(processes)
    try:
        # Warnings are for the first process: they would come once per process.
        is_first = processes.is_first
        with contextlib.nullcontext() if is_first else warnings.catch_warnings(action="ignore"):
            yield processes
        processes.gather(None)  # no process closes a connection that another still needs
    except BaseException as error:
        other = processes.lost(error)
        if other is error:
            raise
        raise other from error
    finally:
        _PRESENT.reset(token)
        processes.close()


def speaks() -> bool:
    """Return whether this process writes files and messages for all of its run."""
    return _rank_and_size()[0] == 0


def _rank_and_size() -> tuple[int, int]:
    """Return those of torch's process group, or of torchrun."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return run_of_environment()[:2]


def _is_of_a_connection(error: BaseException) -> bool:
    """Return whether an error comes from talking to the other processes."""
    is_gloo = type(error) is RuntimeError and _GLOO.match(str(error)) is not None
    return is_gloo or isinstance(error, dist.DistError)
