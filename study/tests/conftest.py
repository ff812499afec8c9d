"""The whole study at the smallest scale, run once for all tests that look at its results."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from dkae_study.engine import allocation
from dkae_study.results import Run, read_runs
from hypothesis import settings

from study.tests.helpers import run_study

# Timing on a shared machine says nothing: no deadlines.
settings.register_profile("dkae", deadline=None, max_examples=50)
settings.load_profile("dkae")

torch.set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def kept():
    """Leave the memory of the process as it is: other tests measure it."""
    with pytest.MonkeyPatch.context() as patch:
        calls = []
        patch.setattr(allocation, "keep_freed_memory", lambda: calls.append(1))
        yield calls


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with all results at the scale smoke."""
    folder = tmp_path_factory.mktemp("smoke")
    assert run_study(folder) == []
    return folder


@pytest.fixture(scope="session")
def runs(smoke: Path) -> list[Run]:
    """Return all results at the scale smoke."""
    return read_runs(smoke)
