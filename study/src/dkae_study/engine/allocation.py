"""Memory that is freed and taken again at every step, without asking the system for it each time.

A training step takes and frees dozens of megabytes: two gradients of the size of the weights, and
the activations. In threads other than the first one, glibc gives them back to the system when they
are freed, and the system hands them out again page by page, each of them zeroed.
"""

from __future__ import annotations

import ctypes
from typing import Any

# Names and numbers of <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_MIB = 2**20
#: The largest arrays that stay; older ones of glibc take no more than the second.
_LARGEST = (1024 * _MIB, 32 * _MIB)


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, up to 1 GiB, and return whether that is possible here.

    It is with glibc. The setting holds until the process ends, so it is for a program that spends
    its life in training, such as ``dkae reproduce``, and not for a library to set unasked. Threads
    that have allocated before may go on as they did.
    """
    mallopt = _of_the_c_library("mallopt")
    # Without this one the others do harm: glibc no longer adapts it to the requests.
    if mallopt is None or not any(mallopt(_M_MMAP_THRESHOLD, size) for size in _LARGEST):
        return False
    # One arena for all threads, because those of threads hold 64 MiB at most.
    return bool(mallopt(_M_TRIM_THRESHOLD, _LARGEST[0]) and mallopt(_M_ARENA_MAX, 1))


def give_back_freed_memory() -> None:
    """Return free memory to the system once, where that is possible."""
    malloc_trim = _of_the_c_library("malloc_trim")
    if malloc_trim is not None:
        malloc_trim(ctypes.c_size_t(0))


def _of_the_c_library(name: str) -> Any:
    """Return a function of the C library; None if it has none of this name."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, TypeError, AttributeError):  # another library, or another system
        return None
