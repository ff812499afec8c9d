"""Where the network runs, and in which precision."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch

from dkae.checks import check_choice

__all__ = ["PRECISIONS", "autocast", "choose_device"]

PRECISIONS = ("float32", "bfloat16")


def choose_device(name: str) -> torch.device:
    """Return the device of that name; ``"auto"`` takes a GPU where there is one."""
    available = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    check_choice("device", name, ["auto", *available])
    if name == "auto":
        name = next(device for device, there in available.items() if there)
    if not available[name]:
        raise ValueError(
            f"device={name!r} is not available on this machine: use device='auto' or 'cpu'"
        )
    return torch.device(name)


def autocast(device: torch.device, precision: str) -> AbstractContextManager[object]:
    """Return the context in which the network runs; the losses stay outside it, in float32."""
    if precision == "bfloat16" and bfloat16_works(device.type):
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


@cache
def bfloat16_works(device_type: str) -> bool:
    """Try a bfloat16 product, once in a process; warn if it fails.

    A virtual machine may report AMX and yet not be able to run it; the library then fails at the
    first product with "could not create a primitive".
    """
    try:
        _multiply_in_bfloat16(device_type)
    except RuntimeError as error:
        warnings.warn(
            f"precision='bfloat16' does not work on this machine ({error}); using float32 instead",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True


def _multiply_in_bfloat16(device_type: str) -> None:
    # Large enough to be sent to the kernels of a real layer, forwards and backwards.
    a = torch.ones(64, 256, dtype=torch.bfloat16, device=device_type, requires_grad=True)
    torch.nn.functional.linear(a, a, a[:, 0]).sum().backward()  # type: ignore[no-untyped-call]
