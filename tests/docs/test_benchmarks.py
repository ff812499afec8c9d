"""The benchmarks of rows on a disk, of new rows and of parts run, at sizes that mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BENCHMARKS.exists(), reason="not in an installed package"),
    pytest.mark.skipif(sys.platform != "linux", reason="they read /proc, or the cores allowed"),
]


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a benchmark, and returns its results and what it printed."""

    def run(name: str, *options: object) -> tuple[dict, str]:
        results = tmp_path / "results.json"
        command = [sys.executable, BENCHMARKS / f"{name}.py", *options, "--results", results]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(results.read_text()), done.stdout

    return run


def has_verdict(text: str) -> bool:
    return "holds" in text or "FAILS" in text


@pytest.mark.parametrize(
    "kernel",
    [
        "rbf",
        "pck",
    ],
)
def test_million_rows(run, tmp_path, kernel):
    options = ("--rows", 2000, "--steps", 6, "--mixtures", 4, "--data", tmp_path / "data")
    found, printed = run("million_rows", *options, "--kernels", kernel)
    assert found["rows"] == [200, 2000]
    assert [run["peak"] > 0 and run["step"] > 0 for run in found[kernel]["fit"]] == [True, True]
    assert set(found["batch_of_200"]) == {"rows", "chunks"}
    assert has_verdict(printed)
    left = [path.name for path in (tmp_path / "data").iterdir()]
    assert left == ["digits-2000.npy"]  # no codes


def test_out_of_sample(run):
    options = ("--new", 100, "--repeats", 1, "--epochs", 1, "--threads", 1)
    found, printed = run("out_of_sample", "--train", 200, 300, *options)
    assert list(found["times"]) == ["200", "300"]
    assert found["ratios"]["dkae"] == {"transform": 1, "inverse_transform": 1}
    assert "inverse_transform" not in found["ratios"]["Nystroem 128"]
    assert has_verdict(printed)


def test_partial_fit(run):
    options = ("--rows", 600, "--passes", 1, 2, "--hidden", 16, "--seeds", 1, "--threads", 1)
    found, printed = run("partial_fit", *options)
    assert [(row["network"], row["steps"]) for row in found["rows"]] == [
        ("auto", 10), ("auto", 20), ("stacked", 10), ("stacked", 20),
    ]  # fmt: skip
    assert has_verdict(printed)


def test_chunks(run):
    found, printed = run("chunks", "--rows", 600, "--steps", 10, "--seeds", 1, "--threads", 1)
    assert [(row["network"], row["order"]) for row in found["rows"]] == [
        ("auto", "random"), ("auto", "sorted"), ("stacked", "random"), ("stacked", "sorted"),
    ]  # fmt: skip
    assert has_verdict(printed)
