"""Linear operations on codes, against closed forms: with a linear model they are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

from dkae.codespace import class_means, code_pca, combine, denoise, interpolate, traverse


@pytest.fixture(name="X", scope="module")
def make_rows():
    """Return rows of full rank whose variances are far apart: directions are well defined."""
    rng = np.random.default_rng(1)
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return 3 + rng.normal(size=(80, 6)) * [8, 5, 3, 2, 1, 0.5] @ rotation


@pytest.fixture(scope="module")
def linear(X):
    """Return a rotation of the input: an invertible map with closed forms for everything."""
    return PCA().fit(X)


class Scaling:
    """The least that counts as a model: two methods and no base class."""

    def __init__(self, dtype=np.float64):
        self.dtype = dtype
        self.calls = []

    def transform(self, X):
        self.calls.append(len(X))
        return (2 * np.asarray(X)).astype(self.dtype)

    def inverse_transform(self, codes):
        assert codes.dtype == self.dtype or self.dtype is int
        return codes / 2


#: A call of each function, and the rows that go into each of its calls of `transform`.
OPERATIONS = {
    "code_pca": (lambda m, X: code_pca(m, X, 2)["pca"].components_, [80]),
    "denoise": (lambda m, X: denoise(m, X[:7], X, 2), [80, 7]),
    "traverse": (lambda m, X: traverse(m, X, x=X[0]), [80, 1]),
    "interpolate": (lambda m, X: interpolate(m, X[:4], X[4:8]), [4, 4]),
    "class_means": (lambda m, X: class_means(m, X, np.arange(80) % 3)[1], [80]),
    "combine": (lambda m, X: combine(m, [(1, X), (-1, X[:5])]), [80, 5]),
}


class TestLinearModel:
    def test_interpolation_is_the_straight_line(self, X, linear):
        line = np.linspace(X[0], X[1], 9)
        np.testing.assert_allclose(interpolate(linear, X[0], X[1]), line)
        lines = interpolate(linear, X[:3], X[3:6], 4)
        np.testing.assert_allclose(lines, np.linspace(X[:3], X[3:6], 4, axis=1))
        outside = [2 * X[0] - X[1], X[0], 2 * X[1] - X[0]]
        np.testing.assert_allclose(interpolate(linear, X[0], X[1], [-1, 0, 2]), outside)

    def test_denoising_is_the_projection_of_plain_pca(self, X, linear):
        noisy = X + np.random.default_rng(0).normal(size=X.shape)
        plain = PCA(2).fit(X)
        projected = plain.inverse_transform(plain.transform(noisy))
        np.testing.assert_allclose(denoise(linear, noisy, X, 2), projected)

    @pytest.mark.parametrize("direction", [0, 2, 5])
    def test_traversal_goes_from_minus_to_plus_extent(self, direction, X, linear):
        walk = traverse(linear, X, direction, n_steps=5, extent=2.0)
        variances, vectors = np.linalg.eigh(np.cov(X, rowvar=False))
        step = np.sqrt(variances[-1 - direction]) * vectors[:, -1 - direction]
        # The sign of a principal direction is a convention.
        step *= np.sign(step @ (walk[-1] - walk[0]))
        expected = [X.mean(axis=0) + t * step for t in (-2, -1, 0, 1, 2)]
        np.testing.assert_allclose(walk, expected, rtol=1e-9)
        around = traverse(linear, X, direction, n_steps=5, extent=2.0, x=X[7])
        np.testing.assert_allclose(around, walk - X.mean(axis=0) + X[7])

    def test_class_means_are_the_codes_of_the_means(self, X, linear):
        y = np.resize(["b", "a", "c", "b"], len(X))
        classes, means = class_means(linear, X, y)
        assert list(classes) == ["a", "b", "c"]
        means_of_rows = pd.DataFrame(X).groupby(y).mean()
        np.testing.assert_allclose(linear.inverse_transform(means), means_of_rows)

    def test_combination_is_that_of_the_means(self, X, linear):
        # The weights sum to 1: any others would also weight the mean that PCA takes off.
        result = combine(linear, [(1, X[:9]), (-1, X[9:30]), (1, X[40])])
        np.testing.assert_allclose(result, X[:9].mean(axis=0) - X[9:30].mean(axis=0) + X[40])
        result = combine(Scaling(), ((w, X[i]) for i, w in enumerate([0.5, -3])))
        np.testing.assert_allclose(result, 0.5 * X[0] - 3 * X[1])


class TestPipeline:
    def test_model_is_in_it_as_it_was(self, X, linear):
        codes = linear.transform(X)
        pipeline = code_pca(linear, X[:20], 3)
        check_is_fitted(pipeline)
        assert pipeline["model"] is linear
        scores = PCA(3).fit(codes[:20]).transform(codes)
        np.testing.assert_allclose(pipeline.transform(X), scores)
        projected = pipeline.inverse_transform(pipeline.transform(X))
        np.testing.assert_array_equal(denoise(linear, X, X[:20], 3), projected)

    def test_default_is_32_components_or_half_of_the_code(self, X, linear):
        wide = np.random.default_rng(0).normal(size=(50, 70))
        assert code_pca(Scaling(), wide)["pca"].n_components_ == 32
        assert code_pca(Scaling(), wide[:9])["pca"].n_components_ == 9
        assert code_pca(linear, X)["pca"].n_components_ == 3
        np.testing.assert_allclose(denoise(linear, X, X, 6), X)  # all that the code has

    def test_frozen_model_survives_a_search_over_components(self, X, linear):
        pipeline = code_pca(FrozenEstimator(linear), X, 2)
        assert clone(pipeline)["model"].estimator is linear
        search = GridSearchCV(pipeline, {"pca__n_components": [1, 3]}, cv=2).fit(X)
        assert search.best_params_ == {"pca__n_components": 3}

    def test_wide_codes_give_the_same_result_twice(self):
        # Wide enough for the randomised solver of scikit-learn.
        wide = np.random.default_rng(0).normal(size=(600, 520))
        a, b = (code_pca(Scaling(), wide, 3) for _ in range(2))
        np.testing.assert_array_equal(a["pca"].components_, b["pca"].components_)


class TestAnyModel:
    @pytest.mark.parametrize(("call", "sizes"), OPERATIONS.values(), ids=OPERATIONS)
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_one_call_for_all_rows_and_no_other_dtype(self, dtype, call, sizes, X):
        model = Scaling(dtype)
        assert call(model, X).dtype == dtype
        assert model.calls == sizes

    def test_codes_of_whole_numbers_do_not_round_the_result(self):
        model, X = Scaling(int), np.array([[0, 1], [1, 4], [1, 1]])
        np.testing.assert_allclose(interpolate(model, X[0], X[1], [0.25]), [[0.25, 1.75]])
        np.testing.assert_allclose(combine(model, [(1, X)]), [2 / 3, 2])

    def test_mean_of_many_rows_is_accurate_in_float32(self):
        X = np.full((200_000, 2), 0.1, dtype=np.float32)
        np.testing.assert_array_equal(class_means(Scaling(np.float32), X, X[:, 0])[1], 2 * X[:1])

    def test_data_frames(self, X):
        frame = pd.DataFrame(X).add_prefix("column")
        named = PCA().set_output(transform="pandas").fit(frame)
        plain = PCA().fit(X)
        np.testing.assert_allclose(denoise(named, frame, frame, 2), denoise(plain, X, X, 2))
        walk = traverse(named, frame, x=frame.iloc[[3]])
        np.testing.assert_allclose(walk, traverse(plain, X, x=X[3]))
        result = combine(named, [(2, frame.iloc[:4]), (-1, frame.iloc[[5]])])
        np.testing.assert_allclose(result, combine(plain, [(2, X[:4]), (-1, X[5])]))
        assert interpolate(Scaling(), frame.iloc[0], frame.iloc[1]).shape == (9, 6)  # series

    @given(
        n=st.integers(1, 4), n_features=st.integers(1, 5), n_steps=st.integers(2, 6), data=st.data()
    )
    def test_shapes(self, n, n_features, n_steps, data):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n + 2, n_features))
        x, y = X[:n], rng.normal(size=(n, n_features))
        single = (n_steps, n_features)
        lines = interpolate(Scaling(), x, y, n_steps)
        assert lines.shape == (single if n == 1 else (n, *single))
        np.testing.assert_array_equal(lines.reshape(n, *single)[:, -1], y)
        m = data.draw(st.integers(1, min(n + 2, n_features)))
        assert code_pca(Scaling(), X, m).transform(x).shape == (n, m)
        assert denoise(Scaling(), x, X, m).shape == x.shape
        assert traverse(Scaling(), X, m - 1, n_steps).shape == single
        assert combine(Scaling(), [(1, x), (2, y[0])]).shape == (n_features,)


class TestBadInput:
    @pytest.mark.parametrize("call", [call for call, _ in OPERATIONS.values()], ids=OPERATIONS)
    def test_model(self, call, X, linear):
        with pytest.raises(TypeError, match="model is a Lasso without transform and inverse_tr"):
            call(Lasso(), X)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(PCA(), X)
        with pytest.raises(ValueError, match="contains NaN"):
            call(linear, np.where(np.arange(6) < 5, X, np.nan))

    @pytest.mark.parametrize(
        ("call", "message"),
        [
            (lambda m, X: code_pca(m, X, 0), "n_components=0 must be a whole number of at least 1"),
            (lambda m, X: code_pca(m, X, 7), "n_components=7 is too large.*width 6, have only 6"),
            (lambda m, X: code_pca(m, X[:1], 1), "X_clean has only 1 row.*pass more rows"),
            (lambda m, X: interpolate(m, X[:2], X[:3]), r"x has shape \(2, 6\) and y has shape"),
            (lambda m, X: interpolate(m, X[0], X[1], 1), "n_steps=1 must be a whole .* at least 2"),
            (lambda m, X: interpolate(m, X[0], X[1], [0, np.inf]), "or a list of finite positions"),
            (lambda m, X: traverse(m, X, -1), "direction=-1 must be a whole number of at least 0"),
            (lambda m, X: traverse(m, X, 6), "direction=6 is too large: the codes of X.*only 6"),
            (lambda m, X: traverse(m, X, extent=0), r"extent=0 must be a number in \(0, inf\)"),
            (lambda m, X: traverse(m, X, x=X[:3]), "x has 3 rows: pass the one row"),
            (lambda m, X: class_means(m, X, [0] * 79), r"y has shape \(79,\), but X has 80 rows"),
            (lambda m, X: combine(m, []), "terms is empty: pass at least one pair"),
            (lambda m, X: combine(m, [X]), r"terms\[0\] is a ndarray: expected a pair"),
            (lambda m, X: combine(m, [(1, X), (1, X[:0])]), r"terms\[1\] has no rows"),
            (lambda m, X: combine(m, [(np.nan, X)]), r"weight of terms\[0\]=nan must be a number"),
        ],
    )
    def test_values(self, call, message, X, linear):
        with pytest.raises(ValueError, match=message):
            call(linear, X)
