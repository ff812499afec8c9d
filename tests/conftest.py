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

# Timing on a shared machine says nothing: no deadlines.
settings.register_profile("dkae", deadline=None, max_examples=50)
settings.load_profile("dkae")

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits() -> np.ndarray:
    """300 real handwritten digits of 8 x 8 pixels in [0, 1], float32."""
    return (load_digits().data[:300] / 16).astype(np.float32)


@pytest.fixture
def tiny():
    """Return a factory of estimators that train in a fraction of a second."""

    def make(**params) -> DeepKernelizedAutoencoder:
        defaults = {
            "n_components": 5,
            "hidden_layer_sizes": (16,),
            "max_iter": 2,
            "decoder_max_iter": 0,  # has tests of its own, in tests/training/test_decoding.py
            "steps_per_epoch": 5,
            "batch_size": 50,
            "random_state": 0,
        }
        return DeepKernelizedAutoencoder(**(defaults | params))

    return make
