"""What `partial_fit` loses against `fit`: ten chunks of the 14,000 MNIST training rows.

Both sides have the same number of steps, and nothing is held out: of the autoencoder both train
everything together, of ``InvertibleNystroem`` the decoder "mlp". `fit` draws its batches from all
rows at a rate that knows its end; `partial_fit` sees a chunk at a time, takes kernel and landmarks
from the first one, and knows no end. One and five passes over the chunks are 70 and 350 steps. RBF,
N_c = 128, hidden layers of a width that both are given.

Prints L_c of the codes against the kernel of the same model, and the mean squared error, on the
validation rows, as means over seeds, and the ratios of both; the aim is less than 10 % more. Writes
``results/partial_fit.json``. Three minutes with two threads.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
import torch
from measuring import make_parser, save, timed, verdict

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, metrics
from dkae.datasets import load_mnist20k
from dkae.decoders import MLPDecoder
from dkae.networks import Stack

MAPS = ("InvertibleNystroem", "DeepKernelizedAutoencoder")
N_COMPONENTS, N_CHUNKS = 128, 10
MOST = 1.1


def make_model(name: str, hidden: Sequence[int], seed: int, budget: dict[str, int]) -> Any:
    """Return a map that is trained for `budget`, epochs and steps of each."""
    if name == "InvertibleNystroem":
        decoder = MLPDecoder(tuple(hidden), validation_fraction=0.0, **budget)
        return InvertibleNystroem(N_COMPONENTS, decoder=decoder, random_state=seed)
    network = Stack(tuple(hidden))
    return DeepKernelizedAutoencoder(
        N_COMPONENTS, network=network, decoder_max_iter=0, random_state=seed, **budget
    )


def measure(model: Any, rows: np.ndarray, seconds: float) -> dict[str, float]:
    codes = model.transform(rows)
    prior = model.prior_gram(rows)
    return {
        "alignment_loss": metrics.alignment_loss(metrics.code_gram(codes), prior),
        "mse": metrics.reconstruction_error(rows, model.inverse_transform(codes)),
        "seconds": seconds,
    }


def run(
    name: str,
    train: np.ndarray,
    validation: np.ndarray,
    passes: Sequence[int],
    hidden: Sequence[int],
    seed: int,
) -> list[dict[str, Any]]:
    """Train both sides in turn, and return a record for each number of passes."""
    chunks = np.array_split(train, N_CHUNKS)
    model = make_model(name, hidden, seed, {})
    n_steps = sum(-(-len(chunk) // 200) for chunk in chunks)
    records, seconds = [], 0.0
    for n_passes in range(1, max(passes) + 1):
        for chunk in chunks:
            seconds += timed(lambda chunk=chunk: model.partial_fit(chunk))[0]
        if n_passes not in passes:
            continue
        whole = make_model(name, hidden, seed, {"max_iter": n_passes, "steps_per_epoch": n_steps})
        of_whole, _ = timed(lambda whole=whole: whole.fit(train))
        record = {"map": name, "steps": n_passes * n_steps, "seed": seed}
        parts, fitted = measure(model, validation, seconds), measure(whole, validation, of_whole)
        records.append(record | {"partial_fit": parts, "fit": fitted})
    return records


def compare(
    n_rows: int | None, passes: Sequence[int], hidden: Sequence[int], seeds: Sequence[int]
) -> dict[str, Any]:
    """Return all records, and for each map and number of steps the ratio of the means."""
    mnist = load_mnist20k(scaled=True)
    train, validation = mnist.data[mnist.train][:n_rows], mnist.data[mnist.validation][:n_rows]
    runs = [
        record
        for name in MAPS
        for seed in seeds
        for record in run(name, train, validation, passes, hidden, seed)
    ]
    rows = []
    for name, steps in dict.fromkeys((r["map"], r["steps"]) for r in runs):
        own = [r for r in runs if (r["map"], r["steps"]) == (name, steps)]
        row: dict[str, Any] = {"map": name, "steps": steps}
        for what in ("alignment_loss", "mse", "seconds"):
            parts, whole = (mean(r[side][what] for r in own) for side in ("partial_fit", "fit"))
            row[what] = {"partial_fit": parts, "fit": whole, "ratio": round(parts / whole, 4)}
        rows.append(row)
    return {"rows": rows, "runs": runs}


def report(results: dict[str, Any]) -> None:
    """Print the table, and a verdict for each loss."""
    for row in results["rows"]:
        for what in ("alignment_loss", "mse", "seconds"):
            parts, whole, ratio = row[what].values()
            print(f"{row['map']:<28}{row['steps']:>6}  {what:<16}{parts:>12.5f}{whole:>12.5f}"
                  f"{ratio:>8.3f}")  # fmt: skip
    for what in ("alignment_loss", "mse"):
        worst = max(row[what]["ratio"] for row in results["rows"])
        verdict(f"{what} of partial_fit within 10 % of fit", worst < MOST, f"at worst {worst} x")


def main() -> None:
    """Measure, print, write."""
    parser = make_parser("partial_fit", __doc__)
    parser.add_argument("--rows", type=int, help="training rows, all by default")
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--hidden", type=int, nargs="+", default=[1000, 1000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore")  # after a few steps, models are no good
    results = compare(given.rows, given.passes, given.hidden, range(given.seeds))
    report(results)
    save(given.results, results)


if __name__ == "__main__":
    main()
