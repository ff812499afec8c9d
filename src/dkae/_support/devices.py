"""Where the network runs, and the settings of the process that its arithmetic needs."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack

import torch
from threadpoolctl import threadpool_limits

from dkae._support.checks import check_choice, shown


def choose_device(device: str | torch.device) -> torch.device:
    """Return the device, as torch spells it; ``"auto"`` takes a GPU where there is one.

    Of several processes of torchrun on one machine, each takes a GPU of its own for ``"cuda"``.
    """
    if isinstance(device, str) and device == "auto":
        gpus = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        device = next((name for name, there in gpus.items() if there), "cpu")
    if "LOCAL_RANK" in os.environ and str(device) == "cuda":
        device = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        check_choice("device", device, ["auto", "cuda", "mps", "cpu"])
        raise ValueError(
            f"device={shown(device)} is not known: use 'auto', or as torch spells it, such as "
            "'cuda:0'"
        ) from error
    try:
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError) as error:  # the latter where torch was built without it
        raise ValueError(
            f"device={str(device)!r} is not available on this machine: use device='auto' or 'cpu'"
        ) from error
    return chosen


class _WhileUsed:
    """A setting of the whole process: the first of several threads makes it, the last undoes it."""

    def __init__(self, setting: Callable[[], AbstractContextManager[object]]) -> None:
        self._setting, self._made = setting, ExitStack()
        self._lock, self._n_users = threading.Lock(), 0

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._n_users == 0:
                self._made.enter_context(self._setting())
            self._n_users += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if self._n_users == 0:
                    self._made.close()


@contextlib.contextmanager
def _float32_by_default() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


_float32_by_default_while_used = _WhileUsed(_float32_by_default)
_one_blas_thread_while_used = _WhileUsed(lambda: threadpool_limits(1, user_api="blas"))


@contextlib.contextmanager
def float32_math() -> Iterator[None]:
    """Compute in float32 meanwhile, with the caller's default dtype and autocast set aside.

    Autocast is a setting of each thread, the default dtype one of the process: other threads see
    float32 too until the last of several users has ended.
    """
    # In a new thread MKL takes torch's number of threads only once torch has been asked for it;
    # until then the last digits of products may be others.
    torch.get_num_threads()
    with ExitStack() as stack:
        stack.enter_context(_float32_by_default_while_used())
        for device_type in ("cpu", "cuda", "mps"):
            if torch.is_autocast_enabled(device_type):
                stack.enter_context(torch.autocast(device_type, enabled=False))
        yield


@contextlib.contextmanager
def single_threaded_blas(device: torch.device) -> Iterator[None]:
    """Keep BLAS to one thread while a network trains on the CPU.

    BLAS computes a kernel's blocks, torch's own threads the network. After its work each spins for
    a while on cores that the other one needs: on 2 cores a step of a small network took 18-24 ms
    instead of 4-5.
    """
    with _one_blas_thread_while_used() if device.type == "cpu" else contextlib.nullcontext():
        yield
