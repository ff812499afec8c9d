"""The maps, their variants and their rivals: six data sets, three kernels, up to three seeds.

Methods are compared on the validation parts; the test parts are for docs/when-to-use.md. All have
codes of the same width, and each is fitted in a process with one thread::

    python benchmarks/recipes.py                        # everything
    python benchmarks/recipes.py --resume               # skip records in results/recipes.json
    python benchmarks/recipes.py --resume --only PCA "InvertibleNystroem, mlp" --data wine digits

Computed maps and rivals take minutes, the learned ones most of the time; an estimate is printed
first. What sees no kernel is fitted once for all kernels. "Nystroem(1000) + PCA + KernelRidge" is
the pipeline that a scikit-learn user would build.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from collection import DATA, KERNELS, Array, Parts
from measuring import Saved, best_time, make_parser, timed
from rivals import (
    numbers_in,
    numbers_of_kernel,
    nystroem_kernel_ridge,
    nystroem_ridge,
    scores,
)
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA
from dkae.kernels import Kernel


def _nystroem(kernel: Kernel, n: int, seed: int, **params: Any) -> Any:
    return InvertibleNystroem(n, kernel=kernel, random_state=seed, **params)


def _autoencoder(kernel: Kernel, n: int, seed: int, **params: Any) -> Any:
    return DeepKernelizedAutoencoder(n, kernel=kernel, random_state=seed, **params)


def _kernel_pca(kernel: Kernel, n: int, seed: int) -> Any:
    return KernelPCA(n, kernel=kernel, center=False, decoder="kernel_ridge", random_state=seed)


def _pca(kernel: Kernel, n: int, seed: int) -> Any:
    return PCA(n, random_state=seed)


class Method(NamedTuple):
    """How a method is made, and how much of it is measured."""

    make: Callable[..., Any]
    n_seeds: int = 1
    #: Seconds of a fit of a thousand rows, about.
    seconds: float = 1.0
    #: Whether it is trained by `DeepKernelizedAutoencoder`.
    is_learned: bool = False
    sees_kernel: bool = True


AUTOENCODER = "DeepKernelizedAutoencoder"
PLAIN = "autoencoder (λ = 0)"
METHODS: dict[str, Method] = {
    "InvertibleNystroem": Method(_nystroem, 3),
    "InvertibleNystroem, ridge": Method(partial(_nystroem, decoder="ridge")),
    "InvertibleNystroem, kernel_ridge": Method(partial(_nystroem, decoder="kernel_ridge")),
    "InvertibleNystroem, mlp": Method(partial(_nystroem, decoder="mlp"), seconds=6.0),
    "InvertibleNystroem, no linear path": Method(partial(_nystroem, n_linear=0)),
    AUTOENCODER: Method(_autoencoder, 3, 35.0, is_learned=True),
    f"{AUTOENCODER}, mixup": Method(partial(_autoencoder, augment="mixup"), 1, 35.0, True),
    f"{AUTOENCODER}, jitter": Method(partial(_autoencoder, augment="jitter"), 1, 35.0, True),
    PLAIN: Method(
        partial(_autoencoder, alignment_weight=0), 3, 25.0, is_learned=True, sees_kernel=False
    ),
    "Nystroem + ridge": Method(nystroem_ridge, 3, 0.1),
    "Nystroem(1000) + PCA + KernelRidge": Method(nystroem_kernel_ridge, 3),
    "KernelPCA": Method(_kernel_pca),
    "PCA": Method(_pca, seconds=0.1, sees_kernel=False),
}
#: Training rows of a trial of the script itself.
N_TOY_ROWS = 60


class Job(NamedTuple):
    """One fit, which is scored with each of its kernels."""

    data: str
    method: str
    seed: int
    kernels: tuple[str, ...]

    def record(self, kernel: str) -> str:
        return f"{self.data} / {kernel} / {self.method} / {self.seed}"


def accuracy(model: Any, parts: Parts) -> float | None:
    """Return the accuracy of a linear classifier on codes, on the test part."""
    if parts.labels is None:
        return None
    classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    classifier.fit(model.transform(parts.train), parts.labels["train"])
    return float(classifier.score(model.transform(parts.test), parts.labels["test"]))


def measure(job: Job, *, is_toy: bool = False) -> dict[str, Any]:
    """Fit one method, and return a record for each kernel."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    parts = DATA[job.data]()
    if is_toy:
        labels = parts.labels and {k: y[:N_TOY_ROWS] for k, y in parts.labels.items()}
        parts = Parts(*(X[:N_TOY_ROWS] for X in parts[:3]), labels, 4)
    kernels = {name: KERNELS[name]().fit(parts.train) for name in job.kernels}
    first = kernels[job.kernels[0]]
    model = METHODS[job.method].make(first, parts.n_components, job.seed)
    if is_toy and METHODS[job.method].is_learned:
        model.set_params(max_iter=1, decoder_max_iter=1)
    fit_seconds, _ = timed(lambda: model.fit(parts.train))
    costs = _costs(model, parts.test)
    if METHODS[job.method].sees_kernel and not METHODS[job.method].is_learned:
        costs["numbers"] += numbers_of_kernel(first)
    common = {"accuracy": accuracy(model, parts), "fit_seconds": fit_seconds, **costs}
    return {
        job.record(name): {
            "validation": scores(model, kernel.on(parts.validation), parts.validation),
            "test": scores(model, kernel.on(parts.test), parts.test),
            **common,
        }
        for name, kernel in kernels.items()
    }


def _costs(model: Any, rows: Array) -> dict[str, Any]:
    codes = np.asarray(model.transform(rows))
    return {
        "map_microseconds": 1e6 * best_time(lambda: model.transform(rows), 5) / len(rows),
        "invert_microseconds": 1e6
        * best_time(lambda: model.inverse_transform(codes), 5)
        / len(rows),
        "numbers": numbers_in(model),
    }


def make_jobs(methods: list[str], data: list[str]) -> list[Job]:
    """Return what there is to measure: the first seed of all before the next one."""
    names = tuple(KERNELS)
    return [
        Job(where, name, seed, kernels)
        for seed in range(max(method.n_seeds for method in METHODS.values()))
        for name, where in product(methods, data)
        if seed < METHODS[name].n_seeds
        for kernels in ([(k,) for k in names] if METHODS[name].sees_kernel else [names])
    ]


def estimate(jobs: list[Job]) -> float:
    """Return about how many seconds of one core the jobs take.

    A learned map takes steps for each ten rows, between 25 and 100 an epoch.
    """
    n_rows = {name: len(DATA[name]().train) for name in {job.data for job in jobs}}
    shares = {name: min(100, max(25, n // 10)) / 100 for name, n in n_rows.items()}
    return sum(METHODS[job.method].seconds * shares[job.data] for job in jobs)


def measured(jobs: list[Job], n_processes: int, is_toy: bool) -> Iterator[dict[str, Any]]:
    """Yield the records of jobs as they finish; with one process, in this one."""
    work = partial(measure, is_toy=is_toy)
    if n_processes == 1:
        yield from map(work, jobs)
        return
    with ProcessPoolExecutor(n_processes) as pool:
        for future in as_completed([pool.submit(work, job) for job in jobs]):
            yield future.result()


def print_means(results: dict[str, Any]) -> None:
    """Print the geometric means over data sets of the scores on validation parts."""
    for kernel, method in product(KERNELS, METHODS):
        found = [
            record["validation"]
            for name, record in results.items()
            if name.split(" / ")[1:3] == [kernel, method]
        ]
        if found:
            means = {n: np.exp(np.mean([np.log(f[n]) for f in found])) for n in found[0]}
            shown = "  ".join(f"{name} {mean:.4f}" for name, mean in means.items())
            print(f"{kernel:<10} {method:<36} {shown}")


def main() -> None:
    """Measure the missing records, save each, and print the means."""
    parser = make_parser("recipes", __doc__)
    parser.add_argument("--resume", action="store_true", help="keep what the results file has")
    parser.add_argument("--only", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--data", nargs="+", choices=DATA, default=list(DATA))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--toy", action="store_true", help="few rows and steps")
    given = parser.parse_args()
    results = Saved(given.results, resume=given.resume)
    jobs = [
        job
        for job in make_jobs(given.only, given.data)
        if any(job.record(kernel) not in results for kernel in job.kernels)
    ]
    print(f"{len(jobs)} fits: about {estimate(jobs) / 60:.0f} minutes of one core", flush=True)
    for records in measured(jobs, given.jobs, given.toy):
        for name, record in records.items():
            results.add(name, record)
    print_means(results)


if __name__ == "__main__":
    main()
