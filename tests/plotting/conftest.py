"""A small fitted model, and figures that are closed after each test."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from dkae.grams import MatrixGram

mpl.use("Agg")

PHASES = ["layer 1", "layer 2", "fine-tuning", "fine-tuning", "decoder", "decoder"]


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before, "drawing changed the settings of the session"


@pytest.fixture
def labels() -> np.ndarray:
    """The classes of the rows of `digits`."""
    return load_digits().target[:300]


@pytest.fixture
def model(digits):
    return Model(steps_per_epoch=5).fit(digits)


class Model(BaseEstimator):
    """A map of five components with the interface that the displays use, for rows of any shape."""

    kernel = "rbf"
    kernel_scale_ = 4.0

    def __init__(self, steps_per_epoch="auto"):
        self.steps_per_epoch = steps_per_epoch

    def fit(self, X, y=None):
        self.shape_ = np.shape(X)[1:]
        directions = np.random.default_rng(0).standard_normal((5, np.prod(self.shape_)))
        self.directions_ = np.linalg.qr(directions.T)[0]
        self.history_ = [
            {
                "phase": phase,
                "reconstruction_loss": 1 / (i + 2),
                "validation_reconstruction_loss": 1.5 / (i + 2),
                **({"alignment_loss": 0.5 / (i + 1)} if phase != "layer 1" else {}),
            }
            for i, phase in enumerate(PHASES)
        ]
        return self

    def prior_gram(self, X):
        return MatrixGram(rbf_kernel(np.reshape(X, (len(X), -1)), gamma=0.1))

    def transform(self, X):
        rows = np.asarray(X)
        assert rows.shape[1:] == self.shape_
        return rows.reshape(len(X), -1) @ self.directions_

    def inverse_transform(self, codes):
        return (codes @ self.directions_.T).reshape(-1, *self.shape_)

    def gram(self, X):
        codes = self.transform(X)
        return self.kernel_scale_ * codes @ codes.T
