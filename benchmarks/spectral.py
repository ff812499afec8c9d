"""128 components of the Probabilistic Cluster Kernel: ours against scikit-learn's KernelPCA.

Both sides are given the posteriors of 14,000 MNIST rows: scikit-learn dense in float32, from which
it needs the Gram matrix (``Phi @ Phi.T``, or our own faster product: the better one counts), then
``KernelPCA(kernel="precomputed", eigen_solver="randomized")``; ours sparse. Then 3,000 new rows
are projected, theirs from the kernel rows that have to be computed first. Each measurement is a
process of its own, in turn, best of several. Peak memory is what a process needed beyond what it
held before, the posteriors included. Prints ratios with verdicts, and writes
``results/spectral.json``. With ``--mnist FOLDER`` (the original IDX files) ours also runs on all
60,000 rows, whose Gram matrix would be 29 GB. Linux only, because it reads the peak from /proc.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measuring import make_parser, save, start_peak, status, timed
from numpy.typing import NDArray
from scipy import sparse

N_COMPONENTS = 128
REPEATS = 2


def peak_beyond(work: Callable[[], Any]) -> tuple[float, int, Any]:
    """Return the time and the peak memory of some work, and its result."""
    before = start_peak()
    time_of, result = timed(work)
    return time_of, status("VmHWM") - before, result


def ours(train: sparse.csr_array, new: sparse.csr_array) -> dict[str, float]:
    """Measure our side: the rows are numbers, and their features are looked up."""
    from sklearn.preprocessing import FunctionTransformer

    from dkae.kernels import TransformerKernel
    from dkae.spectral import KernelPCA

    tables = {0: train, 1: new}

    def features(ids: np.ndarray) -> sparse.csr_array:
        table, row = ids.astype(int).T
        given = tables[table[0]]
        return given if len(row) == given.shape[0] else given[row]

    kernel = TransformerKernel(FunctionTransformer(features))
    old_ids, new_ids = (
        np.column_stack([np.full(phi.shape[0], i), np.arange(phi.shape[0])])
        for i, phi in tables.items()
    )
    params = {"kernel": kernel, "center": False, "decoder": None, "random_state": 0}
    KernelPCA(4, **params).fit(old_ids[:2000])  # loads code
    model = KernelPCA(N_COMPONENTS, **params)
    fit, peak, _ = peak_beyond(lambda: model.fit(old_ids))
    project, _ = timed(lambda: model.transform(new_ids))
    eigenvalues = model.eigenvalues_[[0, -1]].tolist()
    return {"fit": fit, "peak": peak, "project": project, "eigenvalues": eigenvalues}


def theirs(train: sparse.csr_array, new: sparse.csr_array) -> dict[str, float]:
    """Measure scikit-learn's side."""
    from sklearn.decomposition import KernelPCA

    dense, dense_new = train.toarray(), new.toarray()
    model = KernelPCA(N_COMPONENTS, kernel="precomputed", eigen_solver="randomized", random_state=0)
    times = {}

    def fit() -> None:
        times["gram"], gram = timed(lambda: dense @ dense.T)
        model.fit(gram)

    def transform() -> None:
        times["gram_new"], gram = timed(lambda: dense_new @ dense.T)
        model.transform(gram)

    fit_time, peak, _ = peak_beyond(fit)
    project, _ = timed(transform)
    return {"fit": fit_time, "peak": peak, "project": project, **times}


def measure(side: str, folder: str) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--folder", folder]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def save_posteriors(folder: str, train: np.ndarray, new: np.ndarray, mixtures: int = 30) -> Any:
    """Fit the kernel, write the posteriors."""
    from dkae.kernels import ProbabilisticClusterKernel

    kernel = ProbabilisticClusterKernel(mixtures, mixtures, random_state=0).fit(train)
    for name, X in {"train": train, "new": new}.items():
        sparse.save_npz(f"{folder}/{name}.npz", kernel.feature_matrix(X), compressed=False)
    return kernel


def our_products(kernel: Any, train: np.ndarray, new: np.ndarray) -> dict[str, float]:
    """Time our own way to the Gram matrix and to the kernel rows, for their benefit."""
    prior, rows = kernel.on(train), np.arange(len(train))
    other = kernel.on(new)
    return {
        "gram": timed(lambda: [prior.block(rows, part) for part in np.split(rows, 10)])[0],
        "gram_new": timed(lambda: prior.between(other.rows, prior.rows))[0],
    }


def verdict(name: str, ours: float, theirs: float, unit: str, must: float) -> dict[str, Any]:
    ratio = theirs / ours
    word = "holds" if ratio >= must else "FAILS"
    print(
        f"{name:<34} ours {ours:9.3f} {unit}  theirs {theirs:9.2f} {unit}  {ratio:6.1f} x  {word}"
    )
    return {"ours": ours, "theirs": theirs, "ratio": round(ratio, 2), "verdict": word}


def compare(n_rows: int | None, mixtures: int) -> dict[str, Any]:
    """Measure both sides on 14,000 rows in turn."""
    from dkae.datasets import load_mnist20k

    mnist = load_mnist20k(scaled=True)
    with TemporaryDirectory() as folder:
        data = mnist.data[mnist.train[:n_rows]], mnist.data[mnist.test[:n_rows]]
        helped = our_products(save_posteriors(folder, *data, mixtures), *data)
        runs = [(measure("ours", folder), measure("theirs", folder)) for _ in range(REPEATS)]
    best = [
        {key: min(run[key] for run in side) for key in side[0]} for side in zip(*runs, strict=True)
    ]
    a, b = best
    # Whichever way to the Gram matrix is faster counts for them.
    print(f"their Gram: dense product {b['gram']:.1f} s, our product {helped['gram']:.1f} s")
    fit = b["fit"] - b["gram"] + min(b["gram"], helped["gram"])
    project = b["project"] - b["gram_new"] + min(b["gram_new"], helped["gram_new"])
    return {
        "gram": {"dense": b["gram"], "our_product": helped["gram"]},
        "fit": verdict("128 components of 14,000 rows", a["fit"], fit, "s", 10),
        "memory": verdict("peak memory of it", a["peak"] / 1e6, b["peak"] / 1e6, "MB", 5),
        "project": verdict("project 3,000 new rows", a["project"], project, "s", 10),
    }


def _pixels(path: Path) -> NDArray[np.float32]:
    with gzip.open(path) as file:  # the header has 16 bytes
        pixels = np.frombuffer(file.read(), np.uint8, offset=16)
    return pixels.reshape(-1, 784) / np.float32(255)


def at_full_size(mnist: Path) -> dict[str, Any]:
    """Measure ours on all 60,000 training rows, with 10,000 new ones."""
    train, new = (_pixels(mnist / f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k"))
    with TemporaryDirectory() as folder:
        save_posteriors(folder, train, new)
        result = measure("ours", folder)
    print(
        f"60,000 rows: fit {result['fit']:.1f} s, peak {result['peak'] / 1e6:.0f} MB beyond the "
        f"posteriors, 10,000 new rows {result['project']:.2f} s"
    )
    return result


def main() -> None:
    """Measure, print, write; or one side, with ``--side``."""
    parser = make_parser("spectral", __doc__)
    parser.add_argument("--side", choices=["ours", "theirs"])
    parser.add_argument("--folder")
    parser.add_argument("--mnist", type=Path)
    parser.add_argument("--rows", type=int, help="rows at most, for a trial")
    parser.add_argument("--mixtures", type=int, default=30, help="G and Q of the cluster kernel")
    given = parser.parse_args()
    if given.side:
        parts = (sparse.load_npz(f"{given.folder}/{name}.npz") for name in ("train", "new"))
        print(json.dumps({"ours": ours, "theirs": theirs}[given.side](*parts)))
        return
    results = json.loads(given.results.read_text()) if given.results.exists() else {}
    results |= compare(given.rows, given.mixtures)
    if given.mnist:
        results["rows_60000"] = at_full_size(given.mnist)
    save(given.results, results)


if __name__ == "__main__":
    main()
