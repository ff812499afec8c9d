"""Kernels with explicit features: the same components as from the Gram matrix, without one."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures

from dkae.kernels import (
    FeatureKernel,
    ForestKernel,
    FunctionKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
)
from dkae.spectral import KernelPCA
from tests.spectral.helpers import assert_same_up_to_sign

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (120, 4))
NEW = RNG.uniform(0, 1, (30, 4))


def as_texts(rows):
    return [" ".join(f"{c}{10 * v:.0f}" for c, v in zip("abcd", row, strict=True)) for row in rows]


KERNELS = {
    "fewer features than rows": TransformerKernel(Nystroem(n_components=20).fit(X)),
    "more features than rows": TransformerKernel(PolynomialFeatures(6).fit(X)),
    "as many features as rows": TransformerKernel(Nystroem(n_components=120).fit(X)),
    "single precision": TransformerKernel(PCA(3).fit(X.astype(np.float32))),
    "function": TransformerKernel(FunctionTransformer(np.sqrt)),
    "whole numbers": TransformerKernel(FunctionTransformer(lambda X: (9 * X).astype(np.int64))),
    "sparse": TransformerKernel(
        make_pipeline(FunctionTransformer(np.rint), OneHotEncoder()).fit(X)
    ),
    "sparse counts": TransformerKernel(
        make_pipeline(FunctionTransformer(as_texts), CountVectorizer()).fit(X)
    ),
    "sparse, more than rows": TransformerKernel(
        make_pipeline(
            FunctionTransformer(as_texts), CountVectorizer(ngram_range=(1, 4), dtype=np.float32)
        ).fit(X)
    ),
    "forest": ForestKernel(n_estimators=20, random_state=0),
    "clusters": ProbabilisticClusterKernel(4, 3, reg_covar=1e-2, random_state=0),
}  # fmt: skip

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
centering = pytest.mark.parametrize("center", [True, False])
both_solvers = pytest.mark.parametrize("solver", ["dense", "lanczos"])


def pca(n_components=None, **params):
    """Return a model without a way back, which tests/laws has."""
    return KernelPCA(n_components, decoder=None, random_state=0, **params)


@every_kernel
@centering
@both_solvers
def test_scores_are_those_of_the_gram_matrix(solver, center, kernel):
    model = pca(3, kernel=kernel, center=center, solver=solver)
    scores = model.fit_transform(X)
    fitted = clone(kernel).fit(X)
    whole = pca(3, center=center).fit(X, gram=fitted.gram(X))
    scale = np.abs(scores).max()
    for actual, rows in ((scores, X), (model.transform(X), X), (model.transform(NEW), NEW)):
        expected = whole.transform(rows, gram=fitted.gram(rows, X))
        assert_same_up_to_sign(actual / scale, expected / scale, 2e-4)
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-4)
    V = model.coefficients_
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-4)


@every_kernel
@centering
def test_all_components_give_the_gram_matrix_back(center, kernel):
    model = pca(kernel=kernel, center=center).fit(X)
    gram = model.kernel_.gram(X).astype(np.float64)
    expected = gram - center * (gram.mean(0) + gram.mean(0)[:, None] - gram.mean())
    np.testing.assert_allclose(model.gram(X), expected, atol=2e-5 * gram.max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(150, 20), (40, 90)])
@both_solvers
def test_a_mean_far_from_the_origin_makes_no_components(solver, shape, dtype):
    n, d = shape
    rows = RNG.standard_normal((n, 4)) @ RNG.standard_normal((4, d)) + 100
    model = pca(10, kernel=TransformerKernel(FunctionTransformer()), solver=solver)
    with pytest.warns(UserWarning, match="kernel of FunctionTransformer has only 4 positive"):
        model.fit(rows.astype(dtype))


class Counting(FeatureKernel):
    """Features of the rows, of which no large Gram matrix must be asked for."""

    def features(self, X):
        return X

    def evaluate(self, X, Y=None):
        pytest.fail("the Gram matrix was asked for")


@both_solvers
def test_neither_the_gram_nor_the_training_rows_are_needed(solver):
    model = pca(2, kernel=Counting(), solver=solver).fit(X)
    assert model.rows_ is None
    assert model.coefficients_.shape == (4, 2)
    assert model.transform(NEW).shape == (30, 2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X * np.inf, "FunctionTransformer has NaN or infinite values"),
        (lambda X: X[:, :0], "FunctionTransformer has no features on these rows"),
        (lambda X: 0 * X, "it does not tell them apart"),
        (lambda X: 1e200 * X, "products of features leave their type; scale X"),
    ],
)
@both_solvers
def test_features_that_are_refused(solver, function, message):
    kernel = TransformerKernel(FunctionTransformer(function))
    with pytest.raises(ValueError, match=message):
        pca(2, kernel=kernel, solver=solver).fit(X)


def test_a_gram_where_there_are_features_is_refused():
    # As many features as rows: the shape alone would not tell.
    model = pca(2, kernel=TransformerKernel(FunctionTransformer(lambda X: np.tile(X, 30)))).fit(X)
    with pytest.raises(ValueError, match=r"come from the features of kernel of Function.*with"):
        model.transform(X, gram=X @ X.T)


class TestMemory:
    N = 4_000  # n² booleans, the smallest n × n array, are 16 MB.

    def peak(self, work):
        tracemalloc.start()
        try:
            work()
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    @centering
    @pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
    @pytest.mark.parametrize("params", [{}, {"solver": "lanczos"}])
    def test_of_features(self, params, form, center):
        rows = RNG.random((self.N, 6), dtype=np.float32)
        kernel = TransformerKernel(FunctionTransformer(lambda X: form(X)))
        model = pca(3, kernel=kernel, center=center, **params)
        assert self.peak(lambda: model.fit(rows).transform(rows)) < 12e6

    @both_solvers
    def test_of_many_sparse_features(self, solver):
        # Between features and their Gram there would be an array of features × rows: 320 MB.
        phi = sparse.random_array((800, 50_000), density=1e-4, rng=0, format="csr")
        kernel = TransformerKernel(FunctionTransformer(lambda X: phi[X[:, 0].astype(int)]))
        model = pca(3, kernel=kernel, solver=solver)
        assert self.peak(lambda: model.fit(np.arange(800.0)[:, None])) < 200e6

    def test_of_kernel_function(self):
        rows = RNG.random((self.N, 3), dtype=np.float32)
        largest = 0

        def kernel(A, B):
            nonlocal largest
            largest = max(largest, len(A) * len(B))
            return (A @ B.T) ** 2

        model = pca(2, kernel=FunctionKernel(kernel))
        assert self.peak(lambda: model.fit(rows)) < 32e6  # n² floats are 64 MB
        assert largest <= 1024**2

    def test_of_gram_matrix_in_single_precision(self):
        rows = RNG.random((self.N // 2, 3), dtype=np.float32)
        P = rows @ rows.T
        model = pca(2)
        # A copy in double precision would be 32 MB; chunks of 1024 rows of it are 16 MB.
        assert self.peak(lambda: model.fit(rows, gram=P)) < 29e6
