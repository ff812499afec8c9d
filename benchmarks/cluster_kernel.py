"""The Probabilistic Cluster Kernel at full size against loops over scikit-learn's GaussianMixture.

870 mixtures (Q = G = 30) on 200 MNIST rows, d = 784. Both sides in one run, in turn, best of five;
the loops run in 2 warm processes with joblib, on every tenth mixture, scaled by ten; ours is
measured whole. Three loops. The one that a user writes: the same first means and tolerance, data
in float64, so that both sides compute the mixtures in the same precision; scikit-learn finds first
weights and covariances by k-means, from which it takes fewer steps than we do. The same with data
in float32, in which scikit-learn then computes everything, and loses digits. And the leanest that
we could think of: float64, our first weights and covariances given too, so that no k-means runs.
Prints ratios with verdicts, and writes ``results/cluster_kernel.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from measuring import make_parser, save, timed
from sklearn.mixture import GaussianMixture
from training_step import step_of

from dkae.alignment import frobenius
from dkae.datasets import load_mnist20k
from dkae.kernels import ProbabilisticClusterKernel, ideal_kernel
from dkae.training import BatchSource

EVERY = 10
REPEATS = 5


def in_turn(ours: Callable[[], Any], theirs: Callable[[], Any]) -> tuple[float, float]:
    """Return the best time of each side, measured one after the other, several times."""
    times = [(timed(ours)[0], timed(theirs)[0]) for _ in range(REPEATS)]
    return min(t for t, _ in times), min(t for _, t in times)


def one_mixture(sample: np.ndarray, rows: np.ndarray, **params: Any) -> GaussianMixture:
    """Fit one mixture from the given rows as first means."""
    mixture = GaussianMixture(
        len(rows), covariance_type="diag", means_init=sample[rows], random_state=0, **params
    )
    return mixture.fit(sample)


def lean_params(n_components: int, n_features: int, variance: float) -> dict[str, Any]:
    """Return all other first parameters, as our kernel has them: nothing is left to be found."""
    return {
        "weights_init": np.full(n_components, 1 / n_components),
        "precisions_init": np.full((n_components, n_features), 1 / variance),
        "init_params": "random_from_data",
    }


def starts(kernel: ProbabilisticClusterKernel, X: np.ndarray) -> tuple[np.ndarray, list, float]:
    """Return the fit rows, the first means of every tenth mixture, and the first variance."""
    seed = np.random.RandomState(kernel.random_state).randint(np.iinfo(np.int32).max)
    sample = X[np.random.default_rng(seed).choice(len(X), 200, replace=False)].astype(np.float64)
    sizes, draws = range(2, kernel.max_components + 1), range(kernel.n_initializations)
    pairs = [(q, g) for g in sizes for q in draws][::EVERY]
    rows = [np.random.default_rng([seed, q, g]).choice(200, g, replace=False) for q, g in pairs]
    varying = sample[:, np.ptp(sample, axis=0) > 0]
    return sample, rows, float(varying.var(axis=0).mean() + kernel.reg_covar)


def compare(name: str, ours: float, theirs: float, must: float, aim: float) -> dict[str, Any]:
    ratio = theirs / ours
    verdict = "reaches the aim" if ratio >= aim else "holds" if ratio >= must else "FAILS"
    print(f"{name:<42} ours {ours:8.4f} s  theirs {theirs:8.4f} s  {ratio:6.1f} x  {verdict}")
    return {"ours": ours, "theirs": theirs, "ratio": round(ratio, 2), "verdict": verdict}


def fit_and_posteriors(
    X: np.ndarray, mixtures: int
) -> tuple[dict[str, Any], ProbabilisticClusterKernel]:
    """Compare the fit and the posteriors with all loops."""
    kernel = ProbabilisticClusterKernel(mixtures, mixtures, random_state=0)
    sample, rows, variance = starts(kernel, X)
    d, X64, results, steps = X.shape[1], X.astype(np.float64), {}, {}
    plain, lean = [{}] * len(rows), [lean_params(len(r), d, variance) for r in rows]
    loops = {
        "loop": (sample, plain, X64),
        "loop_in_float32": (sample.astype(np.float32), plain, X),
        "lean_loop": (sample, lean, X64),
    }
    with Parallel(n_jobs=2) as parallel:
        for name, (data, params, table) in loops.items():

            def fits(data: np.ndarray = data, params: list = params) -> list[GaussianMixture]:
                pairs = zip(rows, params, strict=True)
                return parallel(delayed(one_mixture)(data, r, **p) for r, p in pairs)

            mixtures = fits()  # also warms the processes
            steps[name] = round(float(np.mean([mixture.n_iter_ for mixture in mixtures])), 2)

            def probabilities(mixtures: list = mixtures, table: np.ndarray = table) -> None:
                parallel(delayed(mixture.predict_proba)(table) for mixture in mixtures)

            ours, theirs = in_turn(lambda: kernel.fit(X), fits)
            results[f"fit_{name}"] = compare(f"fit, {name}", ours, EVERY * theirs, 10, 30)
            ours, theirs = in_turn(lambda: kernel.on(X), probabilities)
            results[f"posteriors_{name}"] = compare(
                f"posteriors of {len(X):,} rows, {name}", ours, EVERY * theirs, 10, 25
            )
    results["mean_steps"] = steps
    print(f"mean steps of a fit: {steps}; the lean loop starts where ours does")
    check = np.hstack([mixture.predict_proba(X64[:500]) for mixture in mixtures])
    every = np.repeat(np.arange(kernel.n_mixtures_) % EVERY == 0, kernel.mixtures_.sizes.numpy())
    difference = np.abs(kernel.transform(X[:500])[:, every] - check).max()
    results["largest_difference"] = float(difference)
    print(f"largest difference of posteriors from scikit-learn's: {difference:.1e}")
    return results, kernel


def gram_blocks(kernel: ProbabilisticClusterKernel, X: np.ndarray) -> dict[str, Any]:
    X = X[:2000]
    prior, rng = kernel.on(X), np.random.default_rng(0)
    dense = np.ascontiguousarray(kernel.transform(X))
    batches = [rng.choice(len(X), 200, replace=False) for _ in range(20)]

    def compact() -> None:
        for rows in batches:
            prior.block(rows)

    def product() -> None:
        for rows in batches:
            phi = torch.from_numpy(dense[rows])
            phi @ phi.T

    ours, theirs = (t / len(batches) for t in in_turn(compact, product))
    return compare("Gram block 200 x 200", ours, theirs, 1, 5)


def share_of_a_step(kernel: ProbabilisticClusterKernel, X: np.ndarray) -> float:
    """Return what part of a step of the paper's network the block of the prior costs."""
    X = X[:2000]
    prior, cpu = kernel.on(X), torch.device("cpu")
    rng = np.random.default_rng(0)
    source = BatchSource(X, prior, np.arange(len(X)), np.arange(0), 200, "samples", rng, cpu)
    step_once = step_of("paper", source.draw())
    block, step = in_turn(
        lambda: [source.draw() for _ in range(10)],
        lambda: [step_once() for _ in range(10)],
    )
    block, step = block / 10, (block + step) / 10
    share = block / step
    print(f"block of the prior: {1e3 * block:.1f} of {1e3 * step:.0f} ms of a step, {share:.1%}")
    return share


def distances_from_the_classes(mixtures: int) -> list[float]:
    """Return L_c(P, K_I) on the test part for five seeds; the paper has 1.0132."""
    mnist = load_mnist20k(scaled=True)
    train, test = mnist.data[mnist.train], mnist.data[mnist.test]
    ideal = ideal_kernel(mnist.target[mnist.test]).fit(test).gram(test)
    distances = []
    for seed in range(5):
        kernel = ProbabilisticClusterKernel(mixtures, mixtures, random_state=seed).fit(train)
        P, K_I = torch.from_numpy(kernel.gram(test)), torch.from_numpy(ideal)
        distances.append(round(frobenius(P, K_I).item(), 4))
    print(f"L_c(P, K_I) on the test part, five seeds: {distances} (paper: 1.0132)")
    return distances


def main() -> None:
    """Run everything on MNIST-20k."""
    parser = make_parser("cluster_kernel", __doc__)
    parser.add_argument("--rows", type=int, help="rows at most, for a trial")
    parser.add_argument("--mixtures", type=int, default=30, help="G and Q")
    given = parser.parse_args()
    X = load_mnist20k(scaled=True).data[: given.rows]
    results, kernel = fit_and_posteriors(X, given.mixtures)
    results["distances_from_the_classes"] = distances_from_the_classes(given.mixtures)
    prior = kernel.on(X)
    results["megabytes_of_20000_rows"] = round(prior.rows.nbytes / 1e6, 1)
    print(f"compact posteriors: {results['megabytes_of_20000_rows']} MB")
    results["gram_block"] = gram_blocks(kernel, X)
    results["share_of_a_training_step"] = round(share_of_a_step(kernel, X), 4)
    save(given.results, results)


if __name__ == "__main__":
    main()
