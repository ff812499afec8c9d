"""The list of maps that every law of maps runs over, tiny and fast, and their data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import rbf_kernel

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA
from dkae.decoders import KernelRidgeDecoder, MLPDecoder, RidgeDecoder
from dkae.networks import Stack
from dkae.training import Optimization

N, D, WIDTH = 60, 6, 3
RNG = np.random.default_rng(0)
#: Rows of a few directions, which are not all of [0, 1].
X = (RNG.normal(size=(N, 3)) @ RNG.normal(size=(3, D)) + 0.1 * RNG.normal(size=(N, D))).astype(
    np.float32
)
NEW = (X[:20] + 0.1 * RNG.normal(size=(20, D))).astype(np.float32)
Y = np.arange(N) % 3
P = rbf_kernel(X.astype(np.float64), gamma=0.1)

MLP = MLPDecoder(
    (8,), max_iter=2, steps_per_epoch=3, batch_size=16,
    optimization=Optimization(learning_rate_init=0.02),
)  # fmt: skip


def _nystroem(decoder: Any) -> InvertibleNystroem:
    return InvertibleNystroem(WIDTH, n_landmarks=20, decoder=decoder, random_state=0)


MAPS: dict[str, Any] = {
    "autoencoder": DeepKernelizedAutoencoder(
        WIDTH, network=Stack((8,)), max_iter=2, decoder_max_iter=1, steps_per_epoch=3,
        batch_size=16, optimization=Optimization(), random_state=0,
    ),
    "nystroem, ridge": _nystroem(RidgeDecoder()),
    "nystroem, kernel ridge": _nystroem(KernelRidgeDecoder(n_landmarks=20)),
    "nystroem, mlp": _nystroem(MLP),
    "nystroem, scikit-learn": _nystroem(Ridge()),
    "kernel PCA": KernelPCA(WIDTH, decoder=KernelRidgeDecoder(n_landmarks=20), random_state=0),
}  # fmt: skip
#: Maps that learn in steps: with callbacks, warm starts, checkpoints, batches and parts.
TRAINED = ("autoencoder", "nystroem, mlp")

every_map = pytest.mark.parametrize("name", MAPS)
every_trained_map = pytest.mark.parametrize("name", TRAINED)


def make(name: str, **params: Any) -> Any:
    """Return an unfitted map of the list; parameters may be nested."""
    return clone(MAPS[name]).set_params(**params)


def make_of_all_rows(name: str, **params: Any) -> Any:
    """Return an unfitted map of the list that holds no rows out."""
    own = {"decoder__validation_fraction": 0.0} if name == "nystroem, mlp" else {}
    return make(name, **own, **params)


def results(model: Any, rows: Any = NEW) -> tuple[np.ndarray, np.ndarray]:
    """Return codes, and the rows that they decode to."""
    codes = model.transform(rows)
    return codes, model.inverse_transform(codes)


def assert_same_map(a: Any, b: Any, rows: Any = NEW) -> None:
    """Two maps agree bit for bit."""
    for mine, other in zip(results(a, rows), results(b, rows), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert a.kernel_scale_ == b.kernel_scale_
    assert (a.alignment_, a.r2_) == (b.alignment_, b.r2_)
