from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from dkae_study.engine import provenance

import dkae


def test_versions():
    assert provenance.versions()["dkae"] == dkae.__version__
    assert provenance.versions()["numpy"] == np.__version__


def test_the_commit_is_one_or_unknown():
    commit = provenance.commit()
    assert commit is None or re.fullmatch(r"[0-9a-f]{40}(\+changes)?", commit)


def test_the_commit_is_unknown_without_git(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert provenance.commit.__wrapped__() is None


def test_the_machine_has_no_name():
    assert set(provenance.machine()) == {"system", "processor", "cores", "threads"}


# In a process of its own: how memory is kept is a setting of the process.
PEAKS = """
import sys
import numpy as np
from dkae_study.engine.allocation import keep_freed_memory
from dkae_study.engine import provenance

if sys.argv[1] == "keep":
    keep_freed_memory()
with provenance.peak_memory() as large:
    np.ones(40_000_000).sum()
with provenance.peak_memory() as small:
    pass
print(large["peak_memory_mb"] - small["peak_memory_mb"])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can start the peak anew")
@pytest.mark.parametrize("how", ["keep", "give back"])
def test_the_peak_is_that_of_the_block_alone(how):
    assert float(subprocess.check_output([sys.executable, "-c", PEAKS, how])) > 200
