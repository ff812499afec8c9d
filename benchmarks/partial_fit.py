"""What `partial_fit` loses against `fit`: ten chunks of the 14,000 MNIST training rows.

Both sides have the same network (the kernel layer and the stack), the same number of steps, and no
early stopping; of the stack both train everything together, of the kernel layer the decoder. `fit`
draws its batches from all rows at a rate that knows its end; `partial_fit` sees a chunk at a time,
takes kernel and landmarks from the first one, and knows no end. One and five passes over the chunks
are 70 and 350 steps. RBF, N_c = 128, hidden layers of a width that both are given.

Prints L_c of the codes against the kernel of the same model, and the mean squared error, on the
validation rows, as means over seeds, and the ratios of both; the aim is less than 10 % more. Writes
``results/partial_fit.json``. Three minutes with two threads.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.datasets import load_mnist20k

RESULTS = Path(__file__).parent / "results" / "partial_fit.json"
NETWORKS = ("auto", "stacked")
N_CHUNKS = 10
MOST = 1.1


def make_model(network: str, hidden: Sequence[int], seed: int, **params: Any) -> Any:
    return DeepKernelizedAutoencoder(
        128,
        network=network,
        hidden_layer_sizes=tuple(hidden),
        early_stopping=False,
        random_state=seed,
        **params,
    )


def fit_whole(
    network: str, train: np.ndarray, n_passes: int, n_steps: int, hidden: Sequence[int], seed: int
) -> Any:
    """Return a model that `fit` has trained, for as many steps as the passes have."""
    is_computed = network == "auto"  # only the decoder of a kernel layer learns
    n_joint, n_decoder = (0, n_passes) if is_computed else (n_passes, 0)
    budget = {"max_iter": n_joint, "decoder_max_iter": n_decoder, "steps_per_epoch": n_steps}
    return make_model(network, hidden, seed, **budget).fit(train)


def measure(model: Any, rows: np.ndarray, seconds: float) -> dict[str, float]:
    codes = model.transform(rows)
    prior = model.prior_gram(rows)
    return {
        "alignment_loss": metrics.alignment_loss(metrics.code_gram(codes), prior),
        "mse": metrics.reconstruction_error(rows, model.inverse_transform(codes)),
        "seconds": seconds,
    }


def run(
    network: str,
    train: np.ndarray,
    validation: np.ndarray,
    passes: Sequence[int],
    hidden: Sequence[int],
    seed: int,
) -> list[dict[str, Any]]:
    """Train both sides in turn, and return a record for each number of passes."""
    chunks = np.array_split(train, N_CHUNKS)
    model = make_model(network, hidden, seed)
    n_steps = sum(-(-len(chunk) // model.batch_size) for chunk in chunks)
    records, seconds = [], 0.0
    for n_passes in range(1, max(passes) + 1):
        start = time.perf_counter()
        for chunk in chunks:
            model.partial_fit(chunk)
        seconds += time.perf_counter() - start
        if n_passes not in passes:
            continue
        start = time.perf_counter()
        whole = fit_whole(network, train, n_passes, n_steps, hidden, seed)
        fitted = measure(whole, validation, time.perf_counter() - start)
        parts = measure(model, validation, seconds)
        record = {"network": network, "steps": n_passes * n_steps, "seed": seed}
        records.append(record | {"partial_fit": parts, "fit": fitted})
    return records


def compare(
    n_rows: int | None = None,
    passes: Sequence[int] = (1, 5),
    hidden: Sequence[int] = (1000, 1000),
    seeds: Sequence[int] = (0, 1),
) -> dict[str, Any]:
    """Return all records, and for each network and number of steps the ratio of the means."""
    mnist = load_mnist20k(scaled=True)
    train, validation = mnist.data[mnist.train][:n_rows], mnist.data[mnist.validation][:n_rows]
    runs = [
        record
        for network in NETWORKS
        for seed in seeds
        for record in run(network, train, validation, passes, hidden, seed)
    ]
    rows = []
    for network, steps in dict.fromkeys((r["network"], r["steps"]) for r in runs):
        own = [r for r in runs if (r["network"], r["steps"]) == (network, steps)]
        row: dict[str, Any] = {"network": network, "steps": steps}
        for name in ("alignment_loss", "mse", "seconds"):
            parts, whole = (mean(r[side][name] for r in own) for side in ("partial_fit", "fit"))
            row[name] = {"partial_fit": parts, "fit": whole, "ratio": round(parts / whole, 4)}
        rows.append(row)
    return {"rows": rows, "runs": runs}


def report(results: dict[str, Any]) -> None:
    """Print the table, and a verdict for each loss."""
    head = ("network", "steps", "loss", "partial_fit", "fit", "ratio")
    print("{:<10}{:>6}  {:<16}{:>12}{:>12}{:>8}".format(*head))
    for row in results["rows"]:
        for name in ("alignment_loss", "mse", "seconds"):
            found = row[name]
            word = ""
            if name != "seconds":
                word = "holds" if found["ratio"] < MOST else "FAILS"
            print(
                f"{row['network']:<10}{row['steps']:>6}  {name:<16}{found['partial_fit']:>12.5f}"
                f"{found['fit']:>12.5f}{found['ratio']:>8.3f}  {word}"
            )
    worst = {
        name: max(row[name]["ratio"] for row in results["rows"])
        for name in ("alignment_loss", "mse")
    }
    for name, ratio in worst.items():
        word = "holds" if ratio < MOST else "FAILS"
        print(f"{name} of partial_fit within 10 % of fit: {word} (at worst {ratio:.3f} x)")


def main() -> None:
    """Measure, print, write."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="training rows, all by default")
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--hidden", type=int, nargs="+", default=[1000, 1000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore", ConvergenceWarning)  # after a few steps, models are no good
    results = compare(arguments.rows, arguments.passes, arguments.hidden, range(arguments.seeds))
    report(results)
    arguments.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
