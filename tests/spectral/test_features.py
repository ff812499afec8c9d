"""Kernels with explicit features: the same components as from the Gram matrix, without one."""

from __future__ import annotations

import pickle
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
    "exact clusters": ProbabilisticClusterKernel(
        4, 3, reg_covar=1e-2, tolerance=0, random_state=0
    ),
    "clusters": ProbabilisticClusterKernel(4, 3, reg_covar=1e-2, random_state=0),
}  # fmt: skip

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
centering = pytest.mark.parametrize("center", [True, False])
both_solvers = pytest.mark.parametrize("solver", ["dense", "lanczos"])


@every_kernel
@centering
@both_solvers
def test_scores_are_those_of_the_gram_matrix(solver, center, kernel):
    model = KernelPCA(3, kernel=kernel, center=center, solver=solver, random_state=0)
    scores = model.fit_transform(X)
    fitted = clone(kernel).fit(X)
    whole = KernelPCA(3, center=center).fit(X, gram=fitted.gram(X))
    scale = np.abs(scores).max()
    for actual, rows in ((scores, X), (model.transform(X), X), (model.transform(NEW), NEW)):
        expected = whole.transform(rows, gram=fitted.gram(rows, X))
        assert_same_up_to_sign(actual / scale, expected / scale, 2e-4)
    np.testing.assert_allclose(model.eigenvalues_, whole.eigenvalues_, rtol=1e-4)


@every_kernel
@centering
def test_all_components_give_the_gram_matrix_back(center, kernel):
    model = KernelPCA(kernel=kernel, center=center).fit(X)
    gram = model.kernel_.gram(X).astype(np.float64)
    expected = gram - center * (gram.mean(0) + gram.mean(0)[:, None] - gram.mean())
    actual = model.reconstruct_gram(X)
    np.testing.assert_allclose(actual, expected, atol=2e-5 * gram.max())


@every_kernel
def test_directions_are_orthonormal(kernel):
    V = KernelPCA(3, kernel=kernel).fit(X).coefficients_
    np.testing.assert_allclose(V.T @ V, np.eye(3), atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(150, 20), (40, 90)])
@both_solvers
def test_mean_far_from_the_origin_makes_no_components(solver, shape, dtype):
    n, d = shape
    rows = RNG.standard_normal((n, 4)) @ RNG.standard_normal((4, d)) + 100
    kernel = TransformerKernel(FunctionTransformer())
    model = KernelPCA(10, kernel=kernel, solver=solver, random_state=0)
    with pytest.warns(UserWarning, match="kernel of FunctionTransformer has only 4 positive"):
        model.fit(rows.astype(dtype))


class TestWhatIsKept:
    @pytest.mark.parametrize("name", ["single precision", "sparse", "forest", "clusters"])
    def test_training_rows_are_not_needed(self, name):
        many = RNG.uniform(0, 1, (1200, 4))
        kernel = KERNELS[name]
        sizes = [
            len(pickle.dumps(KernelPCA(2, kernel=kernel, random_state=0).fit(rows)))
            for rows in (many[:600], many)
        ]
        # The trees of a forest grow with the rows; one copy of the rows would be 38 kB.
        assert abs(sizes[1] - sizes[0]) < 8_000 if name != "forest" else sizes[1] < 1.2 * sizes[0]

    def test_only_the_directions_remain(self):
        model = KernelPCA(2, kernel=KERNELS["single precision"]).fit(X)
        assert model.X_fit_ is None
        assert model.coefficients_.shape == (3, 2)

    def test_kernels_without_features_keep_the_rows(self):
        model = KernelPCA(2).fit(X)
        np.testing.assert_array_equal(model.X_fit_, X)


class Counting(FeatureKernel):
    """Features of the rows, of which the Gram must not be asked for."""

    def features(self, X):
        return X

    def evaluate(self, X, Y):
        pytest.fail("the Gram matrix was asked for")

    on = diag = evaluate


@both_solvers
@centering
def test_gram_is_never_asked_for(center, solver):
    model = KernelPCA(2, kernel=Counting(), center=center, solver=solver).fit(X)
    assert model.transform(NEW).shape == (30, 2)


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
    @pytest.mark.parametrize("params", [{}, {"solver": "lanczos", "random_state": 0}])
    def test_of_features(self, params, form, center):
        rows = RNG.random((self.N, 6), dtype=np.float32)
        kernel = TransformerKernel(FunctionTransformer(lambda X: form(X)))
        model = KernelPCA(3, kernel=kernel, center=center, **params)
        assert self.peak(lambda: model.fit(rows).transform(rows)) < 5e6

    @both_solvers
    def test_of_many_sparse_features(self, solver):
        # Between features and their Gram there would be an array of features × rows: 320 MB.
        phi = sparse.random_array((800, 50_000), density=1e-4, rng=0, format="csr")
        kernel = TransformerKernel(FunctionTransformer(lambda X: phi[X[:, 0].astype(int)]))
        model = KernelPCA(3, kernel=kernel, solver=solver, random_state=0)
        assert self.peak(lambda: model.fit(np.arange(800.0)[:, None])) < 200e6

    def test_of_kernel_function(self):
        rows = RNG.random((self.N, 3), dtype=np.float32)
        largest = 0

        def kernel(A, B):
            nonlocal largest
            largest = max(largest, len(A) * len(B))
            return (A @ B.T) ** 2

        model = KernelPCA(2, kernel=FunctionKernel(kernel), random_state=0)
        assert self.peak(lambda: model.fit(rows)) < 32e6  # n² floats are 64 MB
        assert largest <= 1024**2

    def test_of_gram_matrix_in_single_precision(self):
        rows = RNG.random((self.N // 2, 3), dtype=np.float32)
        P = rows @ rows.T
        model = KernelPCA(2, random_state=0)
        # A copy in double precision would be 32 MB; chunks of 1024 rows of it are 16 MB.
        assert self.peak(lambda: model.fit(rows, gram=P)) < 29e6
