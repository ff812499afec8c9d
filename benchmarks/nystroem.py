"""InvertibleNystroem against what a scikit-learn user would build, in speed and in quality.

An RBF kernel with the same γ for all: ``InvertibleNystroem`` with its three decoders;
``Nystroem(1000)`` and ``Ridge``, whose codes have 1,000 numbers; and ``Nystroem(1000)``, ``PCA`` to
N_c and ``KernelRidge``, whose α a fifth of the rows chooses. "α given" is that pipeline without the
search. PCA centres codes, which is best for 1 − CKA and costs L_c; ``TruncatedSVD`` does not.

All sides take turns in one process with one thread; the best of several times counts. The quality
is that on held-out rows. ``KernelRidge`` takes O(n³) time: it learns from 5,000 rows at most, and
there its time decides nothing.

Prints ratios with verdicts. The aims: the closed forms fit within 3 times the time of their rivals,
the learned decoder within 15 times that of ridge regression, `transform` is within 1.1 times, and
"kernel_ridge" loses no more than 2 % of quality to the pipelines. Writes ``results/nystroem.json``.
About ten minutes of one core.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from measuring import Saved, make_parser, timed, verdict
from rivals import Array, Rival, kernel_ridge, rbf_features, ridge, scores
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from dkae import InvertibleNystroem
from dkae.datasets import load_mnist20k
from dkae.kernels import PairwiseKernel

RIDGE, PIPELINE = "Nystroem(1000) + Ridge", "Nystroem(1000) + PCA + KernelRidge"
GIVEN = f"{PIPELINE}, α given"
SVD = "Nystroem(1000) + TruncatedSVD + KernelRidge"
OF_KERNEL_RIDGE = (PIPELINE, GIVEN, SVD)
DECODERS = ("ridge", "kernel_ridge", "mlp")
#: The pipeline with PCA in one class.
CENTRED = "kernel_ridge, centred"
#: Rows of `KernelRidge`.
MOST_ROWS = 5000
#: A side, its rival, the number that is compared, and the largest ratio.
AIMS = (
    ("ridge", RIDGE, "fit", 3.0),
    ("kernel_ridge", PIPELINE, "fit", 3.0),
    ("mlp", RIDGE, "fit", 15.0),
    ("kernel_ridge", RIDGE, "transform", 1.1),
    ("kernel_ridge", SVD, "alignment_loss", 1.02),
    (CENTRED, PIPELINE, "fit", 3.0),
    (CENTRED, PIPELINE, "one_minus_cka", 1.02),
    (CENTRED, PIPELINE, "one_minus_r2", 1.02),
    ("kernel_ridge", SVD, "one_minus_r2", 1.02),
)
WORK = ("fit", "transform", "inverse_transform")


def _digits() -> tuple[Array, Array, int]:
    train, test = train_test_split((load_digits().data / 16).astype(np.float32), random_state=0)
    return train, test, 16


def _cancer() -> tuple[Array, Array, int]:
    train, test = train_test_split(load_breast_cancer().data.astype(np.float32), random_state=0)
    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test), 6


def _mnist(n_rows: int, n_components: int) -> tuple[Array, Array, int]:
    mnist = load_mnist20k(scaled=True)
    return mnist.data[mnist.train][:n_rows], mnist.data[mnist.test], n_components


DATA: dict[str, Callable[[], tuple[Array, Array, int]]] = {
    "digits": _digits,
    "breast cancer": _cancer,
    "MNIST 3,500": partial(_mnist, 3500, 32),
    "MNIST 14,000": partial(_mnist, 14_000, 128),
}


def sides(gamma: float, n_components: int) -> dict[str, Callable[[float], Any]]:
    """Return what makes each side, given the α that the pipeline has found."""
    features = rbf_features(gamma, 0)
    pca = PCA(n_components, random_state=0)
    svd = TruncatedSVD(n_components, random_state=0)

    def ours(_: float, decoder: str, **params: Any) -> Any:
        given = {"gamma": gamma, "decoder": decoder, "random_state": 0} | params
        return InvertibleNystroem(n_components, **given)

    return {
        RIDGE: lambda _: Rival(features, None, ridge),
        PIPELINE: lambda _: Rival(features, pca, kernel_ridge),
        GIVEN: lambda alpha: Rival(features, pca, partial(kernel_ridge, alphas=(alpha,))),
        SVD: lambda _: Rival(features, svd, kernel_ridge),
        CENTRED: partial(ours, decoder="kernel_ridge", center=True, n_linear=0),
    } | {decoder: partial(ours, decoder=decoder) for decoder in DECODERS}


def measure(train: Array, test: Array, n_components: int, repeats: int) -> dict[str, Any]:
    """Return the best times and the quality of all sides."""
    kernel = PairwiseKernel("rbf").fit(train)
    makers = sides(kernel.gamma_, n_components)
    times: dict[str, dict[str, list[float]]] = {s: {w: [] for w in WORK} for s in makers}
    quality, alpha = {}, 1.0
    for _ in range(repeats):
        for side, make in makers.items():
            rows = train[:MOST_ROWS] if side in OF_KERNEL_RIDGE else train
            seconds, model = timed(partial(make(alpha).fit, rows))
            times[side]["fit"].append(seconds)
            seconds, codes = timed(partial(model.transform, test))
            times[side]["transform"].append(seconds)
            seconds, _back = timed(partial(model.inverse_transform, codes))
            times[side]["inverse_transform"].append(seconds)
            if side == PIPELINE:
                alpha = model.regression_.regressor_.best_params_["alpha"]
            if side not in quality:
                quality[side] = scores(model, kernel.on(test), test)
    best = {side: {w: min(t) for w, t in of_side.items()} for side, of_side in times.items()}
    return {
        "n_rows": len(train),
        "n_components": n_components,
        "sides": {side: best[side] | quality[side] for side in makers},
    }


def judge(name: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Print the numbers of all sides, and return the verdicts."""
    print(f"\n{name}: {found['n_rows']:,} rows, N_c = {found['n_components']}")
    for side, numbers in found["sides"].items():
        shown = "  ".join(f"{what} {value:.4g}" for what, value in numbers.items())
        print(f"  {side:<46} {shown}")
    verdicts = []
    for side, rival, what, most in AIMS:
        if rival in OF_KERNEL_RIDGE and found["n_rows"] > MOST_ROWS:
            continue
        ratio = found["sides"][side][what] / found["sides"][rival][what]
        claim = f"{what} of {side!r} at most {most:g} times that of {rival}"
        word = verdict(f"  {claim}", ratio <= most, f"{ratio:.2f} x")
        verdicts.append({"side": side, "rival": rival, "what": what, "most": most,
                         "ratio": ratio, "verdict": word})  # fmt: skip
    return verdicts


def main() -> None:
    """Measure each data set, save it, print the verdicts."""
    parser = make_parser("nystroem", __doc__)
    parser.add_argument("--resume", action="store_true", help="keep what the results file has")
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="training rows at most, for a trial")
    given = parser.parse_args()
    results = Saved(given.results, resume=given.resume)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in given.data:
            if name not in results:
                train, test, n_components = DATA[name]()
                found = measure(
                    train[: given.rows], test[: given.rows], n_components, given.repeats
                )
                results.add(name, found | {"verdicts": judge(name, found)})


if __name__ == "__main__":
    main()
