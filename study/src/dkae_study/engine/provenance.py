"""Where a result comes from: versions, commit, machine, memory."""

from __future__ import annotations

import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
import torch

from dkae import __version__
from dkae_study.engine.allocation import give_back_freed_memory


def versions() -> dict[str, str]:
    """Return the versions of what computes."""
    return {
        "dkae": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


@cache
def commit() -> str | None:
    """Return the commit of the source, with "+changes" if files differ from it; None if unknown.

    It is looked up once, so call it before work begins: the source may change meanwhile.
    """
    folder = Path(__file__).parent
    try:
        _git(folder, "ls-files", "--error-unmatch", Path(__file__).name)
        changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
        return _git(folder, "rev-parse", "HEAD") + ("+changes" if changes else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge the times."""
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "threads": torch.get_num_threads(),
    }


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


@contextlib.contextmanager
def peak_memory() -> Iterator[dict[str, float]]:
    """Give a dictionary that holds the process's peak memory in MB afterwards, where known.

    Only Linux can start the peak anew. Memory that was freed before does not count.
    """
    found: dict[str, float] = {}
    give_back_freed_memory()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    yield found
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM"):
                found["peak_memory_mb"] = round(int(line.split()[1]) / 1024, 1)
