"""A small fitted model, and figures that are closed after each test."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

mpl.use("Agg")


@pytest.fixture(autouse=True)
def close_figures():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before, "drawing changed the user's settings"


@pytest.fixture
def labels() -> np.ndarray:
    """The classes of the rows of `digits`."""
    return load_digits().target[:300]


@pytest.fixture
def model(tiny, digits):
    params = {"pretrain_max_iter": 1, "decoder_max_iter": 2, "validation_fraction": 0.2}
    return tiny(**params).fit(digits)


class Blocks:
    """A Gram matrix that is read block by block."""

    def __init__(self, matrix):
        self.matrix = matrix

    def __len__(self):
        return len(self.matrix)

    def block(self, rows, columns=None):
        return self.matrix[np.ix_(rows, rows if columns is None else columns)]


class ImageModel(BaseEstimator):
    """Codes of images (n, c, h, w) are their numbers, scaled; its kernel is linear."""

    kernel = "linear"
    kernel_scale_ = 4.0

    def fit(self, X, y=None):
        self.shape_ = np.shape(X)[1:]
        self.kernel_ = None
        return self

    def prior_gram(self, X):
        rows = np.reshape(X, (len(X), -1))
        return Blocks(rows @ rows.T)

    def transform(self, X):
        assert np.shape(X)[1:] == self.shape_
        return np.reshape(X, (len(X), -1)) / 2

    def inverse_transform(self, codes):
        return np.reshape(codes, (len(codes), *self.shape_)) * 2

    def gram(self, X):
        codes = self.transform(X)
        return self.kernel_scale_ * codes @ codes.T
