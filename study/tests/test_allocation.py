"""Memory that is freed stays with the process."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys

import pytest
from dkae_study.engine.allocation import give_back_freed_memory, keep_freed_memory

# A thread takes, touches and frees an array of the size of the paper's largest weight.
SCRIPT = """
import resource, sys, threading
import numpy as np
from dkae_study.engine.allocation import keep_freed_memory

if sys.argv[1] == "keep":
    assert keep_freed_memory()

def work():
    global n_faults
    start = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        arrays = [np.ones((2000, 2000), np.float32) for _ in range(4)]
    n_faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - start

thread = threading.Thread(target=work)
thread.start()
thread.join()
print(n_faults)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of glibc")
def test_a_thread_gets_the_same_pages_again():
    n_faults = {
        how: int(subprocess.check_output([sys.executable, "-c", SCRIPT, how]))
        for how in ("keep", "as it is")
    }
    assert n_faults["keep"] < n_faults["as it is"] / 4


@pytest.mark.parametrize("error", [OSError, TypeError, AttributeError])
def test_another_c_library_is_left_alone(monkeypatch, error):
    def fail(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fail)
    assert keep_freed_memory() is False
    give_back_freed_memory()
