"""The whole study at the smallest scale, run once for all tests that look at its results."""

from __future__ import annotations

from pathlib import Path

import pytest
from dkae_study.results import Run, read_runs

from study.tests.helpers import run_study


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
