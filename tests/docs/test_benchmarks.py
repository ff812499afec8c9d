"""Benchmarks run, at sizes that mean nothing, and tables can be written from what they leave."""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BENCHMARKS.exists(), reason="not in an installed package"),
    pytest.mark.skipif(sys.platform != "linux", reason="they read /proc, or the cores allowed"),
]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Return a function that runs a benchmark here, and returns its results and what it printed."""
    n_threads = torch.get_num_threads()
    monkeypatch.syspath_prepend(BENCHMARKS)
    monkeypatch.syspath_prepend(ROOT)

    def run(name: str, *options: object) -> tuple[dict, str]:
        path = tmp_path / f"{name}.json"
        command = [name, *map(str, options), "--results", str(path)]
        monkeypatch.setattr(sys, "argv", command)
        runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name="__main__")
        return json.loads(path.read_text(encoding="utf-8")), capsys.readouterr().out

    yield run
    torch.set_num_threads(n_threads)


@pytest.fixture
def tabled(tmp_path, monkeypatch, run):
    """Return a function that writes a table from the results of runs of this test."""
    from scripts import benchmark_blocks, large_data_blocks, tables

    def read(name):
        return json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))

    for module in (benchmark_blocks, large_data_blocks):
        monkeypatch.setattr(module, "benchmark", read)
    return lambda name: tables.BLOCKS[name]()


def has_verdict(text: str) -> bool:
    return "holds" in text or "FAILS" in text


def test_recipes(run, tabled):
    methods = ["InvertibleNystroem", "Nystroem(1000) + PCA + KernelRidge", "PCA"]
    options = ("--toy", "--jobs", 1, "--data", "wine", "--only", *methods)
    found, printed = run("recipes", *options)
    assert len(found) == 3 * (3 + 3 + 1)  # kernels, seeds
    assert "21 fits" not in printed  # PCA sees no kernel, and is fitted once
    _, printed = run("recipes", "--resume", *options)
    assert "0 fits" in printed
    assert "Nystroem(1000) + PCA + KernelRidge" in tabled("recipes")


def test_nystroem(run, tabled):
    found, printed = run("nystroem", "--rows", 80, "--repeats", 1, "--data", "breast cancer")
    assert set(found["breast cancer"]["sides"]) >= {"ridge", "kernel_ridge", "mlp"}
    assert has_verdict(printed)
    assert "breast cancer, `mlp`" in tabled("nystroem-speed")
    assert "breast cancer" in tabled("nystroem-quality")


def test_mnist_recipes(run, tabled):
    method = "InvertibleNystroem, kernel_ridge"
    found, printed = run("mnist_recipes", "--rows", 150, "--kernels", "rbf", "--only", method)
    assert f"rbf / {method} / 2" in found
    assert has_verdict(printed)
    assert f"rbf, {method}" in tabled("mnist-recipes")


def test_learned_map(run, tabled):
    options = ("--rows", 150, "--kernels", "rbf", "--only", "20 epochs, views", "--steps", 1)
    found, _ = run("learned_map", *options)
    assert found["rbf / 20 epochs, views / 0"]["validation"]["alignment_loss"] > 0
    assert "| rbf | 20 epochs, views |" in tabled("learned-map")


def test_quickstart(run, tabled):
    found, _ = run("quickstart", "--rows", 150, "--epochs", 1)
    assert found["constant kernel"]["centered_alignment"] == 0
    assert "PCA" in tabled("quickstart")
    assert "`KernelPCA`" in tabled("maps")


def test_fit_trace(run, tabled):
    found, _ = run("fit_trace")
    assert all(counts["depth"] > 2 for counts in found.values())
    assert "KernelPCA" in tabled("fit-trace")


def test_partial_fit(run, tabled):
    options = ("--rows", 600, "--passes", 1, 2, "--hidden", 16, "--seeds", 1, "--threads", 1)
    found, printed = run("partial_fit", *options)
    assert [row["steps"] for row in found["rows"]] == [10, 20, 10, 20]
    assert has_verdict(printed)
    assert "`InvertibleNystroem`" in tabled("partial-fit")


def test_chunks(run, tabled):
    found, _ = run("chunks", "--rows", 200, "--steps", 10, "--seeds", 1, "--threads", 1)
    assert [row["order"] for row in found["rows"]] == ["random", "sorted"] * 2
    assert "sorted by digit" in tabled("chunks")


def test_million_rows(run, tabled, tmp_path, monkeypatch):
    import million_rows

    def measure(task, path, n_rows, case, *options):
        """Measure in this process."""
        given = {"case": case, "n_steps": 6, "mixtures": 4, "cache_bytes": 2**20}
        return million_rows.TASKS[task](path, n_rows, **given)

    monkeypatch.setattr(million_rows, "measure", measure)
    monkeypatch.setattr(million_rows, "_AFTER_TORCH", [0])
    path = million_rows.make_rows(tmp_path / "data", 1000)
    found = million_rows.compare(path, 1000, ["autoencoder, rbf"], 6, 4)
    assert found["rows"] == (100, 1000)
    assert set(million_rows.report(found)) >= {"autoencoder, rbf, step"}
    left = [path.name for path in (tmp_path / "data").iterdir()]
    assert left == ["digits-1000.npy"]  # no codes
    (tmp_path / "million_rows.json").write_text(json.dumps(found))
    assert "autoencoder, rbf: a step" in tabled("million-rows")
