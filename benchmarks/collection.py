"""Small data sets of several kinds that ship in wheels, in three parts, and kernels for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib import cbook
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_sample_images,
    load_wine,
)
from sklearn.feature_extraction.image import extract_patches_2d

from dkae.kernels import Kernel, PairwiseKernel, ProbabilisticClusterKernel

Array = NDArray[Any]


class Parts(NamedTuple):
    """Rows in three parts with their labels, if there are any, and the width of the code."""

    train: Array
    validation: Array
    test: Array
    labels: dict[str, Array] | None
    n_components: int


def _split(X: Array, y: Array | None, n_components: int, *, is_table: bool = False) -> Parts:
    """Return three fifths, one fifth and one fifth of the rows; tables are standardised."""
    order = np.random.default_rng(0).permutation(len(X))
    ids = np.split(order, [3 * len(X) // 5, 4 * len(X) // 5])
    X = X.astype(np.float32)
    if is_table:
        X = (X - X[ids[0]].mean(axis=0)) / X[ids[0]].std(axis=0)
    names = ("train", "validation", "test")
    labels = None if y is None else {name: y[i] for name, i in zip(names, ids, strict=True)}
    return Parts(*(X[i] for i in ids), labels, n_components)


def _patches() -> Array:
    """Return 3,000 patches of 8 × 8 grey pixels in [0, 1] of two photographs."""
    images = [image.mean(axis=2) / 255 for image in load_sample_images().images]
    patches = [extract_patches_2d(i, (8, 8), max_patches=1500, random_state=0) for i in images]
    return np.concatenate(patches).reshape(3000, 64)


def _membrane() -> Parts:
    """Return windows of 64 values of a cell's potential; the parts follow each other in time.

    The series is sample data of matplotlib.
    """
    series = np.fromfile(cbook.get_sample_data("membrane.dat"), np.float32)
    rng, parts = np.random.default_rng(0), []
    for piece, n in zip(np.split(series, [7200, 9600]), (1200, 400, 400), strict=True):
        starts = rng.choice(len(piece) - 64, n, replace=False)
        parts.append(np.stack([piece[i : i + 64] for i in starts]))
    return Parts(*parts, None, 16)


DATA: dict[str, Callable[[], Parts]] = {
    "digits": lambda: _split(load_digits().data / 16, load_digits().target, 32),
    "patches of photographs": lambda: _split(_patches(), None, 32),
    "membrane potential": _membrane,
    "breast cancer": lambda: _split(
        load_breast_cancer().data, load_breast_cancer().target, 16, is_table=True
    ),
    "wine": lambda: _split(load_wine().data, load_wine().target, 8, is_table=True),
    "diabetes": lambda: _split(load_diabetes(scaled=False).data, None, 8, is_table=True),
}
KERNELS: dict[str, Callable[[], Kernel]] = {
    "rbf": lambda: PairwiseKernel("rbf"),
    "laplacian": lambda: PairwiseKernel("laplacian"),
    "pck": lambda: ProbabilisticClusterKernel(10, 10, reg_covar=1e-3, random_state=0),
}
