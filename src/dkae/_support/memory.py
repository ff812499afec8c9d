"""The memory of this machine, and the part of it for results that could be computed again."""

import os
from pathlib import Path

#: The share of memory for features that are held, unless `cache_bytes` is given.
BUDGET_SHARE = 0.25
#: Files with the limit of a container, in version 2 and 1 of control groups.
LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def total_memory() -> float:
    """Return the bytes of memory of this machine, or of its container if that has fewer."""
    return min(_of_machine(), *map(_limit_of, LIMITS))


def default_budget() -> float:
    """Return the bytes that may be held for later; processes of one machine share them."""
    n_processes = os.environ.get("LOCAL_WORLD_SIZE", "1")  # set by torchrun
    return BUDGET_SHARE * total_memory() / max(1, int(n_processes))


def in_words(n_bytes: float) -> str:
    """Return a number of bytes in words, such as 1.5 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n_bytes >= size:
            return f"{n_bytes / size:.3g} {unit}"
    return f"{n_bytes:.0f} bytes"


def _of_machine() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # not known on every system
        return float("inf")


def _limit_of(path: Path) -> float:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such file, or the word "max"
        return float("inf")
