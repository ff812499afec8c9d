"""New rows through a fitted map: ours against scikit-learn's KernelPCA and Nystroem.

128 components of 14,000 MNIST rows, RBF with the same gamma for all, 10,000 rows that none has
seen (the 6,000 of validation and test, some of them twice). KernelPCA has
``fit_inverse_transform=True`` and the randomized solver; Nystroem, which has no way back, has 128
and 1,000 components: ours has 1,000 landmarks. Times of `transform` and `inverse_transform` are the
best of several. The same with 1,750, 3,500 and 7,000 training rows says how times grow. Each side
has a process of its own, in turn, all with the same number of threads and float32 rows. It is
fitted once, because KernelPCA solves a dense system of 14,000² for its way back. The learned map is
trained for a few steps only: its times do not depend on how good it is.

Prints ratios to ``InvertibleNystroem`` with "mlp", with verdicts: the aim is 50 times KernelPCA,
both ways. It also records the mean squared error of rows that went there and back. Writes
``results/out_of_sample.json``. Five minutes, 8 GB.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from measuring import best_time, make_parser, save, timed, verdict

N_COMPONENTS = 128
TRAINING_ROWS = (1_750, 3_500, 7_000, 14_000)
N_NEW_ROWS = 10_000
OURS, CLOSED = "InvertibleNystroem, mlp", "InvertibleNystroem, kernel_ridge"
LEARNED = "DeepKernelizedAutoencoder"
SIDES = (OURS, CLOSED, LEARNED, "KernelPCA", "Nystroem 128", "Nystroem 1000")
WAYS = ("transform", "inverse_transform")
#: Of the ridge regression of KernelPCA's way back; float32 bears little less at 14,000 rows.
ALPHA = 1e-2
AIM = 50


def make_model(side: str, gamma: float, n_rows: int, n_epochs: int) -> Any:
    from sklearn.decomposition import KernelPCA
    from sklearn.kernel_approximation import Nystroem

    from dkae import DeepKernelizedAutoencoder, InvertibleNystroem
    from dkae.decoders import MLPDecoder

    if side == LEARNED:
        budget = {"max_iter": 1, "decoder_max_iter": 1, "steps_per_epoch": 10}
        return DeepKernelizedAutoencoder(N_COMPONENTS, gamma=gamma, random_state=0, **budget)
    if side in (OURS, CLOSED):
        decoder = MLPDecoder(max_iter=n_epochs) if side == OURS else "kernel_ridge"
        return InvertibleNystroem(N_COMPONENTS, gamma=gamma, decoder=decoder, random_state=0)
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


def time_side(side: str, n_train: int, n_new: int, repeats: int, n_epochs: int) -> Any:
    """Fit one side, and return the times of new rows; runs in a process of its own."""
    from dkae.datasets import load_mnist20k
    from dkae.kernels import PairwiseKernel

    mnist = load_mnist20k(scaled=True)
    gamma = PairwiseKernel("rbf").fit(mnist.data[mnist.train]).gamma_
    train = mnist.data[np.random.default_rng(0).permutation(mnist.train)[:n_train]]
    unseen = mnist.data[np.concatenate([mnist.validation, mnist.test])]
    rows = unseen[np.arange(n_new) % len(unseen)]
    model = make_model(side, gamma, n_train, n_epochs)
    fit, _ = timed(lambda: model.fit(train))
    model.transform(rows[:200])  # first use loads code and starts threads
    found = {"fit": fit, "transform": best_time(lambda: model.transform(rows), repeats)}
    if hasattr(model, "inverse_transform"):
        codes = model.transform(rows)
        back = model.inverse_transform(codes)
        found["inverse_transform"] = best_time(lambda: model.inverse_transform(codes), repeats)
        found["mse"] = float(np.square(back - rows).mean())
    return found


def measure(side: str, n_train: int, threads: int, *options: str) -> dict[str, float]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, __file__, "--side", side, "--train", str(n_train), *options]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    environment = os.environ | dict.fromkeys(names, str(threads))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compare(training_rows: Sequence[int], threads: int, *options: str) -> dict[str, Any]:
    """Return the times of all sides by the number of training rows, and ratios to ours."""
    times: dict[str, dict[str, Any]] = {}
    for n_train in training_rows:
        times[str(n_train)] = {s: measure(s, n_train, threads, *options) for s in SIDES}
        for side, found in times[str(n_train)].items():
            shown = "  ".join(f"{name} {value:.4f}" for name, value in found.items())
            print(f"{n_train:>6} rows  {side:<32} {shown}", flush=True)
    few, many = times[str(training_rows[0])], times[str(training_rows[-1])]
    ratios = {
        side: {way: round(many[side][way] / many[OURS][way], 3) for way in WAYS if way in found}
        for side, found in many.items()
    }
    growth = {
        side: round(
            sum(many[side].get(way, 0) for way in WAYS) / sum(few[side].get(w, 0) for w in WAYS), 2
        )
        for side in SIDES
    }
    return {"threads": threads, "times": times, "ratios": ratios, "growth": growth}


def report(results: dict[str, Any]) -> None:
    """Print ratios, growth and the verdicts."""
    sizes = list(results["times"])
    print(f"times as multiples of those of {OURS} at {sizes[-1]} rows; growth from {sizes[0]} rows")
    for side, ratios in results["ratios"].items():
        shown = "".join(f"  {way} {ratio:8.2f} x" for way, ratio in ratios.items())
        print(f"{side:<32} growth {results['growth'][side]:6.2f} x{shown}")
    for way, ratio in results["ratios"]["KernelPCA"].items():
        verdict(f"{way} {AIM} times as fast as KernelPCA's", ratio >= AIM, f"{ratio:.1f} x")


def main() -> None:
    """Measure, print, write; or one measurement, with ``--side``."""
    parser = make_parser("out_of_sample", __doc__)
    parser.add_argument("--side", choices=SIDES)
    parser.add_argument("--train", type=int, nargs="+", default=list(TRAINING_ROWS))
    parser.add_argument("--new", type=int, default=N_NEW_ROWS)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10, help="of the learned decoder")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    if given.side:
        (n_train,) = given.train
        print(json.dumps(time_side(given.side, n_train, given.new, given.repeats, given.epochs)))
        return
    names = ("new", "repeats", "epochs")
    options = [word for name in names for word in (f"--{name}", str(getattr(given, name)))]
    results = compare(given.train, given.threads, *options)
    report(results)
    save(given.results, results)


if __name__ == "__main__":
    main()
