"""How the processes of a run find each other: the variables of torchrun, and a store of addresses.

Connections are neither encrypted nor authenticated: use a trusted network. The store listens on
MASTER_ADDR alone, unless torchrun's own agent runs it: that one listens on all interfaces, and
torch has no option to change this.
"""

from __future__ import annotations

import os
import re
import socket
import time
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import uuid4

import torch.distributed as dist

#: Seconds that a process waits for the others, unless the variable is set.
TIMEOUT, TIMEOUT_VARIABLE = 600.0, "DKAE_TIMEOUT"
#: The variables that torchrun sets for each process.
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class LostProcessError(RuntimeError):
    """Another process of the run has failed, or does not answer."""


class Run(NamedTuple):
    """What the environment tells a process of its run."""

    rank: int
    size: int
    address: str
    port: int


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


def run_of_environment() -> Run:
    """Return the run that torchrun's variables describe; without them, a run of one process."""
    alone = Run(0, 1, "", 0)
    if not {"RANK", "WORLD_SIZE"} & os.environ.keys():
        return alone
    if "WORLD_SIZE" in os.environ and _number("WORLD_SIZE", 1, 2**31) == 1:
        return alone
    if missing := [name for name in _VARIABLES if not os.environ.get(name)]:
        raise ValueError(
            f"{', '.join(missing)} is not set in the environment, but other variables of torchrun "
            "are: start the program with torchrun, or unset RANK and WORLD_SIZE"
        )
    size = _number("WORLD_SIZE", 1, 2**31)
    rank = _number("RANK", 0, size - 1)
    return Run(rank, size, os.environ["MASTER_ADDR"], _number("MASTER_PORT", 1, 2**16 - 1))


def _number(name: str, low: int, high: int) -> int:
    text = os.environ[name]
    number = int(text) if re.fullmatch("[0-9]{1,10}", text) else -1
    if not low <= number <= high:
        raise ValueError(
            f"{name}={text!r} in the environment must be a whole number from {low} to {high}: "
            "start the program with torchrun, or unset RANK and WORLD_SIZE"
        )
    return number


def connect(run: Run, timeout: timedelta) -> None:
    """Make the process group of a run.

    Where torchrun restarts processes, its store still has the addresses of the former ones. So the
    first process makes up a name, and all of them write under it.
    """
    # torchrun's agent may run the store.
    is_master = run.rank == 0 and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"
    try:
        store = dist.TCPStore(  # type: ignore[attr-defined]
            run.address, run.port, run.size, is_master, timeout,
            wait_for_workers=False, master_listen_fd=_listen(run) if is_master else None,
        )  # fmt: skip
        name = (
            _name_all(store, run.size, timeout) if run.rank == 0 else _learn_name(store, run.rank)
        )
        named = dist.PrefixStore(name, store)  # type: ignore[attr-defined]
        dist.init_process_group(
            "gloo", store=named, rank=run.rank, world_size=run.size, timeout=timeout
        )
    except LostProcessError:
        raise
    except RuntimeError as error:
        reason = str(error).partition("\n")[0][:200]
        raise LostProcessError(
            f"rank {run.rank} did not reach the others by MASTER_ADDR={run.address}, "
            f"MASTER_PORT={run.port} within {timeout.total_seconds():g} seconds: start all "
            f"processes, and let them see that address ({reason})"
        ) from error


def _listen(run: Run) -> int:
    """Return a socket that listens on the address of the run; torch's own listens on all."""
    try:
        family = socket.getaddrinfo(run.address, run.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((run.address, run.port), family=family).detach()
    except OSError as error:
        raise ValueError(
            f"MASTER_ADDR={run.address}, MASTER_PORT={run.port} cannot be listened on ({error}): "
            "pass an address of the machine of rank 0, and a free port"
        ) from error


def _name_all(store: Any, size: int, timeout: timedelta) -> str:
    """Answer a new name to every question, until all processes have confirmed it."""
    name, waiting = f"dkae {uuid4().hex}", set(range(1, size))
    end = time.monotonic() + timeout.total_seconds()
    while waiting:
        for rank in sorted(waiting):
            if store.check([f"dkae asks {rank}"]):  # perhaps the question of a former process
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
    """Ask for the name, and confirm it."""
    question = uuid4().hex
    store.set(f"dkae asks {rank}", question)
    name = str(store.get(f"dkae answer {question}").decode())
    store.set(f"{name} {rank}", "")
    return name
