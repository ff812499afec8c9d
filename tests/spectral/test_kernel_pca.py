"""Kernel PCA against scikit-learn's, Eckart and Young, and the Nyström formula."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dkae.kernels import FunctionKernel, PairwiseKernel, Precomputed
from dkae.kernels.pairwise import pairwise_names
from dkae.spectral import KernelPCA
from tests.spectral.helpers import assert_same_up_to_sign, centered
from tests.stores import Store

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1, (150, 5))
NEW = RNG.uniform(0.1, 1, (30, 5))
PARAMS = {
    **{name: {"gamma": 0.5} for name in ("rbf", "laplacian", "chi2")},
    **{name: {"gamma": 0.5, "degree": 2, "coef0": 1} for name in ("poly", "polynomial")},
    # tanh is nearly positive semi-definite only where it is nearly linear.
    "sigmoid": {"gamma": 1e-3, "coef0": 0},
}
P = rbf_kernel(X)
#: A third of the mass of the spectrum is negative; centred too, because the vectors sum to zero.
WAVES = np.cos(2 * np.pi * np.outer(np.arange(60), [1, 2, 3]) / 60) / np.sqrt(30)
INDEFINITE = (WAVES * [2.0, -1.5, 1.0]) @ WAVES.T

both_solvers = pytest.mark.parametrize("solver", ["dense", "lanczos"])
centering = pytest.mark.parametrize("center", [True, False])


def pca(n_components=None, **params):
    """Return a model without a way back, which tests/laws has."""
    return KernelPCA(n_components, **({"decoder": None, "random_state": 0} | params))


def theirs(P, K, n_components=4):
    """Return scikit-learn's scores, in sample and out of sample."""
    model = decomposition.KernelPCA(n_components, kernel="precomputed", eigen_solver="dense").fit(P)
    return model.transform(P), model.transform(K)


# --- oracles -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pairwise_names())
def test_lanczos_finds_the_scores_of_scikit_learn(name):
    """The blocks that it reads are in float32; tests/oracles has "dense"."""
    params = PARAMS.get(name, {})
    P, K = (pairwise_kernels(rows, X, metric=name, **params) for rows in (X, NEW))
    known, new = theirs(P, K)
    model, scale = (
        pca(4, kernel=PairwiseKernel(name, **params), solver="lanczos"),
        np.abs(known).max(),
    )
    assert_same_up_to_sign(model.fit_transform(X) / scale, known / scale, 1e-4)
    assert_same_up_to_sign(model.transform(NEW) / scale, new / scale, 1e-4)


@both_solvers
@pytest.mark.parametrize("name", ["rbf", "poly", "additive_chi2"])
def test_a_gram_matrix_in_place_of_a_kernel(solver, name):
    P, K = (pairwise_kernels(rows, X, metric=name) for rows in (X, NEW))
    known, new = theirs(P, K)
    model = pca(4, solver=solver)
    assert_same_up_to_sign(model.fit_transform(X, gram=P), known, 1e-6)
    assert_same_up_to_sign(model.transform(NEW, gram=K), new, 1e-6)
    assert model.eigenvalues_ == pytest.approx(np.linalg.eigvalsh(centered(P))[:-5:-1])
    assert model.kernel_ is model.rows_ is None  # neither is kept
    out = np.empty((30, 4), np.float32)
    assert model.transform(NEW, gram=K, out=out) is out
    np.testing.assert_allclose(out, model.transform(NEW, gram=K), rtol=1e-5, atol=1e-6)


def test_auto_changes_the_solver_and_not_the_result():
    # 1100 rows are too many for the whole matrix, unless half of its components are wanted.
    rows = np.random.default_rng(1).uniform(size=(1100, 3)).astype(np.float32)
    known = theirs(*2 * [rbf_kernel(rows, gamma=1.0)], 5)[0]
    for solver in ("auto", "dense", "lanczos"):
        model = pca(5, gamma=1.0, solver=solver)
        assert_same_up_to_sign(model.fit_transform(rows), known, 1e-4)
        assert_same_up_to_sign(model.transform(rows), known, 1e-3)


@both_solvers
def test_small_eigenvalues_have_accurate_scores_too(solver):
    rows = np.random.default_rng(1).uniform(size=(400, 2))
    model = pca(30, gamma=4.0, solver=solver)
    known, again = model.fit_transform(rows), model.transform(rows)
    assert model.eigenvalues_[-1] < 1e-4 * model.eigenvalues_[0]
    error = np.linalg.norm(known - again, axis=0) / np.linalg.norm(known, axis=0)
    assert error.max() < 0.01


@centering
@pytest.mark.parametrize("n_components", [None, 149])
def test_all_components_give_the_matrix_back(n_components, center):
    P = rbf_kernel(X, gamma=2.0)
    model = pca(n_components, gamma=2.0, center=center).fit(X)
    np.testing.assert_allclose(model.gram(X), centered(P) if center else P, atol=2e-4)
    if not center and n_components is None:
        expected = rbf_kernel(X[:3], X[5:9], gamma=2.0)
        np.testing.assert_allclose(model.gram(X[:3], X[5:9]), expected, atol=1e-6)


# --- small, flat and far data --------------------------------------------------------------------


def test_equal_rows_and_one_feature():
    model = pca(center=False, kernel="linear").fit(np.full((9, 2), 0.1))
    np.testing.assert_allclose(model.transform([[0.1, 0.1], [1, 1]])[:, 0] ** 2, [0.02, 2])
    assert pca(3).fit(X[:, :1]).transform(X[:5, :1]).shape == (5, 3)


@both_solvers
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 100])
def test_a_mean_far_from_the_origin_makes_no_components(offset, dtype, solver):
    rows = (RNG.standard_normal((150, 4)) @ RNG.standard_normal((4, 9)) + offset).astype(dtype)
    with pytest.warns(UserWarning, match="kernel 'linear' has only 4 positive eigenvalues"):
        model = pca(9, kernel="linear", solver=solver).fit(rows)
    exact = np.linalg.svd(rows - rows.mean(0, dtype=np.float64))[1][:4] ** 2
    assert model.eigenvalues_ == pytest.approx(exact, rel=0.02)


@pytest.mark.filterwarnings("error")
def test_a_nearly_constant_kernel_is_not_called_indefinite():
    assert pca(gamma=1e-4).fit(X.astype(np.float32)).n_components_ < 20


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32])
@both_solvers
def test_a_gram_matrix_of_any_type(solver, dtype):
    P = (4 * (np.arange(150)[:, None] % 7 == np.arange(150) % 7)).astype(dtype)
    model = pca(5, solver=solver, center=False)
    scores = model.fit_transform(X, gram=P)
    exact = np.linalg.eigvalsh(P.astype(np.float64))[:-6:-1]
    assert model.eigenvalues_ == pytest.approx(exact)
    np.testing.assert_allclose(model.transform(X, gram=P), scores, atol=1e-4)


# --- indefinite, rank-deficient, unusable --------------------------------------------------------


@both_solvers
@centering
def test_the_negative_part_is_left_out_with_a_warning_that_says_how_much(center, solver):
    model = pca(center=center, solver=solver)
    message = r"gram is not positive semi-definite: 33.3 % of the mass .* on 60 rows is negative"
    with pytest.warns(UserWarning, match=message) as caught:
        scores = model.fit_transform(X[:60], gram=INDEFINITE)
    assert {w.filename for w in caught} == {__file__}
    assert model.eigenvalues_ == pytest.approx([2, 1])
    expected = (WAVES[:, [0, 2]] * [2.0, 1.0]) @ WAVES[:, [0, 2]].T
    np.testing.assert_allclose(scores @ scores.T, expected, atol=1e-8)


def test_of_many_rows_a_sample_is_looked_at():
    kernel = FunctionKernel(lambda A, B: rbf_kernel(A, B) - 1.5 * rbf_kernel(A, B, gamma=0.1))
    with pytest.warns(UserWarning, match="not positive semi-definite.* on 512 rows"):
        pca(2, kernel=kernel).fit(np.repeat(X, 10, axis=0))


@both_solvers
@centering
def test_more_components_than_there_are(center, solver):
    message = "n_components=10, but kernel .* has only 5 positive eigenvalues.*5 components are"
    with pytest.warns(UserWarning, match=message) as caught:
        model = pca(10, kernel="linear", center=center, solver=solver).fit(X)
    assert {w.filename for w in caught} == {__file__}
    assert model.n_components_ == len(model.eigenvalues_) == 5
    assert model.transform(X).shape == (150, 5)


@both_solvers
@pytest.mark.parametrize(
    ("params", "gram", "message"),
    [
        ({"n_components": 0}, None, "n_components=0 must be a whole number of at least 1"),
        ({"center": "no"}, None, "center='no' must be True or False"),
        ({"solver": "lancsoz"}, None, "solver='lancsoz' is not known.*did you mean 'lanczos'"),
        ({"decoder": "rigde"}, None, "decoder='rigde' is not known.*did you mean 'ridge'"),
        ({"kernel": "precomputed"}, None, r"needs the Gram matrix: call fit\(X, gram=P\)"),
        ({"kernel": lambda A, B: A[:, :1] - 2 * B[:, 0]}, None, "<lambda> is not symmetric"),
        ({"kernel": lambda A, B: np.ones((len(A), len(B)))}, None, "it does not tell them apart"),
        ({"center": False}, -P, "no component of positive eigenvalue .* it is zero, or negative"),
        ({}, P[:-1, :-1], r"gram has shape \(149, 149\), but X has 150 rows: pass that"),
        ({}, P + np.triu(P, 1), "gram is not symmetric.*differ from their transposes"),
        ({}, 1j * P, "gram has entries of type complex128"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.filterwarnings("ignore:gram is not positive semi-definite")
def test_what_is_refused(params, gram, message, solver):
    model = pca(2).fit(X)
    before, state = model.get_params(deep=False), pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.set_params(**({"solver": solver} | params)).fit(X, gram=gram)
    # A fit that fails leaves the former one.
    assert pickle.dumps(model.set_params(**before)) == state


# --- new rows, and the way back ------------------------------------------------------------------


def test_gram_matrices_of_new_rows():
    model = pca(2).fit(X, gram=P)
    with pytest.raises(ValueError, match=r"pass gram= .* the 150 training rows, or fit"):
        model.transform(NEW)
    for gram in (P[:30, :-1], P[:4], P[0]):
        with pytest.raises(ValueError, match=r"gram has shape .*, expected \(30, 150\): κ betw"):
            model.transform(NEW, gram=gram)
    with pytest.raises(ValueError, match="gram has NaN or infinite"):
        model.transform(NEW, gram=np.full((30, 150), np.nan))
    of_kernel = pca(2, gamma=0.2).fit(X)
    cross = rbf_kernel(NEW, X, gamma=0.2)
    np.testing.assert_allclose(
        of_kernel.transform(NEW, gram=cross), of_kernel.transform(NEW), atol=1e-10
    )


def test_a_precomputed_kernel_in_cross_validation():
    pipeline = make_pipeline(pca(5, kernel=Precomputed(P, rows=X)), LogisticRegression())
    search = GridSearchCV(pipeline, {"kernelpca__center": [True, False]}, cv=3)
    assert search.fit(X, X[:, 0] > 0.5).best_score_ > 0.8
    fitted = pca(2, kernel=Precomputed(P, rows=X)).fit(X)
    with pytest.raises(ValueError, match="row 0 of X is not among the 150 known rows"):
        fitted.transform(X + 1)


def test_the_model_holds_a_copy_of_its_rows(tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = pca(3).fit(mapped)
    assert type(model.rows_) is np.ndarray
    assert not np.shares_memory(model.rows_, mapped)
    np.testing.assert_array_equal(pca(3).fit(Store(mapped)).coefficients_, model.coefficients_)


def test_there_is_no_way_back_without_a_decoder():
    model = pca(2).fit(X)
    assert not hasattr(model, "inverse_transform")
    with pytest.raises(AttributeError) as error:
        model.inverse_transform(model.transform(X))
    assert "decoder=None learns no inverse: set decoder='kernel_ridge'" in str(
        error.value.__cause__
    )
    with pytest.raises(ValueError, match="decoder was set after fit: call fit again"):
        model.set_params(decoder="ridge").inverse_transform(X[:, :2])


def test_a_gram_matrix_of_anything_has_a_way_back():
    """Scikit-learn's KernelPCA refuses it."""
    P = rbf_kernel(np.exp(X))
    model = KernelPCA(60, random_state=0).fit(X, gram=P)
    back = model.inverse_transform(model.transform(X, gram=P))
    assert np.square(back - X).mean() < 0.1 * X.var()


def test_a_map_of_a_matrix_has_a_score():
    P = rbf_kernel(X)
    model, exact = pca(3).fit(X[:100], gram=P[:100, :100]), KernelPCA(3, gamma=1 / X.shape[1])
    new = {"gram": P[100:, 100:], "cross": P[100:, :100]}
    assert model.score(X[100:], **new) == pytest.approx(exact.fit(X[:100]).score(X[100:]), abs=1e-4)
    with pytest.raises(ValueError, match="or cross= to score, κ between these rows and the 100 tr"):
        model.score(X[100:], gram=new["gram"])
