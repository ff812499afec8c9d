"""Memory of `fit` is O(k²) beyond the data: no n × n array anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "memory.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")


def peak_of_fit(n_rows: int, batch_size: int = 200) -> int:
    command = [sys.executable, BENCHMARK, "--rows", str(n_rows), "--batch", str(batch_size)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def small() -> int:
    return peak_of_fit(5_000)


def test_peak_does_not_grow_with_the_rows():
    # A kernel layer starts from at most 20,000 rows; n² floats are 14.4 GB, but even one copy of
    # the data would be 15 MB.
    assert peak_of_fit(60_000) - peak_of_fit(20_000) < 10e6


def test_peak_grows_with_the_square_of_the_batch(small):
    k_squared = 4 * 2_000**2  # 16 MB
    assert k_squared < peak_of_fit(5_000, batch_size=2_000) - small < 30 * k_squared
