"""The maps beside what they must beat, on MNIST-20k.

The same kernel and width for all: an RBF kernel with the median heuristic, 128 components. Each
row has L_c and the centred alignment (CKA) of its codes with the kernel over all pairs of the 3,000
test rows, and the mean squared error of test images that went to 128 numbers and back. All learn
from the 14,000 training rows; only kernel ridge regression on all codes, which takes O(n³) time,
from 5,000. The constant kernel is the floor. One seed, five minutes with one thread. Writes
``results/quickstart.json``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from measuring import make_parser, save, timed
from rivals import Array, nystroem_kernel_ridge, nystroem_ridge
from sklearn.decomposition import PCA

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, metrics
from dkae.datasets import load_mnist20k
from dkae.grams import Gram
from dkae.kernels import Kernel, PairwiseKernel

N_COMPONENTS = 128
#: Rows of those that take O(n³) time.
MOST_ROWS = 5000


def methods(kernel: Kernel, **learned: Any) -> dict[str, tuple[Any, int | None]]:
    """Return the models to fit, each with its largest number of rows."""
    n: Any = N_COMPONENTS
    closed = {"center": False, "decoder": "kernel_ridge", "random_state": 0}
    return {
        "InvertibleNystroem": (InvertibleNystroem(n, kernel=kernel, random_state=0), None),
        "DeepKernelizedAutoencoder": (
            DeepKernelizedAutoencoder(n, kernel=kernel, random_state=0, **learned),
            None,
        ),
        "KernelPCA": (KernelPCA(n, kernel=kernel, **closed), MOST_ROWS),
        "Nystroem + ridge": (nystroem_ridge(kernel, n, 0), None),
        "Nystroem(1000) + PCA + KernelRidge": (nystroem_kernel_ridge(kernel, n, 0), MOST_ROWS),
        "PCA": (PCA(n, random_state=0), None),
    }


def judged(codes: Array, back: Array, prior: Gram, rows: Array) -> dict[str, float]:
    comparison = metrics.compare_grams(metrics.code_gram(codes.astype(np.float32)), prior)
    return {
        "alignment": comparison.alignment,
        "alignment_loss": comparison.alignment_loss,
        "centered_alignment": comparison.centered_alignment,
        "mse": metrics.reconstruction_error(rows, back),
    }


def main() -> None:
    """Fit the maps and their rivals in turn, print their numbers, write the results file."""
    parser = make_parser("quickstart", __doc__)
    parser.add_argument("--rows", type=int, help="rows at most, for a trial")
    parser.add_argument("--epochs", type=int, help="of the learned map, for a trial")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    mnist = load_mnist20k(scaled=True)
    train, test = (mnist.data[part][: given.rows] for part in (mnist.train, mnist.test))
    kernel = PairwiseKernel("rbf").fit(train)
    prior = kernel.on(test)
    learned = {} if given.epochs is None else {"max_iter": given.epochs, "decoder_max_iter": 1}
    results: dict[str, Any] = {}
    for name, (model, most) in methods(kernel, **learned).items():
        rows = train[:most]
        seconds, _ = timed(_fit(model, rows))
        codes = np.asarray(model.transform(test))
        found = judged(codes, np.asarray(model.inverse_transform(codes)), prior, test)
        note = "" if len(rows) == len(train) else f"learns from {len(rows):,} rows"
        results[name] = found | {"seconds": seconds, "note": note}
        print(f"{name:<36} {results[name]}", flush=True)
    constant, mean = np.ones((len(test), 1)), np.broadcast_to(train.mean(axis=0), test.shape)
    results["constant kernel"] = judged(constant, mean, prior, test) | {"note": ""}
    print(f"{'constant kernel':<36} {results['constant kernel']}")
    save(given.results, results)


def _fit(model: Any, rows: Array) -> Callable[[], Any]:
    return lambda: model.fit(rows)


if __name__ == "__main__":
    main()
