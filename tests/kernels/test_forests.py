"""Kernels of forests, against scikit-learn's leaves; forests as arrays have the same ones."""

from __future__ import annotations

import time

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)

from dkae import KernelPCA
from dkae.kernels import ForestKernel
from dkae.kernels import forests as module
from dkae.kernels.forests import NO_CHILD, ArrayForest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = RNG.normal(size=(200, 4))
LABELS = np.arange(80) % 3
GAPPY = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
FORESTS = [
    RandomForestClassifier(6, random_state=0),
    ExtraTreesRegressor(6, random_state=0),
    RandomTreesEmbedding(6, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    RandomForestRegressor(2, min_samples_split=1000, random_state=0),  # nothing but roots
]
every_forest = pytest.mark.parametrize("forest", FORESTS, ids=str)


def leaves(forest, rows):
    found = np.asarray(forest.apply(rows))
    return found.reshape(len(found), -1)


# --- the kernel ----------------------------------------------------------------------------------


@every_forest
def test_it_is_the_share_of_common_leaves(forest):
    forest = forest.fit(X, LABELS)
    kernel, found = ForestKernel(forest).fit(X), leaves(forest, Y)
    expected = (found[:, None] == found).mean(axis=2)
    np.testing.assert_allclose(kernel.gram(Y), expected, rtol=1e-6)
    phi = kernel.features(Y)
    np.testing.assert_allclose((phi @ phi.T).toarray(), expected, rtol=1e-6)


def test_without_a_forest_it_is_the_random_trees_embedding():
    kernel = ForestKernel(n_estimators=12, max_depth=4, random_state=3).fit(X)
    phi = RandomTreesEmbedding(12, max_depth=4, random_state=3).fit(X).transform(X)
    np.testing.assert_allclose(kernel.gram(X), (phi @ phi.T).toarray() / 12, rtol=1e-6)


def test_the_given_forest_is_neither_fitted_nor_copied():
    forest = RandomForestClassifier(3, random_state=0).fit(X, LABELS)
    assert clone(ForestKernel(forest)).fit(X).forest_ is forest


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"forest": RandomForestClassifier()}, r"forest=RandomForestClassifier\(\) is not fitted"),
        ({"forest": PCA(2).fit(X)}, r"forest=PCA\(n_components=2\) has no method apply"),
    ],
    ids=["not fitted", "no forest"],
)
def test_parameters(params, message):
    with pytest.raises(ValueError, match=message):
        ForestKernel(**params).fit(X)


# --- forests as arrays ---------------------------------------------------------------------------


@every_forest
def test_leaves_are_the_same(forest, monkeypatch):
    forest = forest.fit(X, LABELS)
    arrays = ArrayForest.of(forest)
    extreme = np.float32([[3e38, -3e38, 0, -0.0], [1e-45, -1e-45, 1e-38, 1]])
    for rows in (extreme, (3 * Y).astype(np.int64), np.float32(3 * Y), 3 * Y):
        expected = leaves(forest, rows)
        np.testing.assert_array_equal(arrays.apply(rows), expected)
    monkeypatch.setattr(module, "N_CHUNK_PAIRS", 7 * expected.shape[1])
    np.testing.assert_array_equal(arrays.apply(rows), expected)
    counts = [tree.tree_.node_count for tree in np.ravel(forest.estimators_)]
    np.testing.assert_array_equal(np.diff(arrays.bounds), counts)


@every_forest
def test_rows_on_the_thresholds_fall_to_the_same_side(forest):
    """Of float64 thresholds and float32 rows, and of their neighbours."""
    arrays = ArrayForest.of(forest.fit(X, LABELS))
    at = np.repeat(arrays.threshold[arrays.left >= 0][:60], 4).astype(np.float32).reshape(-1, 4)
    rows = np.concatenate([at, np.nextafter(at, np.float32(-9)), np.nextafter(at, np.float32(9))])
    if len(rows):
        np.testing.assert_array_equal(arrays.apply(rows), leaves(forest, rows))


@pytest.mark.parametrize("rows", [X, GAPPY], ids=["fitted whole", "fitted with gaps"])
def test_missing_values_go_where_they_went(rows):
    forest = RandomForestClassifier(8, random_state=0).fit(rows, LABELS)
    for others in (X, rows):
        np.testing.assert_array_equal(ArrayForest.of(forest).apply(others), forest.apply(others))


def test_rows_of_another_width():
    forest = ArrayForest.of(FORESTS[0].fit(X, LABELS))
    for rows in (np.zeros((2, 3)), np.zeros(4), np.zeros((1, 2, 2))):
        with pytest.raises(ValueError, match="the forest was fitted to rows of 4 features"):
            forest.apply(rows)


def test_any_other_forest_stays_as_it_is():
    class Custom:
        def apply(self, X):
            return np.asarray(X)[:, :1] > 0

    own = Custom()
    assert ArrayForest.of(own) is own
    kernel = ForestKernel(own).fit(X)
    np.testing.assert_array_equal(kernel.gram(X), (X[:, :1] > 0) == (X[:, 0] > 0))
    with pytest.raises(ValueError, match=r"has no estimators_ with trees .*: use gram"):
        kernel.features(X)
    scores = KernelPCA(1, kernel=kernel, decoder=None).fit(X).transform(X)
    assert len(np.unique(scores.round(6))) == 2
    assert repr(ArrayForest.of(FORESTS[4].fit(X, LABELS))) == "ArrayForest(<2 trees of 2 nodes>)"


def test_a_deep_tree_beside_many_shallow_ones_takes_the_time_of_its_own_depth():
    """One chain of 30,000 nodes and 30,000 roots: rows x trees x depth of each."""
    depth = n_trees = 30_000
    inner = np.arange(0, 2 * depth, 2)
    left, right = np.full((2, 2 * depth + 1 + n_trees), NO_CHILD, np.int32)
    left[inner], right[inner] = inner + 1, inner + 2
    n = len(left)
    bounds = np.concatenate([[0], np.arange(2 * depth + 1, n + 1)]).astype(np.int32)
    chain = ArrayForest(
        left, right, np.zeros(n, np.int32), np.full(n, -1.0), np.zeros(n, bool), bounds, 1
    )
    start = time.perf_counter()
    found = chain.apply(np.zeros((100, 1)))
    assert time.perf_counter() - start < 10  # 50 s and more if all trees go on until the end
    assert (found[:, 0] == 2 * depth).all()
    assert not found[:, 1:].any()
