"""Which recipe is best, and what it must beat: six data sets, three kernels, three seeds.

Recipes are compared on the validation parts; the test parts are for the page "When to use it". Each
method has codes of the same width, and is fitted in a process with one thread::

    python benchmarks/recipes.py              # everything, a quarter of an hour on two cores
    python benchmarks/recipes.py --resume     # what does not stand in results/recipes.json yet
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from collection import DATA, KERNELS, Array, Parts
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import metrics, recipes
from dkae.baselines import nystroem_map
from dkae.kernels import Kernel
from dkae.spectral import KernelPCA, PreImage

RESULTS = Path(__file__).parent / "results" / "recipes.json"
SEEDS = (0, 1, 2)

RECIPES: dict[str, Callable[..., Any]] = {
    "kernel layer": recipes.kernel_layer,
    "kernel layer, no linear path": lambda **k: recipes.kernel_layer(
        **k | {"network": recipes_layer(n_linear=0)}
    ),
    "kernel layer, k-means": lambda **k: recipes.kernel_layer(
        **k | {"network": recipes_layer(landmarks="k-means")}
    ),
    "kernel layer, fine-tuned": lambda **k: recipes.kernel_layer(**k, max_iter=10),
    "network": recipes.network,
    "network, distilled": lambda **k: recipes.network(**k, distillation=0.1),
    "network, linear path": lambda **k: recipes.network(**k, linear_path=0.1),
    "network, not tied": lambda **k: recipes.network(**k, tied_weights=False),
    "network, no normalisation": lambda **k: recipes.network(**k, layer_norm=False),
    "autoencoder (λ = 0)": lambda **k: recipes.network(**k, alignment_weight=0),
}
#: Those with three seeds; the others are variants.
MAIN = ("kernel layer", "network", "autoencoder (λ = 0)")
#: What variants are measured on: many of them would take hours on all.
VARIED = ("digits", "breast cancer", "wine", "diabetes")


def recipes_layer(**params: Any) -> Any:
    from dkae.networks import KernelLayerNetwork

    return KernelLayerNetwork(**params)


class NystroemRidge(TransformerMixin, BaseEstimator):
    """Nyström features with N_c landmarks, and ridge regression back."""

    def __init__(self, kernel: Kernel, n_components: int, random_state: int) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Array) -> NystroemRidge:
        rng = np.random.default_rng(self.random_state)
        self.landmarks_ = X[rng.choice(len(X), self.n_components, replace=False)]
        self.encode_ = nystroem_map(self.kernel, self.landmarks_)
        self.ridge_ = RidgeCV((1e-6, 1e-4, 1e-2, 1.0)).fit(self.encode_(X), X)
        return self

    def transform(self, X: Array) -> Array:
        return self.encode_(X)

    def inverse_transform(self, codes: Array) -> Array:
        return np.asarray(self.ridge_.predict(codes))


RIVALS: dict[str, Callable[..., Any]] = {
    "Nystroem + ridge": lambda kernel, n, seed: NystroemRidge(kernel, n, seed),
    "kernel PCA + pre-image": lambda kernel, n, seed: KernelPCA(
        n, kernel=kernel, center=False, preimage=PreImage(random_state=seed), random_state=seed
    ),
    "PCA": lambda kernel, n, seed: PCA(n, random_state=seed),
}


def scores(model: Any, kernel: Kernel, X: Array) -> dict[str, float]:
    """L_c and CKA over all pairs, and the part of the variance that does not come back."""
    codes = np.asarray(model.transform(X), dtype=np.float32)
    comparison = metrics.compare_grams(codes, kernel.on(X))
    back = np.asarray(model.inverse_transform(codes))
    return {
        "alignment_loss": comparison.alignment_loss,
        "one_minus_cka": 1 - comparison.centered_alignment,
        "one_minus_r2": float(np.square(back - X).sum() / np.square(X - X.mean(axis=0)).sum()),
    }


def accuracy(model: Any, parts: Parts) -> float | None:
    """Of a linear classifier on codes, on the test part."""
    if parts.labels is None:
        return None
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(model.transform(parts.train), parts.labels["train"])
    return float(classifier.score(model.transform(parts.test), parts.labels["test"]))


def seconds_of(function: Callable[[], Any], times: int = 5) -> float:
    """Return the least time of several calls."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return min(taken)


def numbers_of(model: Any) -> int:
    """Return how many numbers a fitted model holds; of the cluster kernel, its mixtures too."""
    network = getattr(model, "network_", None)
    if network is not None:
        n = sum(t.numel() for t in network.state_dict().values())
        mixtures = getattr(getattr(model, "kernel_", None), "mixtures_", None)
        is_evaluated = type(network).__name__ == "KernelLayer" and mixtures is not None
        return n + (mixtures.means.numel() + mixtures.covariances.numel() if is_evaluated else 0)
    if isinstance(model, PCA):
        return int(model.components_.size + model.mean_.size)
    if isinstance(model, NystroemRidge):
        m, d = model.landmarks_.shape
        return int(m * d + m * m + m * d + d)
    n_rows, d = model.preimage.max_samples, len(model.inverse_transform(model.transform(_ROW))[0])
    return int(n_rows * (d + model.n_components))


_ROW: Any = None


def measure(data: str, kernel_name: str, method: str, seed: int) -> dict[str, Any]:
    """Fit one method and score it on both parts."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    parts = DATA[data]()
    kernel = KERNELS[kernel_name]().fit(parts.train)
    if method in RECIPES:
        model = RECIPES[method](n_components=parts.n_components, kernel=kernel, random_state=seed)
    else:
        model = RIVALS[method](kernel, parts.n_components, seed)
    start = time.perf_counter()
    model.fit(parts.train)
    fit_seconds = time.perf_counter() - start
    codes = np.asarray(model.transform(parts.test), dtype=np.float32)
    n = len(parts.test)
    global _ROW
    _ROW = parts.test[:1]
    return {
        "validation": scores(model, kernel, parts.validation),
        "test": scores(model, kernel, parts.test),
        "accuracy": accuracy(model, parts),
        "fit_seconds": fit_seconds,
        "map_microseconds": 1e6 * seconds_of(lambda: model.transform(parts.test)) / n,
        "invert_microseconds": 1e6 * seconds_of(lambda: model.inverse_transform(codes)) / n,
        "numbers": numbers_of(model),
    }


def all_jobs() -> list[tuple[str, str, str, int]]:
    """Return what there is to measure: variants on the data of `VARIED`, with one seed."""
    jobs = [
        (data, kernel, method, seed)
        for seed in SEEDS
        for data, kernel, method in product(DATA, KERNELS, [*RECIPES, *RIVALS])
        if method in (*MAIN, *RIVALS) or (data in VARIED and seed == SEEDS[0])
    ]
    # The longest last: what is there by then can be looked at.
    return sorted(jobs, key=lambda job: list(DATA)[::-1].index(job[0]))


def main() -> None:
    """Measure what is missing, two at a time, and print the means on the validation parts."""
    results = json.loads(RESULTS.read_text()) if "--resume" in sys.argv else {}
    jobs = [job for job in all_jobs() if " / ".join(map(str, job)) not in results]
    with ProcessPoolExecutor(2) as pool:
        futures = {pool.submit(measure, *job): job for job in jobs}
        for future in as_completed(futures):
            results[" / ".join(map(str, futures[future]))] = future.result()
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    for kernel, method in product(KERNELS, [*RECIPES, *RIVALS]):
        found = [
            record["validation"]
            for name, record in results.items()
            if name.split(" / ")[1:3] == [kernel, method]
        ]
        means = {name: np.exp(np.mean([np.log(f[name]) for f in found])) for name in found[0]}
        print(f"{kernel:<10} {method:<30} " + "  ".join(f"{n} {v:.4f}" for n, v in means.items()))


if __name__ == "__main__":
    main()
