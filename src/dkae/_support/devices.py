"""Where the network runs, and in which precision."""

import contextlib
import inspect
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from threadpoolctl import threadpool_limits

from dkae._support.checks import check_choice, shown

PRECISIONS = ("float32", "bfloat16")


def choose_device(device: str | torch.device) -> torch.device:
    """Return the device, as torch spells it; ``"auto"`` takes a GPU where there is one."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    if isinstance(device, str) and device == "auto":
        return torch.device(next(name for name, there in available.items() if there))
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError) as error:
        check_choice("device", device, ["auto", *available])
        raise ValueError(
            f"device={shown(device)} is not known: use 'auto', or as torch spells it, such as "
            "'cuda:0'"
        ) from error
    if not (available.get(chosen.type) or _works(chosen)) or not _has_index(chosen):
        raise ValueError(
            f"device={str(device)!r} is not available on this machine: use device='auto' or 'cpu'"
        )
    return chosen


def _works(device: torch.device) -> bool:
    """Try a device that torch knows by name, and may not have been built for."""
    if device.type in ("cuda", "mps"):  # known not to be there; a trial only starts them
        return False
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError):  # also if it is not implemented
        return False
    return True


def _has_index(device: torch.device) -> bool:
    return device.type != "cuda" or (device.index or 0) < torch.cuda.device_count()


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Return the context in which the network runs; the losses stay outside it, in float32."""
    if precision == "bfloat16" and bfloat16_works(device.type):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


@cache
def bfloat16_works(device_type: str) -> bool:
    """Try a bfloat16 product, once in a process; warn if it fails.

    A virtual machine may report AMX and yet not run it: the first product then fails with "could
    not create a primitive", or an illegal instruction kills the process. So on a CPU another
    process tries it first.
    """
    try:
        if device_type == "cpu":
            _in_another_process(_multiply_in_bfloat16, device_type)
        else:
            _multiply_in_bfloat16(device_type)
    except (RuntimeError, TypeError) as error:
        warnings.warn(
            f"precision='bfloat16' does not work on this machine ({error}); using float32 instead",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def _in_another_process(work: Callable[[str], None], argument: str) -> None:
    """Run a function that needs nothing but torch; raise if it fails or is killed."""
    code = f"import torch\n{inspect.getsource(work)}\n{work.__name__}({argument!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode < 0:
        raise RuntimeError(f"a trial was killed by signal {-done.returncode}")
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])


def _multiply_in_bfloat16(device_type: str) -> None:
    # Large enough to take the code path of a real layer, forwards and backwards.
    a = torch.ones(64, 256, device=device_type, requires_grad=True)
    with torch.autocast(device_type, dtype=torch.bfloat16):
        product = torch.nn.functional.linear(a, a, a[:, 0])
    product.sum().backward()  # type: ignore[no-untyped-call]


class _SingleThreadedBlas:
    """Keeps BLAS to one thread while at least one network trains on the CPU.

    BLAS computes a kernel's blocks, torch's own threads the network. After its work each spins for
    a while on cores that the other one needs: on 2 cores a step of a small network took 18-24 ms
    instead of 4-5. The limit holds for the whole process: of several fits in threads the first sets
    it and the last lifts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0

    @contextlib.contextmanager
    def __call__(self, device: torch.device) -> Iterator[None]:
        if device.type != "cpu":
            yield
            return
        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limits.restore_original_limits()


single_threaded_blas = _SingleThreadedBlas()
