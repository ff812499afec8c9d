"""The learned map on MNIST-20k: steps, views of rows, widths; the curve behind the default budget.

Each setting is fitted to the 14,000 training rows, with the paper's cluster kernel at N_c = 500 or
the RBF kernel with the median heuristic at N_c = 128, and scored on the validation part; settings
named with ``--final`` are also scored on the test part and, with ``--images FOLDER``, on the 10,000
test images of the original MNIST files, which nothing was chosen on. Views of rows are small affine
maps of the images, cut to [0, 1]; the kernel, fitted to the rows themselves, is evaluated at them.

The linear classifier is logistic regression on standardised codes, as in the study. Times are in
seconds of this machine, and of two cores. ``--resume`` skips what ``results/learned_map.json`` has.
A fit takes one to twenty minutes.
"""

from __future__ import annotations

import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Saved, make_parser, timed
from numpy.typing import NDArray
from rivals import scores
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder
from dkae.augmentation import Images
from dkae.datasets import load_mnist20k
from dkae.kernels import Kernel, PairwiseKernel, ProbabilisticClusterKernel
from dkae.networks import Stack

Array = NDArray[Any]

KERNELS: dict[str, tuple[int, Callable[[], Kernel]]] = {
    "pck": (500, lambda: ProbabilisticClusterKernel(reg_covar=1e-3, random_state=0)),
    "rbf": (128, lambda: PairwiseKernel("rbf")),
}
REGULARISATION = 0.01


def moved(rows: Array, rng: np.random.Generator) -> Array:
    """Return small affine maps of digits."""
    views: Array = np.clip(Images((28, 28))(rows, rng), 0, 1)
    return views


def budget(n: int, **params: Any) -> dict[str, Any]:
    """Return parameters of n epochs end to end, of 100 steps, and a quarter for the decoder."""
    return {"max_iter": n, "decoder_max_iter": n // 4, **params}


SETTINGS: dict[str, dict[str, Any]] = {
    **{f"{n} epochs": budget(n) for n in (20, 40, 80, 120)},
    **{f"{n} epochs, views": budget(n, augment=moved) for n in (20, 40, 80, 120, 240)},
    **{
        f"80 epochs, views, {name}": budget(80, augment=moved, **params)
        for name, params in {
            "width 2000": {"network": Stack((2000, 2000))},
            "three layers": {"network": Stack((1000, 1000, 1000))},
            "k = 400": {"batch_size": 400},
            "not tied": {"network": Stack(tied_weights=False)},
        }.items()
    },
}


def measure(
    params: dict[str, Any], n: int, kernel: Kernel, seed: int, train: Any, others: dict[str, Any]
) -> dict[str, Any]:
    """Fit to the training rows with a fitted kernel, and score on the other parts."""
    rows, labels = train
    model = DeepKernelizedAutoencoder(n, kernel=kernel, random_state=seed, **params)
    seconds, _ = timed(lambda: model.fit(rows))
    classifier = make_pipeline(
        StandardScaler(), LogisticRegression(C=REGULARISATION, max_iter=300)
    ).fit(model.transform(rows), labels)
    some = rows[np.random.default_rng(1).choice(len(rows), len(rows) // 5, replace=False)]
    found: dict[str, Any] = {"seconds": seconds, "train": scores(model, kernel.on(some), some)}
    for name, (X, y) in others.items():
        accuracy = float(classifier.score(model.transform(X), y))
        found[name] = scores(model, kernel.on(X), X) | {"accuracy": accuracy}
    return found


def read_images(folder: Path) -> tuple[Array, Array]:
    """Return the test images of the original MNIST files, and their labels."""
    images = gzip.decompress((folder / "t10k-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:]
    rows = np.frombuffer(images, np.uint8).reshape(-1, 784).astype(np.float32) / 255
    return rows, np.frombuffer(labels, np.uint8)


def main() -> None:
    """Measure the missing records, and save each."""
    parser = make_parser("learned_map", __doc__)
    parser.add_argument("--resume", action="store_true", help="keep what the results file has")
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS))
    parser.add_argument("--final", nargs="*", choices=SETTINGS, default=[])
    parser.add_argument("--images", type=Path, help="folder of the original MNIST files")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, help="rows at most, for a trial")
    parser.add_argument("--steps", type=int, default=100, help="of an epoch, for a trial")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    results = Saved(given.results, resume=given.resume)
    mnist = load_mnist20k(scaled=True)
    parts = {
        name: (mnist.data[ids][: given.rows], mnist.target[ids][: given.rows])
        for name, ids in (("validation", mnist.validation), ("test", mnist.test))
    }
    if given.images is not None:
        parts["other images"] = read_images(given.images)
    train = tuple(of[mnist.train][: given.rows] for of in (mnist.data, mnist.target))
    for name in given.kernels:
        n, make = KERNELS[name]
        kernel, n = make().fit(train[0]), min(n, len(train[0]))
        for seed in range(given.seeds):
            for setting in given.only:
                record = f"{name} / {setting} / {seed}"
                if record in results:
                    continue
                shown = parts if setting in given.final else {"validation": parts["validation"]}
                params = {**SETTINGS[setting], "steps_per_epoch": given.steps}
                results.add(record, measure(params, n, kernel, seed, train, shown))
                print(record, results[record], flush=True)


if __name__ == "__main__":
    main()
