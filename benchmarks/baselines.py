"""Kernel PCA and pre-images on MNIST-20k, in more variants than the study has.

Two parts, each written to ``results/baselines.json`` when it is done:

``curve``      L_c between K_m of uncentred kernel PCA and the Probabilistic Cluster Kernel over m,
               on the training rows and, by Nyström, on the 3,000 test rows.
``denoising``  digits 5 and 6 with noise N(0, 0.25²): kernel PCA with 32 components and kernel
               ridge regression back, and linear PCA. α by the decoder's own grid (clean rows), the
               paper's 0.5, and the best on noisy validation rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from measuring import Saved, make_parser
from sklearn.decomposition import PCA

from dkae import metrics
from dkae.datasets import load_mnist20k
from dkae.decoders import KernelRidgeDecoder
from dkae.kernels import ProbabilisticClusterKernel
from dkae.spectral import KernelPCA

SIZES = (2, 4, 8, 10, 16, 32, 64, 128)
REGULARISERS = (1e-6, 1e-3)
ALPHAS = (1e-4, 1e-3, 1e-2, 0.1, 0.5, 1.0, 5.0)
NOISE = 0.25


def curve(mnist: Any, mixtures: int) -> dict[str, Any]:
    """Return L_c over m, one fit for each kernel."""
    train, test = mnist.data[mnist.train], mnist.data[mnist.test]
    results = {}
    for reg in REGULARISERS:
        kernel = ProbabilisticClusterKernel(mixtures, mixtures, reg_covar=reg, random_state=0)
        model = KernelPCA(max(SIZES), kernel=kernel, center=False, decoder="ridge", random_state=0)
        scores = model.fit_transform(train)[:3000]
        parts = {"train": (scores, train[:3000]), "test": (model.transform(test), test)}
        for part, (codes, rows) in parts.items():
            name, prior = f"reg {reg:g}, {part}", model.kernel_.on(rows)
            results[name] = {
                m: round(metrics.alignment_loss(metrics.code_gram(codes[:, :m]), prior), 4)
                for m in SIZES
                if m <= codes.shape[1]
            }
            print(f"L_c over m, {name}: {results[name]}")
    return results


def denoising(mnist: Any, mixtures: int) -> dict[str, Any]:
    """Return the mean squared errors of denoised digits 5 and 6."""
    parts = [
        mnist.data[part][np.isin(mnist.target[part], (5, 6))]
        for part in (mnist.train, mnist.validation, mnist.test)
    ]
    train, rng = parts[0], np.random.default_rng(0)
    noisy = [x + rng.normal(0, NOISE, x.shape).astype(np.float32) for x in parts]
    linear = PCA(32, random_state=0).fit(train)
    results: dict[str, Any] = {
        "noisy input": metrics.reconstruction_error(parts[2], noisy[2]),
        "noisy input, clipped": metrics.reconstruction_error(parts[2], noisy[2].clip(0, 1)),
        "linear PCA": metrics.reconstruction_error(
            parts[2], linear.inverse_transform(linear.transform(noisy[2]))
        ),
    }
    kernels = {f"PCK, reg {r:g}": {"reg_covar": r} for r in (1e-6, 1e-3, 1e-2)}
    for name, params in {**kernels, "RBF": None}.items():
        kernel: Any = "rbf"
        if params is not None:
            kernel = ProbabilisticClusterKernel(mixtures, mixtures, random_state=0, **params)
        for center in (False, True):
            model = KernelPCA(32, kernel=kernel, center=center, decoder="ridge", random_state=0)
            scores = model.fit_transform(train)
            errors = _errors(model, scores, train, parts, noisy)
            results[f"kernel PCA, {name}, {'' if center else 'un'}centred"] = errors
    for name, result in results.items():
        print(f"{name:<34} {result}")
    return results


def _errors(model: Any, scores: Any, train: Any, parts: Any, noisy: Any) -> dict[str, float]:
    seen = [model.transform(x) for x in noisy[1:]]

    def error(decoder: Any, part: int) -> float:
        return metrics.reconstruction_error(parts[part], decoder.predict(seen[part - 1]))

    def fitted(alphas: tuple[float, ...]) -> Any:
        return KernelRidgeDecoder(alphas=alphas, random_state=0).fit(scores, train)

    by_grid, fits = fitted(ALPHAS), {alpha: fitted((alpha,)) for alpha in ALPHAS}
    best = min(ALPHAS, key=lambda alpha: error(fits[alpha], 1))
    found = {
        f"grid, alpha {by_grid.alpha_:g}": by_grid,
        "alpha 0.5": fits[0.5],
        f"noisy validation, alpha {best:g}": fits[best],
    }
    return {name: round(error(decoder, 2), 4) for name, decoder in found.items()}


def main() -> None:
    """Run the parts that are named, or all of them."""
    parts = {"curve": curve, "denoising": denoising}
    parser = make_parser("baselines", __doc__)
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--rows", type=int, help="rows of each part, for a trial")
    parser.add_argument("--mixtures", type=int, default=30, help="G and Q of the cluster kernel")
    given = parser.parse_args()
    mnist = load_mnist20k(scaled=True)
    mnist |= {p: mnist[p][: given.rows] for p in ("train", "validation", "test")}
    results = Saved(given.results, resume=True)
    for name in given.parts:
        results.add(name, parts[name](mnist, given.mixtures))


if __name__ == "__main__":
    main()
