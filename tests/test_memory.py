"""Memory of `fit` is O(k²) beyond the data: no n × n array anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "memory.py"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")


def peak_of(*options: object) -> int:
    """Return what the benchmark prints: bytes beyond what the process held before."""
    command = [sys.executable, BENCHMARK, *map(str, options)]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def peak_of_fit(n_rows: int, batch_size: int = 200, name: str = "autoencoder") -> int:
    return peak_of("--fit", n_rows, "--batch", batch_size, "--map", name)


@pytest.fixture(scope="module")
def small() -> int:
    return peak_of_fit(5_000)


def test_peak_does_not_grow_with_the_rows(small):
    # n² floats are 14.4 GB, but even one copy of the data would be 15 MB.
    assert peak_of_fit(60_000) - small < 10e6


def test_computed_codes_start_from_a_sample():
    # Kernel values of 200,000 rows with 1,000 landmarks would be 800 MB. The peak is 280 to 360 MB
    # for 30,000 rows and for 60,000: it varies with what the allocator gives back.
    assert peak_of_fit(200_000, name="nystroem") < 500e6


def test_transform_does_not_grow_beyond_its_codes():
    """Its chunks are written into one array: joined in the end, they took 2 GB of this size."""
    assert peak_of("--transform", 300_000, "--map", "nystroem") < 150e6


def test_peak_grows_with_the_square_of_the_batch(small):
    k_squared = 4 * 2_000**2  # 16 MB
    assert k_squared < peak_of_fit(5_000, batch_size=2_000) - small < 30 * k_squared
