"""Memory and time of a training step do not depend on how many rows are on the disk.

1,000,000 digits of 784 bytes, made by shifting (up to 2 pixels) and turning (up to 15°) those that
ship with the package, stand in one file; ``--data FOLDER`` says where, and it is made once. The
first tenth of it and all of it are read through `dkae.RowArray`, for both maps with an RBF kernel,
and for the autoencoder with the Probabilistic Cluster Kernel, whose features of all rows would not
fit into `cache_bytes`. Each measurement is a process of its own, both sizes in turn, twice:

- the peak of `fit` beyond what the process holds after ``import torch``, and the median time of a
  training step, with the file in the page cache; the better of two runs counts;
- the same peak of `transform` to a file, by a model that was loaded, once;
- one batch of 200 rows from all of them, by ``shuffle="rows"`` and ``"chunks"``, from the disk
  (pages dropped before each) and from the page cache, median of several; no kernel is evaluated.

Prints ratios with verdicts: peaks differ by less than 5 %, steps by less than 10 %. Writes
``results/million_rows.json``. Linux only, because it reads the peak from /proc. Twenty minutes on
two cores, most of it for the cluster kernel; 1.3 GB of disk.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from measuring import Clock, make_parser, save, start_peak, status, verdict

N_ROWS = 1_000_000
N_FEATURES, N_COMPONENTS, N_CHUNK = 784, 128, 10_000
N_SKIPPED = 20
#: Of 100,000 rows; the posteriors of the study's cluster kernel take 900 bytes a row and more.
CACHE_BYTES = 2**26
CASES = ("nystroem, rbf", "autoencoder, rbf", "autoencoder, pck")
#: Bytes that a measuring process held after importing torch alone.
_AFTER_TORCH: list[int] = []


def make_rows(folder: Path, n_rows: int) -> Path:
    """Write the digits chunk by chunk, unless they are there."""
    import torch
    from torch.nn.functional import affine_grid, grid_sample

    from dkae.datasets import load_mnist20k

    path = folder / f"digits-{n_rows}.npy"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    images, rng = torch.from_numpy(load_mnist20k().images), np.random.default_rng(0)
    unfinished = path.with_suffix(".unfinished")
    shape = (n_rows, N_FEATURES)
    rows = np.lib.format.open_memmap(unfinished, mode="w+", dtype=np.uint8, shape=shape)
    for start in range(0, n_rows, N_CHUNK):
        n = min(N_CHUNK, n_rows - start)
        angle, shift = np.deg2rad(rng.uniform(-15, 15, n)), rng.integers(-2, 3, (n, 2))
        cos, sin = np.cos(angle), np.sin(angle)
        # Where each pixel comes from, in units of half an image: (n, 2, 3).
        maps = np.stack([cos, -sin, shift[:, 0] / 14, sin, cos, shift[:, 1] / 14], axis=1)
        grid = affine_grid(
            torch.from_numpy(maps.reshape(n, 2, 3)).float(), [n, 1, 28, 28], align_corners=False
        )
        chosen = images[torch.from_numpy(rng.integers(0, len(images), n))][:, None].float()
        moved = grid_sample(chosen, grid, align_corners=False).round().byte()
        rows[start : start + n] = moved.reshape(n, N_FEATURES).numpy()
    rows.flush()
    unfinished.rename(path)
    return path


# --- measurements, each in a process of its own ---------------------------------------------------


def make_model(
    case: str, n_steps: int, mixtures: int, cache_bytes: int, callbacks: Any = None
) -> Any:
    from dkae import DeepKernelizedAutoencoder, InvertibleNystroem
    from dkae.decoders import MLPDecoder
    from dkae.kernels import ProbabilisticClusterKernel

    common: dict[str, Any] = {"random_state": 0, "callbacks": callbacks}
    if case == "nystroem, rbf":
        decoder = MLPDecoder(max_iter=1, steps_per_epoch=n_steps)
        return InvertibleNystroem(N_COMPONENTS, decoder=decoder, **common)
    if case == "autoencoder, pck":  # as in the study, at the scale laptop
        common["kernel"] = ProbabilisticClusterKernel(
            mixtures, mixtures, max_fit_samples=200, reg_covar=1e-3, random_state=0
        )
        common["cache_bytes"] = cache_bytes
    budget = {"max_iter": 1, "decoder_max_iter": 0, "steps_per_epoch": n_steps}
    return DeepKernelizedAutoencoder(N_COMPONENTS, **budget, **common)


def read_rows(path: Path, n_rows: int, shuffle: str = "rows") -> Any:
    from dkae import RowArray

    return RowArray(np.load(path, mmap_mode="r")[:n_rows], scale=255, shuffle=shuffle)


def fit(path: Path, n_rows: int, n_steps: int, **options: Any) -> dict[str, float]:
    """Return the peak of `fit`, its time, and that of a step."""
    with path.open("rb") as file:  # into the page cache
        while file.read(2**20):
            pass
    clock = Clock()
    model = make_model(n_steps=n_steps, callbacks=[clock], **options)
    X = read_rows(path, n_rows)
    start_peak()
    start = time.perf_counter()
    model.fit(X)
    seconds, peak = time.perf_counter() - start, status("VmHWM") - _AFTER_TORCH[0]
    steps = np.diff(clock.times)[min(N_SKIPPED, n_steps // 2) :]
    return {"peak": peak, "step": median(steps.tolist()), "seconds": seconds}


def fit_small(path: Path, n_rows: int, **options: Any) -> dict[str, str]:
    """Write a model of a few rows, for `transform`: it begins without what a fit has let go."""
    model = make_model(**options | {"n_steps": 10})
    written = path.with_suffix(".model")
    written.write_bytes(pickle.dumps(model.fit(read_rows(path, n_rows)[:5_000])))
    return {"model": str(written)}


def transform(path: Path, n_rows: int, **_: Any) -> dict[str, float]:
    """Return the peak of `transform` to a file, and its time."""
    model = pickle.loads(path.with_suffix(".model").read_bytes())
    X, codes = read_rows(path, n_rows), path.with_suffix(".codes")
    shape = (n_rows, N_COMPONENTS)
    try:
        out = np.lib.format.open_memmap(codes, mode="w+", dtype=np.float32, shape=shape)
        start_peak()
        start = time.perf_counter()
        model.transform(X, out=out)
        seconds = time.perf_counter() - start
        return {"peak": status("VmHWM") - _AFTER_TORCH[0], "seconds": seconds}
    finally:
        codes.unlink(missing_ok=True)


def read_batches(path: Path, n_rows: int, repeats: int = 15, **_: Any) -> dict[str, Any]:
    """Return the time of a batch of 200 rows, by how they are chosen and where they are."""
    return {
        shuffle: {
            state: median(_time_batch(path, n_rows, shuffle, is_cold, i) for i in range(repeats))
            for state, is_cold in (("cold", True), ("warm", False))
        }
        for shuffle in ("rows", "chunks")
    }


def _time_batch(path: Path, n_rows: int, shuffle: str, is_cold: bool, seed: int) -> float:
    import torch

    from dkae.training import BatchSource

    if is_cold:
        with path.open("rb") as file:  # no process has it mapped now
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    X = read_rows(path, n_rows, shuffle)
    everyone, nobody = np.arange(n_rows), np.arange(0)
    rng, cpu = np.random.default_rng(seed), torch.device("cpu")
    source = BatchSource(X, None, everyone, nobody, 200, 1, rng, cpu)
    if not is_cold:
        state = source.state_dict()
        source.draw(with_prior=False)  # the same rows, which are in memory then
        source.load_state_dict(state)
    start = time.perf_counter()
    source.draw(with_prior=False)
    return time.perf_counter() - start


TASKS = {"fit": fit, "fit_small": fit_small, "transform": transform, "batches": read_batches}


# --- comparison ----------------------------------------------------------------------------------


def measure(task: str, path: Path, n_rows: int, case: str, *options: str) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--task", task, "--file", str(path)]
    command += ["--rows", str(n_rows), "--cases", case, *options]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(
    path: Path, n_rows: int, cases: list[str], n_steps: int, mixtures: int
) -> dict[str, Any]:
    """Return all measurements, the smaller number of rows first."""
    sizes = (n_rows // 10, n_rows)
    cache_bytes = CACHE_BYTES * sizes[0] // 100_000
    options = ["--steps", str(n_steps), "--mixtures", str(mixtures)]
    options += ["--cache-bytes", str(cache_bytes)]
    results: dict[str, Any] = {"rows": sizes, "cache_bytes": cache_bytes, "cases": {}}
    for case in cases:
        runs = [[measure("fit", path, n, case, *options) for n in sizes] for _ in range(2)]
        best = [
            {name: min(run[name] for run in of_size) for name in of_size[0]}
            for of_size in zip(*runs, strict=True)
        ]
        measure("fit_small", path, n_rows, case, *options)
        coded = [measure("transform", path, n, case, *options) for n in sizes]
        path.with_suffix(".model").unlink()
        results["cases"][case] = {"fit": best, "transform": coded}
    results["batch_of_200"] = measure("batches", path, n_rows, cases[0], *options)
    return results


def report(results: dict[str, Any]) -> dict[str, Any]:
    """Print the table, and return the verdicts."""
    few, many = results["rows"]
    verdicts: dict[str, Any] = {}
    print(f"{few:,} rows, {many:,} rows")
    for case, found in results["cases"].items():
        lines = [
            ("peak of fit", "MB", 1e-6, [run["peak"] for run in found["fit"]], 0.05),
            ("step", "ms", 1e3, [run["step"] for run in found["fit"]], 0.10),
            ("peak of transform", "MB", 1e-6, [run["peak"] for run in found["transform"]], 0.05),
        ]
        for name, unit, factor, (a, b), most in lines:
            shown = f"{a * factor:.1f} and {b * factor:.1f} {unit}, {b / a:.3f} x"
            claim = f"{case}, {name}: less than {100 * most:.0f} % apart"
            word = verdict(claim, abs(b / a - 1) < most, shown)
            verdicts[f"{case}, {name}"] = {"ratio": round(b / a, 4), "verdict": word}
    batch = results["batch_of_200"]
    for shuffle, times in batch.items():
        cold, warm = (1e3 * times[state] for state in ("cold", "warm"))
        print(f"200 {shuffle:<8} cold {cold:8.2f} ms  warm {warm:8.2f} ms  {cold / warm:6.1f} x")
    ratio = batch["rows"]["cold"] / batch["chunks"]["cold"]
    print(f"cold rows take {ratio:.1f} times as long as cold chunks")
    return verdicts | {"cold_rows_by_chunks": round(ratio, 2)}


def main() -> None:
    """Measure, print, write; or one measurement, with ``--task``."""
    parser = make_parser("million_rows", __doc__)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--data", type=Path, default=Path(tempfile.gettempdir()) / "dkae-rows")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--mixtures", type=int, default=30, help="G and Q of the cluster kernel")
    parser.add_argument("--task", choices=TASKS)
    parser.add_argument("--file", type=Path)
    parser.add_argument("--cache-bytes", type=int)
    given = parser.parse_args()
    if given.task:
        import torch  # noqa: F401 - what it takes is no part of a peak

        _AFTER_TORCH.append(status("VmRSS"))
        options = {"case": given.cases[0], "n_steps": given.steps, "mixtures": given.mixtures}
        options["cache_bytes"] = given.cache_bytes
        print(json.dumps(TASKS[given.task](given.file, given.rows, **options)))
        return
    path = make_rows(given.data, given.rows)
    results = compare(path, given.rows, given.cases, given.steps, given.mixtures)
    results["verdicts"] = report(results)
    save(given.results, results)


if __name__ == "__main__":
    main()
