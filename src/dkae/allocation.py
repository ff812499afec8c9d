"""Memory that is freed and taken again at every step, without asking the system for it each time.

A training step takes and frees dozens of megabytes: two gradients of the size of the weights, and
the activations. In threads other than the first one, glibc gives them back to the system when they
are freed, and the system hands them out again page by page, each of them zeroed.
"""

from __future__ import annotations

import ctypes

__all__ = ["keep_freed_memory"]

# Names and numbers of <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_GIB = 2**30


def keep_freed_memory() -> bool:
    """Let this process keep what it frees, for all its threads; say whether that is possible here.

    It is with glibc. The setting holds until the process ends, so it is for a program that spends
    its life in training, such as ``dkae reproduce``, and not for a library to set unasked. It must
    be called before threads begin to allocate: those that have an arena of their own keep it.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # another C library, or another system
        return False
    settings = {_M_ARENA_MAX: 1, _M_MMAP_THRESHOLD: _GIB, _M_TRIM_THRESHOLD: _GIB}
    accepted = [mallopt(name, value) == 1 for name, value in settings.items()]
    return all(accepted)
