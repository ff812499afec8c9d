"""Small data and small models that the tests share."""

from __future__ import annotations

import os

# Before SciPy is imported: without it scikit-learn leaves out one of its estimator checks.
os.environ["SCIPY_ARRAY_API"] = "1"

import numpy as np
import pytest
import torch
from hypothesis import settings
from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder
from dkae.networks import Stack

# Timing on a shared machine says nothing: no deadlines.
settings.register_profile("dkae", deadline=None, max_examples=50)
settings.load_profile("dkae")

torch.set_num_threads(1)

#: Modules that start processes, or train and measure for seconds: `make check` leaves them out.
SLOW = {
    "tests.contract.test_scikit_learn",
    "tests.docs.test_benchmarks", "tests.docs.test_examples", "tests.kernels.test_cluster",
    "tests.laws.test_pca_falls_out", "tests.laws.test_state_laws",
    "tests.persistence.test_hostile_files", "tests.plotting.test_style",
    "tests.spectral.test_eigensolver", "tests.spectral.test_features",
    "tests.spectral.test_kernel_pca", "tests.test_codespace", "tests.test_memory",
    "tests.test_package", "tests.training.test_trainer",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.module.__name__ in SLOW:
            item.add_marker("slow")


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """300 real handwritten digits of 8 x 8 pixels in [0, 1], float32."""
    return (load_digits().data[:300] / 16).astype(np.float32)


@pytest.fixture
def tiny():
    """Return a factory of autoencoders that train in a fraction of a second.

    Their network is the plain stack of the paper, on rows as they are. Parameters may be nested:
    ``tiny(network__activation="tanh", optimization__learning_rate="constant")``.
    """

    def make(**params) -> DeepKernelizedAutoencoder:
        model = DeepKernelizedAutoencoder(
            5,
            network=Stack((16,), layer_norm=False, input_scaling=False),
            alignment="frobenius",
            max_iter=2,
            decoder_max_iter=0,
            steps_per_epoch=5,
            batch_size=50,
            random_state=0,
        )
        return model.set_params(**params)

    return make
