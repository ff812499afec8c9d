"""The Probabilistic Cluster Kernel at full size against loops over scikit-learn's GaussianMixture.

870 mixtures (Q = G = 30) on 200 MNIST rows, d = 784. Both sides in one run, alternating; the loop
runs in 2 processes with joblib, from the same first means, weights and covariances and with the
same tolerance. It is measured on every tenth mixture and scaled by ten; ours is measured whole.
Prints ratios with verdicts, and writes ``results/cluster_kernel.json``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.mixture import GaussianMixture

from dkae import recipes
from dkae.alignment import alignment_loss
from dkae.datasets import load_mnist20k
from dkae.kernels import ProbabilisticClusterKernel, ideal_gram
from dkae.training.batches import BatchSource

RESULTS = Path(__file__).parent / "results" / "cluster_kernel.json"
EVERY = 10
REPEATS = 3


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    return min(seconds(work) for _ in range(repeats))


def one_mixture(sample: np.ndarray, rows: np.ndarray, variance: float) -> GaussianMixture:
    """Fit one mixture as our kernel starts it."""
    g, d = len(rows), sample.shape[1]
    return GaussianMixture(
        g,
        covariance_type="diag",
        means_init=sample[rows],
        weights_init=np.full(g, 1 / g),
        precisions_init=np.full((g, d), 1 / variance),
        init_params="random_from_data",
        random_state=0,
    ).fit(sample)


def starts(kernel: ProbabilisticClusterKernel, X: np.ndarray) -> tuple[np.ndarray, list, float]:
    """Return the fit rows, the first means of every tenth mixture, and the first variance."""
    seed = np.random.RandomState(kernel.random_state).randint(np.iinfo(np.int32).max)
    sample = X[np.random.default_rng(seed).choice(len(X), 200, replace=False)].astype(np.float64)
    pairs = [(q, g) for g in range(2, 31) for q in range(30)][::EVERY]
    rows = [np.random.default_rng([seed, q, g]).choice(200, g, replace=False) for q, g in pairs]
    varying = sample[:, np.ptp(sample, axis=0) > 0]
    return sample, rows, float(varying.var(axis=0).mean() + kernel.reg_covar)


def compare(name: str, ours: float, theirs: float, must: float, aim: float) -> dict[str, Any]:
    ratio = theirs / ours
    verdict = "reaches the aim" if ratio >= aim else "holds" if ratio >= must else "FAILS"
    print(f"{name:<42} ours {ours:8.4f} s  theirs {theirs:8.4f} s  {ratio:6.1f} x  {verdict}")
    return {"ours": ours, "theirs": theirs, "ratio": round(ratio, 2), "must": must, "aim": aim}


def fit_and_posteriors(X: np.ndarray) -> tuple[dict[str, Any], ProbabilisticClusterKernel]:
    kernel = ProbabilisticClusterKernel(random_state=0)
    sample, rows, variance = starts(kernel, X)
    with Parallel(n_jobs=2) as parallel:
        parallel(delayed(int)(0) for _ in range(2))  # start the processes
        ours = [best(lambda: kernel.fit(X), 2)]
        loop = (delayed(one_mixture)(sample, r, variance) for r in rows)
        start = time.perf_counter()
        mixtures = parallel(loop)
        theirs = EVERY * (time.perf_counter() - start)
        ours.append(best(lambda: kernel.fit(X), 2))
        results = {"fit": compare("fit 870 mixtures on 200 rows", min(ours), theirs, 10, 30)}
        ours = [seconds(lambda: kernel.on(X))]
        X64 = X.astype(np.float64)
        theirs = EVERY * seconds(
            lambda: parallel(delayed(mixture.predict_proba)(X64) for mixture in mixtures)
        )
        ours.append(seconds(lambda: kernel.on(X)))
        results["posteriors"] = compare(
            "posteriors of 20,000 rows, made compact", min(ours), theirs, 10, 25
        )
    check = np.hstack([mixture.predict_proba(X64[:500]) for mixture in mixtures])
    every = np.repeat(np.arange(870) % EVERY == 0, kernel.mixtures_.sizes.numpy())
    results["largest_difference"] = float(np.abs(kernel.transform(X[:500])[:, every] - check).max())
    print(
        f"largest difference of posteriors from scikit-learn's: {results['largest_difference']:.1e}"
    )
    return results, kernel


def gram_blocks(kernel: ProbabilisticClusterKernel, X: np.ndarray) -> dict[str, Any]:
    prior, rng = kernel.on(X[:2000]), np.random.default_rng(0)
    dense = prior.posteriors.dense()
    batches = [rng.choice(2000, 200, replace=False) for _ in range(20)]

    def compact() -> None:
        for rows in batches:
            prior.block(rows)

    def product() -> None:
        for rows in batches:
            phi = torch.from_numpy(dense[rows])
            phi @ phi.T

    times = [(seconds(compact), seconds(product)) for _ in range(5)]
    ours, theirs = (min(side) / len(batches) for side in zip(*times, strict=True))
    return compare("Gram block 200 x 200", ours, theirs, 1, 5)


def share_of_a_step(kernel: ProbabilisticClusterKernel, X: np.ndarray) -> float:
    """Return what part of a step of the paper's network the block of the prior costs."""
    X = X[:2000]
    prior = kernel.on(X)
    source = BatchSource(
        X,
        prior,
        np.arange(2000),
        batch_size=200,
        rng=np.random.default_rng(0),
        device=torch.device("cpu"),
    )
    model = recipes.paper(pretrain_max_iter=0, max_iter=1, epoch=20, kernel=kernel)
    gram = kernel.gram(X)
    step = seconds(lambda: model.fit(X, gram=gram)) / 20
    block = best(lambda: [source.draw() for _ in range(20)]) / 20
    share = block / step
    print(f"block of the prior: {1e3 * block:.1f} of {1e3 * step:.0f} ms of a step, {share:.1%}")
    return share


def distances_from_the_classes() -> list[float]:
    """Return L_c(P, K_I) on the test part for five seeds; the paper has 1.0132."""
    mnist = load_mnist20k(scaled=True)
    train, test = mnist.data[mnist.train], mnist.data[mnist.test]
    ideal = ideal_gram(mnist.target[mnist.test]).fit(test).gram(test)
    distances = []
    for seed in range(5):
        kernel = ProbabilisticClusterKernel(random_state=seed).fit(train)
        P, K_I = torch.from_numpy(kernel.gram(test)), torch.from_numpy(ideal)
        distances.append(round(alignment_loss(P, K_I).item(), 4))
    print(f"L_c(P, K_I) on the test part, five seeds: {distances} (paper: 1.0132)")
    return distances


def main() -> None:
    """Run everything on MNIST-20k."""
    X = load_mnist20k(scaled=True).data
    results, kernel = fit_and_posteriors(X)
    results["distances_from_the_classes"] = distances_from_the_classes()
    prior = kernel.on(X)
    results["megabytes_of_20000_rows"] = round(prior.posteriors.nbytes / 1e6, 1)
    print(f"compact posteriors of 20,000 rows: {results['megabytes_of_20000_rows']} MB")
    results["gram_block"] = gram_blocks(kernel, X)
    results["share_of_a_training_step"] = round(share_of_a_step(kernel, X), 4)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
