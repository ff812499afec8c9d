"""A forest as arrays has the very leaves of scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)

from dkae.kernels import ForestKernel
from dkae.kernels.forests import N_CHUNK_ROWS, ArrayForest, node_counts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = RNG.normal(size=(200, 4))
LABELS = np.arange(80) % 3
GAPPY = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
FORESTS = [
    RandomForestClassifier(6, random_state=0),
    RandomForestRegressor(6, random_state=0),
    ExtraTreesRegressor(6, random_state=0),
    RandomTreesEmbedding(6, random_state=0),
    GradientBoostingClassifier(n_estimators=3, random_state=0),
    GradientBoostingRegressor(n_estimators=3, random_state=0),
    RandomForestRegressor(2, max_depth=1, random_state=0),
    RandomForestRegressor(2, min_samples_split=1000, random_state=0),  # nothing but roots
    RandomForestRegressor(1, random_state=0),
]

every_forest = pytest.mark.parametrize("forest", FORESTS, ids=str)


def leaves(forest, rows):
    found = np.asarray(forest.apply(rows))
    return found.reshape(len(found), -1)


@every_forest
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64])
def test_leaves_are_the_same(forest, dtype):
    forest = forest.fit(X, LABELS)
    rows = (3 * Y).astype(dtype)
    np.testing.assert_array_equal(ArrayForest.of(forest).apply(rows), leaves(forest, rows))
    np.testing.assert_array_equal(node_counts(ArrayForest.of(forest)), node_counts(forest))


@every_forest
def test_rows_on_the_thresholds_fall_to_the_same_side(forest):
    """Of float64 thresholds and float32 rows, and of their neighbours."""
    arrays = ArrayForest.of(forest.fit(X, LABELS))
    at = np.repeat(arrays.threshold[arrays.left >= 0][:60], 4).astype(np.float32).reshape(-1, 4)
    rows = np.concatenate([at, np.nextafter(at, np.float32(-9)), np.nextafter(at, np.float32(9))])
    if len(rows):
        np.testing.assert_array_equal(arrays.apply(rows), leaves(forest, rows))


@pytest.mark.parametrize("kind", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("rows", [X, GAPPY], ids=["fitted whole", "fitted with gaps"])
def test_missing_values_go_where_they_went(kind, rows):
    forest = kind(8, random_state=0).fit(rows, LABELS)
    arrays = ArrayForest.of(forest)
    if rows is GAPPY:
        np.testing.assert_array_equal(arrays.apply(GAPPY), forest.apply(GAPPY))
    np.testing.assert_array_equal(arrays.apply(X), forest.apply(X))


@pytest.mark.parametrize("rows", [X, GAPPY], ids=["whole", "with gaps"])
def test_the_state_gives_the_forest_back(rows):
    """Where rows have gaps, a threshold may be infinite."""
    gaps = np.where(np.arange(80)[:, None] % 2, rows, np.nan) if rows is GAPPY else rows
    arrays = ArrayForest.of(RandomForestClassifier(8, random_state=0).fit(gaps, np.arange(80) % 2))
    if rows is GAPPY:
        assert np.isinf(arrays.threshold).any()
    again = ArrayForest.from_state(arrays.to_state())
    np.testing.assert_array_equal(again.apply(gaps), arrays.apply(gaps))


def test_extreme_rows():
    forest = FORESTS[1].fit(X, LABELS)
    rows = np.float32([[3e38, -3e38, 0, -0.0], [1e-45, -1e-45, 1e-38, 1]])
    np.testing.assert_array_equal(ArrayForest.of(forest).apply(rows), forest.apply(rows))


@pytest.mark.parametrize("n", [1, N_CHUNK_ROWS - 1, N_CHUNK_ROWS, N_CHUNK_ROWS + 1])
def test_rows_in_chunks(n):
    forest = FORESTS[0].fit(X, LABELS)
    rows = np.resize(Y, (n, 4))
    np.testing.assert_array_equal(ArrayForest.of(forest).apply(rows), forest.apply(rows))


def test_no_rows_have_no_leaves():
    assert ArrayForest.of(FORESTS[0].fit(X, LABELS)).apply(np.empty((0, 4))).shape == (0, 6)


@every_forest
def test_the_kernel_is_the_same(forest):
    kernel = ForestKernel(forest.fit(X, LABELS)).fit(X)
    again = ForestKernel(ArrayForest.of(forest)).fit(X)
    np.testing.assert_array_equal(again.gram(Y, X), kernel.gram(Y, X))
    difference = again.features(Y) - kernel.features(Y)
    assert abs(difference).max() == 0


@pytest.mark.parametrize("rows", [np.zeros((2, 3)), np.zeros(4), np.zeros((1, 2, 2))], ids=np.shape)
def test_rows_of_another_width_are_refused(rows):
    forest = ArrayForest.of(FORESTS[0].fit(X, LABELS))
    with pytest.raises(ValueError, match="the forest was fitted to rows of 4 features"):
        forest.apply(rows)


def test_any_other_forest_stays_what_it_is():
    class Own:
        def apply(self, X):
            return np.zeros((len(X), 1))

    own = Own()
    assert ArrayForest.of(own) is own


def test_a_forest_says_how_large_it_is():
    assert repr(ArrayForest.of(FORESTS[7].fit(X, LABELS))) == "ArrayForest(<2 trees of 2 nodes>)"
