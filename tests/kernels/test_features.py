"""Features of all rows are held, or computed for each block where memory is short."""

from __future__ import annotations

import logging
import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import StandardScaler

from dkae.kernels import (
    FeatureKernel,
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    features,
    normalize,
)
from dkae.kernels.features import ComputedGram
from dkae.kernels.posteriors import Screening

X = np.random.default_rng(0).uniform(0.1, 1, (2000, 6)).astype(np.float32)
ROWS, COLUMNS = np.array([7, 1999, 7, 3]), np.array([0, 1234])


class Squares(FeatureKernel):
    """Features x², of which it counts how often they were computed."""

    def __init__(self):
        self.calls = []

    def features(self, X):
        self.calls.append(len(X))
        return np.square(X)


class Mine(PairwiseKernel):
    """A custom kernel without the parameter cache_bytes."""

    def on(self, X):
        return super().on(X)


def clusters():
    return ProbabilisticClusterKernel(4, 2, random_state=0, reg_covar=1e-2).fit(X)


def is_computed(gram):
    return isinstance(gram, ComputedGram)


KERNELS = {
    "compact": clusters(),
    "forest": ForestKernel(n_estimators=20, random_state=0).fit(X),
    "dense": TransformerKernel(Nystroem(n_components=9, random_state=0).fit(X)),
    "sparse": TransformerKernel(RandomTreesEmbedding(5, random_state=0).fit(X)),
}


# --- the choice ----------------------------------------------------------------------------------


def test_features_are_held_if_they_fit(monkeypatch):
    n_bytes = X.nbytes  # as many features as columns
    for budget, computed in ((n_bytes, False), (n_bytes - 1, True)):
        monkeypatch.setattr("dkae.kernels.features.default_budget", lambda b=budget: b)
        assert is_computed(Squares().on(X)) is computed
        assert is_computed(Squares().on(X, cache_bytes=budget)) is computed
        both = (Squares() + Squares()).fit(X).on(X, cache_bytes=2 * budget)  # an equal share each
        assert [is_computed(gram) for gram in both.grams] == [computed, computed]
    assert not is_computed(Squares().on(X, cache_bytes=n_bytes))
    assert not is_computed(Squares().on(X[:3]))
    assert is_computed(Squares().on(X[:3], cache_bytes=0))  # a number is kept to


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_estimate_is_near_what_is_held_and_the_choice_is_logged(kernel, caplog):
    n_bytes = sum(array.nbytes for array in features.to_arrays(kernel.on(X).rows).values())
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="dkae"):
        assert not is_computed(kernel.on(X, cache_bytes=1.2 * n_bytes))
        assert is_computed(kernel.on(X, cache_bytes=0.8 * n_bytes))
    held, computed = caplog.messages
    assert re.fullmatch(r"kernel .*: features of 2000 rows take about .*, and may .*: held", held)
    assert computed.endswith("computed for each batch")


@pytest.mark.parametrize("bad", [-1, "1 GB", np.nan, np.inf, True])
def test_numbers_of_bytes(bad):
    for kernel in (Squares(), normalize(Squares()).fit(X), (Squares() + Squares()).fit(X)):
        with pytest.raises(ValueError, match=r"cache_bytes=.* must be a number in \[0, inf\)"):
            kernel.on(X, cache_bytes=bad)


# --- the work -------------------------------------------------------------------------------------


def test_features_of_rows_and_columns_are_computed_once_each():
    kernel = Squares()
    gram = kernel.on(X, cache_bytes=0)
    kernel.calls.clear()
    gram.block(ROWS)
    assert kernel.calls == [len(ROWS)]
    kernel.calls.clear()
    gram.block(ROWS, COLUMNS)
    assert sorted(kernel.calls) == sorted([len(ROWS), len(COLUMNS)])


@pytest.mark.parametrize("kind", [list, pd.Series, np.array])
def test_rows_may_be_texts(kind):
    texts = [f"{'a ' * (i % 3)}{'b ' * (i % 5)}c" for i in range(30)]
    words = CountVectorizer(token_pattern=r"\w").fit(texts)
    kernel = TransformerKernel(words)
    held, computed = kernel.on(kind(texts)), kernel.on(kind(texts), cache_bytes=0)
    rows = np.array([4, 29, 0])
    np.testing.assert_array_equal(computed.block(rows), held.block(rows))


@pytest.mark.parametrize("kind", [pd.DataFrame, torch.tensor, sparse.csr_array, sparse.coo_array])
def test_rows_may_be_of_any_kind(kind):
    kernel = TransformerKernel(StandardScaler(with_mean=False).fit(X))
    held, computed = (kernel.on(kind(X), cache_bytes=b) for b in (1e9, 0))
    np.testing.assert_allclose(computed.block(ROWS), held.block(ROWS), rtol=1e-6)


def test_the_screening_of_mixtures_is_made_once(monkeypatch):
    made, kernel = [], clusters()

    def make(*args):
        made.append(args)
        return Screening(*args)

    monkeypatch.setattr("dkae.kernels.cluster.Screening", make)
    gram = kernel.on(X, cache_bytes=0)
    for _ in range(3):
        gram.block(ROWS, COLUMNS)
    assert len(made) == 1


# --- others --------------------------------------------------------------------------------------


def test_custom_kernels_without_the_parameter():
    mine = Mine("rbf")
    kernels = [mine + Squares(), mine * Squares(), normalize(mine)]
    for kernel in kernels:
        assert np.isfinite(kernel.fit(X).on(X).block(ROWS)).all()
    with pytest.raises(TypeError, match="unexpected keyword argument 'cache_bytes'"):
        kernels[0].on(X, cache_bytes=0)


@pytest.mark.parametrize("kernel", [Squares(), *KERNELS.values()], ids=["squares", *KERNELS])
def test_features_of_landmarks_are_held_whatever_the_budget(kernel, monkeypatch):
    expected = kernel.gram(X[:1300], X[:1100])
    monkeypatch.setattr("dkae.kernels.features.default_budget", lambda: 0)
    towards = kernel.towards(X[:1100])
    if isinstance(kernel, Squares):
        kernel.calls.clear()
    np.testing.assert_allclose(towards(X[:1300]), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(towards(X[:5]), expected[:5], rtol=1e-5, atol=1e-6)
    if isinstance(kernel, Squares):
        assert kernel.calls == [1300, 5]  # none of the landmarks


# --- several processes ---------------------------------------------------------------------------


class Second:
    """The second of two processes; the first has computed its share."""

    rank, size = 1, 2

    def __init__(self, first):
        self.first = first

    def part(self, n):
        return slice(n // 2, n)

    def gather(self, value):
        return [value, value]

    def gather_arrays(self, arrays):
        return [self.first, arrays]


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_each_process_computes_its_share(kernel, monkeypatch):
    expected = kernel.on(X, cache_bytes=1e9).block(ROWS, COLUMNS)
    theirs = features.to_arrays(kernel.on(X[:1000], cache_bytes=1e9).rows)
    assert all(isinstance(array, np.ndarray) for array in theirs.values())
    monkeypatch.setattr(features, "present", lambda: Second(theirs))
    gram = kernel.on(X, cache_bytes=1e9)
    np.testing.assert_allclose(gram.block(ROWS, COLUMNS), expected, rtol=1e-5, atol=1e-6)
