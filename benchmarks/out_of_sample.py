"""New rows through a fitted model: dkae against scikit-learn's KernelPCA and Nystroem.

128 components of 14,000 MNIST rows, RBF with the same gamma for all, 10,000 rows that none has
seen (the 6,000 of validation and test, some of them twice). KernelPCA has
``fit_inverse_transform=True`` and the randomized solver; Nystroem, which has no way back, has 128
and 1,000 components: a kernel layer has 1,000 landmarks. Times of `transform` and
`inverse_transform` are the best of several. The same with 1,750, 3,500 and 7,000 training rows
says how times grow; the decoder of dkae is a little narrower there. Each side has a process of its
own, in turn, all with the same number of threads and float32 rows. It is fitted once, because
KernelPCA solves a dense system of 14,000² for its way back.

Prints ratios to dkae with verdicts: the aim is 50 times KernelPCA, both ways. The mean squared
error of rows that went there and back is beside them. Writes ``results/out_of_sample.json``. Four
minutes, 8 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results" / "out_of_sample.json"
N_COMPONENTS = 128
TRAINING_ROWS = (1_750, 3_500, 7_000, 14_000)
N_NEW_ROWS = 10_000
SIDES = ("dkae", "KernelPCA", "Nystroem 128", "Nystroem 1000")
#: Of the ridge regression of KernelPCA's way back; float32 bears little less at 14,000 rows.
ALPHA = 1e-2
AIM = 50


def make_model(side: str, gamma: float, n_rows: int, n_epochs: int | str) -> Any:
    from sklearn.decomposition import KernelPCA
    from sklearn.kernel_approximation import Nystroem

    from dkae import DeepKernelizedAutoencoder

    if side == "dkae":
        return DeepKernelizedAutoencoder(
            N_COMPONENTS, gamma=gamma, decoder_max_iter=n_epochs, random_state=0
        )
    if side == "KernelPCA":
        return KernelPCA(
            N_COMPONENTS,
            kernel="rbf",
            gamma=gamma,
            fit_inverse_transform=True,
            alpha=ALPHA,
            eigen_solver="randomized",
            random_state=0,
        )
    n_components = min(int(side.split()[1]), n_rows)
    return Nystroem(gamma=gamma, n_components=n_components, random_state=0)


def best(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the shortest time of some work, and its result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def time_side(side: str, n_train: int, n_new: int, repeats: int, n_epochs: int | str) -> Any:
    """Fit one side, and return the times of new rows; runs in a process of its own."""
    from dkae.datasets import load_mnist20k
    from dkae.kernels import PairwiseKernel

    mnist = load_mnist20k(scaled=True)
    gamma = PairwiseKernel("rbf").fit(mnist.data[mnist.train]).gamma_
    train = mnist.data[np.random.default_rng(0).permutation(mnist.train)[:n_train]]
    unseen = mnist.data[np.concatenate([mnist.validation, mnist.test])]
    rows = unseen[np.arange(n_new) % len(unseen)]
    model = make_model(side, gamma, n_train, n_epochs)
    fit, _ = best(lambda: model.fit(train), 1)
    model.transform(rows[:200])  # first use loads code and starts threads
    transform, codes = best(lambda: model.transform(rows), repeats)
    found = {"fit": fit, "transform": transform}
    if hasattr(model, "inverse_transform"):
        model.inverse_transform(codes[:200])
        found["inverse_transform"], back = best(lambda: model.inverse_transform(codes), repeats)
        found["mse"] = float(np.square(back - rows).mean())
    return found


def measure(side: str, n_train: int, threads: int, *options: str) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--train", str(n_train), *options]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout)


def compare(training_rows: Sequence[int], threads: int, *options: str) -> dict[str, Any]:
    """Return the times of all sides by the number of training rows, and ratios to dkae."""
    times: dict[str, dict[str, Any]] = {}
    for n_train in training_rows:
        times[str(n_train)] = {s: measure(s, n_train, threads, *options) for s in SIDES}
        for side, found in times[str(n_train)].items():
            shown = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
            print(f"{n_train:>6} rows  {side:<14} {shown}", flush=True)
    few, many = times[str(training_rows[0])], times[str(training_rows[-1])]
    ways = ("transform", "inverse_transform")
    ratios = {
        side: {way: round(many[side][way] / many["dkae"][way], 3) for way in ways if way in found}
        for side, found in many.items()
    }
    growth = {
        side: round(
            sum(many[side].get(way, 0) for way in ways) / sum(few[side].get(w, 0) for w in ways), 2
        )
        for side in SIDES
    }
    return {"threads": threads, "times": times, "ratios": ratios, "growth": growth}


def report(results: dict[str, Any]) -> None:
    """Print ratios, growth and the verdicts."""
    sizes = list(results["times"])
    print(f"times as multiples of dkae's at {sizes[-1]} rows; growth from {sizes[0]} rows")
    for side, ratios in results["ratios"].items():
        shown = "".join(f"  {way} {ratio:8.2f} x" for way, ratio in ratios.items())
        print(f"{side:<14} growth {results['growth'][side]:6.2f} x{shown}")
    for way, ratio in results["ratios"]["KernelPCA"].items():
        word = "holds" if ratio >= AIM else "FAILS"
        print(f"{way} {AIM} times as fast as KernelPCA's: {word} ({ratio:.1f} x)")


def main() -> None:
    """Measure, print, write; or one measurement, with ``--side``."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--train", type=int, nargs="+", default=list(TRAINING_ROWS))
    parser.add_argument("--new", type=int, default=N_NEW_ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, help="of dkae's decoder, its default if left out")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.side:
        epochs = "auto" if arguments.epochs is None else arguments.epochs
        (n_train,) = arguments.train
        found = time_side(arguments.side, n_train, arguments.new, arguments.repeats, epochs)
        print(json.dumps(found))
        return
    options = ["--new", str(arguments.new), "--repeats", str(arguments.repeats)]
    if arguments.epochs is not None:
        options += ["--epochs", str(arguments.epochs)]
    results = compare(arguments.train, arguments.threads, *options)
    report(results)
    arguments.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
