"""What ``RowArray(shuffle="chunks")`` does to the losses: runs of neighbours in place of any rows.

The 14,000 MNIST training rows in random order, and sorted by digit, where neighbours are alike;
``InvertibleNystroem``, whose decoder "mlp" learns, and ``DeepKernelizedAutoencoder``, 300 steps
each; RBF, N_c = 128. Prints L_c and the mean squared error on the validation rows, as means over
seeds, and ratios to ``shuffle="rows"`` on the same file. In random order the aim is less than 5 %
more; the cost of sorted rows has no aim. Writes ``results/chunks.json``. Five minutes with
two threads.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np
import torch
from measuring import make_parser, save, verdict

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, RowArray, metrics
from dkae.datasets import load_mnist20k
from dkae.decoders import MLPDecoder

MAPS = ("InvertibleNystroem", "DeepKernelizedAutoencoder")
ORDERS = ("random", "sorted")
SHUFFLES = ("rows", "chunks")
LOSSES = ("alignment_loss", "mse")
N_COMPONENTS = 128
MOST = 1.05


def make_model(name: str, n_steps: int, seed: int) -> Any:
    """Return a map that is trained in ten epochs: an autoencoder eight, then its decoder two."""
    n = max(1, n_steps // 10)
    if name == "InvertibleNystroem":
        decoder = MLPDecoder(max_iter=10, steps_per_epoch=n)
        return InvertibleNystroem(N_COMPONENTS, decoder=decoder, random_state=seed)
    budget = {"max_iter": 8, "decoder_max_iter": 2, "steps_per_epoch": n}
    return DeepKernelizedAutoencoder(N_COMPONENTS, random_state=seed, **budget)


def run(
    name: str, shuffle: str, train: np.ndarray, validation: np.ndarray, n_steps: int, seed: int
) -> dict[str, float]:
    """Fit on rows in their order, and return the losses of the validation rows."""
    model = make_model(name, n_steps, seed).fit(RowArray(train, shuffle=shuffle))
    codes = model.transform(validation)
    prior = model.prior_gram(validation)
    return {
        "alignment_loss": metrics.alignment_loss(metrics.code_gram(codes), prior),
        "mse": metrics.reconstruction_error(validation, model.inverse_transform(codes)),
    }


def compare(n_rows: int | None, n_steps: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Return the losses of all runs, and the ratio of their means to those of "rows"."""
    mnist = load_mnist20k(scaled=True)
    chosen, validation = mnist.train[:n_rows], mnist.data[mnist.validation][:n_rows]
    by_digit = chosen[np.argsort(mnist.target[chosen], kind="stable")]
    ids = {"random": np.random.default_rng(0).permutation(chosen), "sorted": by_digit}
    rows, runs = [], []
    for name in MAPS:
        for order in ORDERS:
            train, found = mnist.data[ids[order]], {}
            for seed in seeds:  # both sides in turn
                for shuffle in SHUFFLES:
                    losses = run(name, shuffle, train, validation, n_steps, seed)
                    found.setdefault(shuffle, []).append(losses)
                    names = {"map": name, "order": order, "shuffle": shuffle, "seed": seed}
                    runs.append(names | losses)
            row: dict[str, Any] = {"map": name, "order": order}
            for what in LOSSES:
                a, b = (mean(losses[what] for losses in found[s]) for s in SHUFFLES)
                row[what] = {"rows": a, "chunks": b, "ratio": round(b / a, 4)}
            rows.append(row)
    return {"steps": n_steps, "rows": rows, "runs": runs}


def report(results: dict[str, Any]) -> None:
    """Print the table, and the verdict."""
    worst = dict.fromkeys(ORDERS, 0.0)
    for row in results["rows"]:
        for what in LOSSES:
            a, b, ratio = row[what].values()
            worst[row["order"]] = max(worst[row["order"]], ratio)
            print(f"{row['map']:<28}{row['order']:<8}{what:<16}{a:>10.5f}{b:>10.5f}{ratio:>8.3f}")
    claim = "chunks of rows in random order cost less than 5 %"
    verdict(claim, worst["random"] < MOST, f"{worst['random']:.3f} x")
    print(f"chunks of sorted rows cost at worst {worst['sorted']:.3f} x")


def main() -> None:
    """Measure, print, write."""
    parser = make_parser("chunks", __doc__)
    parser.add_argument("--rows", type=int, help="training rows, all by default")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore")
    results = compare(given.rows, given.steps, range(given.seeds))
    report(results)
    save(given.results, results)


if __name__ == "__main__":
    main()
