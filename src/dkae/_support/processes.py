"""The processes of one run, as ``torchrun`` starts them: who we are, and what we tell each other.

Each has a rank. All of them call the same methods in the same order, and every wait has a limit. A
process that fails leaves a note for the others, whose next wait then ends with its name and error.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from dkae._support.checks import check_choice

T = TypeVar("T")

#: Choices of `engine`.
ENGINES = ("auto", "single", "distributed")
#: Seconds that a process waits for the others, unless the variable says otherwise.
TIMEOUT, TIMEOUT_VARIABLE = 600.0, "DKAE_TIMEOUT"
#: Seconds that survivors wait for each other to say that they live.
ROLL_CALL = 3.0
#: What torchrun tells each process.
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class LostProcessError(RuntimeError):
    """Another process of the run has failed, or does not answer."""


class Processes:
    """One process, alone: it tells itself."""

    rank = 0
    size = 1

    @property
    def is_first(self) -> bool:
        """Whether this process writes files and speaks for all."""
        return self.rank == 0

    def part(self, n: int) -> slice:
        """Return which of n things are this process's."""
        return slice(self.rank * n // self.size, (self.rank + 1) * n // self.size)

    def gather(self, value: Any) -> list[Any]:
        """Return the value of each process, by rank."""
        return [value]

    def first(self, value: T) -> T:
        """Return the value of the first process."""
        return value

    def sum(self, *tensors: Tensor) -> None:
        """Add up each tensor over all processes, in place."""

    def rows(self, part: Tensor) -> Tensor:
        """Return the rows of all processes, by rank; each has as many. There are no gradients."""
        return part

    def highest(self, number: int) -> int:
        """Return the largest of the numbers of all processes."""
        return number

    def lost(self, error: BaseException) -> BaseException:
        """Return the error to raise where work has ended with one."""
        return error

    def close(self) -> None:
        """Let go of the others."""


class DistributedProcesses(Processes):
    """The processes of a process group of torch.

    They talk through groups of their own, because two threads must not share one: `control` is for
    the main thread, `data` for the one that reads batches, `model` for gradients.
    """

    def __init__(self, timeout: float, device_type: str) -> None:
        self._timeout = timedelta(seconds=timeout)
        if not dist.is_initialized():
            _meet(self._timeout)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self._store = dist.distributed_c10d._get_default_store()
        self.control: Any = self._group("gloo")
        self._data: Any = self._group("gloo")
        self.model: Any = self._group("nccl" if device_type == "cuda" else "gloo")
        self._fit = str(self.control.group_name)

    def _group(self, backend: str) -> Any:
        return dist.new_group(backend=backend, timeout=self._timeout)

    def gather(self, value: Any) -> list[Any]:
        values: list[Any] = [None] * self.size
        dist.all_gather_object(values, value, group=self.control)
        return values

    def first(self, value: T) -> T:
        values = [value if self.is_first else None]
        dist.broadcast_object_list(values, src=0, group=self.control)
        return values[0]  # type: ignore[return-value]

    def sum(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            dist.all_reduce(tensor, group=self.control)

    def rows(self, part: Tensor) -> Tensor:
        return gathered(part, self._data)

    def highest(self, number: int) -> int:
        tensor = torch.tensor(number)
        dist.all_reduce(tensor, dist.ReduceOp.MAX, group=self.control)
        return int(tensor)

    # --- when one of them fails --------------------------------------------------------------

    def lost(self, error: BaseException) -> BaseException:
        """Leave a note of an error, or find out whose error this process has only met."""
        if not _is_of_a_connection(error):
            with contextlib.suppress(RuntimeError):  # the store may be gone too
                self._store.set(self._key("error", self.rank), f"{type(error).__name__}: {error}")
            return error
        return LostProcessError(f"{self._who_failed()}; this process, rank {self.rank}, ends too")

    def _who_failed(self) -> str:
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            # Who meets the error of another says that it lives; who does not is gone.
            self._store.set(self._key("alive", self.rank), "")
            end = time.monotonic() + ROLL_CALL
            while time.monotonic() < end:
                for rank in others:
                    if self._store.check([self._key("error", rank)]):
                        text = self._store.get(self._key("error", rank)).decode()
                        return f"rank {rank} failed ({text})"
                time.sleep(0.05)
            gone = [r for r in others if not self._store.check([self._key("alive", r)])]
        except RuntimeError:
            return "rank 0, which keeps the list of processes, is gone"
        names = ", ".join(map(str, gone)) or "one that cannot be told"
        return f"rank {names} was killed, is cut off, or did not answer in time"

    def close(self) -> None:
        """Close the connections: who waits for this process is told so."""
        groups = (self.control, self._data, self.model)
        self.control = self._data = self.model = None
        for group in groups:
            with contextlib.suppress(RuntimeError):
                dist.destroy_process_group(group)

    def _key(self, what: str, rank: int) -> str:
        return f"dkae {self._fit} {what} {rank}"


def _meet(timeout: timedelta) -> None:
    """Make the process group of those that torchrun has started together.

    Where torchrun starts processes again, its store still has what the former ones have written,
    addresses too. So the first process makes up a name under which all of these write.
    """
    store, rank, size = next(rendezvous("env://", timeout=timeout))
    store.set_timeout(timeout)
    name = _name_all(store, size, timeout) if rank == 0 else _learn_name(store, rank)
    named = dist.PrefixStore(name, store)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=named, rank=rank, world_size=size, timeout=timeout)


def _name_all(store: Any, size: int, timeout: timedelta) -> str:
    """Tell a new name to who asks for it, until all have thanked for this one."""
    name, waiting = f"dkae {uuid4().hex}", set(range(1, size))
    end = time.monotonic() + timeout.total_seconds()
    while waiting:
        for rank in sorted(waiting):
            if store.check([f"dkae asks {rank}"]):  # or a former process did
                store.set(f"dkae answer {store.get(f'dkae asks {rank}').decode()}", name)
            if store.check([f"{name} {rank}"]):
                waiting.remove(rank)
        if time.monotonic() > end:
            names = ", ".join(map(str, sorted(waiting)))
            raise LostProcessError(
                f"rank {names} did not appear within {timeout.total_seconds():g} seconds"
            )
        time.sleep(0.02)
    return name


def _learn_name(store: Any, rank: int) -> str:
    question = uuid4().hex
    store.set(f"dkae asks {rank}", question)
    try:
        name = str(store.get(f"dkae answer {question}").decode())
    except RuntimeError as error:
        raise LostProcessError("rank 0 did not appear in time") from error
    store.set(f"{name} {rank}", "")
    return name


def gathered(part: Tensor, group: Any) -> Tensor:
    """Return the rows of all processes of a group, in the order of their ranks."""
    part = part.contiguous()
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size(group))]
    dist.all_gather(parts, part, group=group)
    return torch.cat(parts)


ALONE = Processes()
_PRESENT: ContextVar[Processes] = ContextVar("processes", default=ALONE)


def present() -> Processes:
    """Return the processes that work together now."""
    return _PRESENT.get()


def in_shares(work: Callable[[Any], T], pieces: Sequence[Any]) -> list[T]:
    """Return what `work` returns for each piece, in order; each process does its part of them."""
    processes = present()
    own = [work(piece) for piece in pieces[processes.part(len(pieces))]]
    return [result for results in processes.gather(own) for result in results]


@contextlib.contextmanager
def joined(engine: Any, device: torch.device) -> Iterator[Processes]:
    """Work together with the other processes of the run meanwhile, if there are others."""
    if not is_distributed(engine) or present() is not ALONE:
        yield present()
        return
    processes = DistributedProcesses(timeout_of_environment(), device.type)
    token = _PRESENT.set(processes)
    try:
        with contextlib.nullcontext() if processes.is_first else _silence():
            yield processes
        processes.gather(None)  # nobody closes a connection that another still needs
    except BaseException as error:
        other = processes.lost(error)
        if other is error:
            raise
        raise other from error
    finally:
        _PRESENT.reset(token)
        processes.close()


def is_distributed(engine: Any) -> bool:
    """Say whether `engine` means several processes, "auto" by what torchrun tells."""
    check_choice("engine", engine, ENGINES)
    missing = [name for name in _VARIABLES if name not in os.environ]
    if engine == "distributed" and missing and not dist.is_initialized():
        raise ValueError(
            f"engine='distributed', but {', '.join(missing)} is not set in the environment: start "
            "the program with torchrun, or call torch.distributed.init_process_group first"
        )
    if engine == "single" or not dist.is_available():
        return False
    return dist.get_world_size() > 1 if dist.is_initialized() else world_size() > 1


def world_size() -> int:
    """Return how many processes torchrun says there are; 1 without it."""
    is_known = all(name in os.environ for name in _VARIABLES)
    return int(os.environ["WORLD_SIZE"]) if is_known else 1


def speaks(engine: Any = "auto") -> bool:
    """Say whether this process speaks for all that work together, or is one of them alone."""
    if not is_distributed(engine):
        return True
    return (dist.get_rank() if dist.is_initialized() else int(os.environ["RANK"])) == 0


def local_device(device: torch.device) -> torch.device:
    """Return this process's own GPU of those of its machine, where there are several."""
    local_rank = os.environ.get("LOCAL_RANK")
    if str(device) != "cuda" or local_rank is None:
        return device
    return torch.device("cuda", int(local_rank))


def timeout_of_environment() -> float:
    """Return the seconds that one process waits for another."""
    text = os.environ.get(TIMEOUT_VARIABLE, str(TIMEOUT))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e6:
        raise ValueError(f"{TIMEOUT_VARIABLE}={text} must be a number of seconds above 0")
    return seconds


def _is_of_a_connection(error: BaseException) -> bool:
    """Say whether an error is of talking to the others; gloo has no type for its own."""
    is_known = isinstance(error, (dist.DistError, ConnectionError))
    signs = ("gloo", "Connection closed by peer", "connection reset", "NCCL")
    is_said = type(error) is RuntimeError and any(sign in str(error) for sign in signs)
    return is_known or is_said


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Leave warnings to the first process: they would come once for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
