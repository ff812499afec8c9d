"""Bad input: each message names the parameter, what came, what was expected."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import FunctionTransformer

from dkae.kernels import FunctionKernel, Precomputed, TransformerKernel
from dkae.spectral import KernelPCA, PreImage
from tests.ids import plain_id

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (60, 3))
P = rbf_kernel(X)
#: A third of the mass of the spectrum is negative; centred too, because the vectors sum to zero.
WAVES = np.cos(2 * np.pi * np.outer(np.arange(60), [1, 2, 3]) / 60) / np.sqrt(30)
INDEFINITE = (WAVES * [2.0, -1.5, 1.0]) @ WAVES.T

both_solvers = pytest.mark.parametrize("solver", ["dense", "lanczos"])
centering = pytest.mark.parametrize("center", [True, False])


def with_entry(matrix, value):
    matrix = matrix.copy()
    matrix[3, 2] = value
    return matrix


def features(function):
    return TransformerKernel(FunctionTransformer(function))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components=0 must be a whole number of at least 1"),
        ({"n_components": -3}, "n_components=-3 must be a whole number"),
        ({"n_components": 2.0}, r"n_components=2\.0 must be a whole number"),
        ({"n_components": "two"}, "n_components='two' must be a whole number"),
        ({"n_components": True}, "n_components=True must be a whole number"),
        ({"center": "no"}, "center='no' must be True or False"),
        ({"center": 1}, "center=1 must be True or False"),
        ({"solver": "lancsoz"}, "solver='lancsoz' is not known.*did you mean 'lanczos'"),
        ({"solver": None}, "solver=None is not known: expected one of 'auto', 'dense'"),
        ({"kernel": "rfb"}, "kernel='rfb' is not known.*did you mean 'rbf'"),
        ({"kernel": "precomputed"}, r"needs the Gram matrix: call fit\(X, gram=P\)"),
        ({"gamma": -1}, r"gamma=-1 must be a number in \(0, inf\)"),
        ({"kernel": "poly", "degree": -1}, "degree=-1 must be a number"),
        ({"kernel": features(np.log)}, "kernel of FunctionTransformer has NaN or infinite values"),
        ({"kernel": features(lambda X: X[:, :0])}, "FunctionTransformer has no features on these"),
        ({"kernel": features(lambda X: 0 * X)}, "it does not tell them apart"),
        ({"kernel": lambda A, B: A @ B.T * np.nan}, "<lambda> has NaN or infinite values"),
        ({"kernel": lambda A, B: A @ B[:5].T}, r"shape \(60, 5\), expected \(60, 60\)"),
        ({"kernel": lambda A, B: A[:, :1] - 2 * B[:, 0]}, "<lambda> is not symmetric"),
    ],
    ids=lambda value: plain_id(value) if isinstance(value, dict) else "",
)
@both_solvers
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_parameters(solver, params, message):
    rows = X.copy()
    rows[0, 0] = 0
    with pytest.raises(ValueError, match=message):
        KernelPCA(**({"solver": solver} | params)).fit(rows)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda P: P[:, :-1], r"gram has shape \(60, 59\): pass the square Gram matrix"),
        (lambda P: P[0], r"gram has shape \(60,\): pass the square Gram matrix"),
        (lambda P: P[:-1, :-1], r"gram has shape \(59, 59\), but X has 60 rows: pass that"),
        (lambda P: P + np.triu(P, 1), "gram is not symmetric.*differ from their transposes"),
        (lambda P: 0 * P, "gram is zero everywhere"),
        (lambda P: with_entry(P, np.nan), "gram has NaN or infinite values"),
        (lambda P: 1j * P, "gram has entries of type complex128"),
    ],
)
@both_solvers
def test_gram_matrices(solver, change, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(2, solver=solver).fit(X, gram=change(P))


@both_solvers
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", features(None)], ids=str)
def test_equal_rows_have_nothing_once_they_are_centred(kernel, solver):
    with pytest.raises(ValueError, match=r"no component .* it does not tell them apart"):
        KernelPCA(kernel=kernel, solver=solver).fit(np.full((30, 2), 0.1))


@both_solvers
def test_zero_kernel(solver):
    model = KernelPCA(kernel=lambda A, B: np.zeros((len(A), len(B))), center=False, solver=solver)
    with pytest.raises(ValueError, match=r"no component of positive .* it is zero, or negative"):
        model.fit(X)


@both_solvers
@centering
@pytest.mark.filterwarnings("ignore:gram is not positive semi-definite. 100 % of the mass")
def test_negative_kernel(center, solver):
    with pytest.raises(ValueError, match=r"gram has no component of positive .*, or negative"):
        KernelPCA(center=center, solver=solver).fit(X, gram=-np.eye(60))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: with_entry(X, np.nan), "contains NaN"),
        (lambda X: with_entry(X, np.inf), "contains infinity"),
        (lambda X: X[:1], "1 sample.*a minimum of 2 is required"),
        (lambda X: X[0], "Expected 2D array, got 1D array"),
        (lambda X: X[:, :0], r"0 feature\(s\)"),
        (lambda X: X - 1, "negative values"),
    ],
)
def test_training_rows(change, message):
    with pytest.raises(ValueError, match=message):
        KernelPCA(kernel="chi2").fit(change(X))


def test_one_feature_is_enough():
    assert KernelPCA(3).fit(X[:, :1]).transform(X[:5, :1]).shape == (5, 3)


@both_solvers
@centering
@pytest.mark.parametrize("kernel", ["linear", features(None)], ids=["gram", "features"])
def test_more_components_than_there_are(kernel, center, solver):
    model = KernelPCA(10, kernel=kernel, center=center, solver=solver)
    message = "n_components=10, but kernel .* has only 3 positive eigenvalues.*3 components are"
    with pytest.warns(UserWarning, match=message):
        model.fit(X)
    assert model.n_components_ == len(model.eigenvalues_) == 3
    assert model.transform(X).shape == (60, 3)
    assert len(model.get_feature_names_out()) == 3


def test_more_components_than_rows():
    with pytest.warns(UserWarning, match="n_components=99, but .* has only 59 positive"):
        KernelPCA(99, gamma=50.0).fit(X)


class TestIndefinite:
    @both_solvers
    @centering
    def test_negative_part_is_left_out_with_a_warning_that_says_how_much(self, center, solver):
        model = KernelPCA(center=center, solver=solver, random_state=0)
        message = (
            r"gram is not positive semi-definite: 33.3 % of the mass .* on 60 rows is negative"
        )
        with pytest.warns(UserWarning, match=message):
            scores = model.fit_transform(X, gram=INDEFINITE)
        assert model.eigenvalues_ == pytest.approx([2, 1])
        expected = (WAVES[:, [0, 2]] * [2.0, 1.0]) @ WAVES[:, [0, 2]].T
        np.testing.assert_allclose(scores @ scores.T, expected, atol=1e-8)

    def test_sample_of_many_rows_is_looked_at(self):
        rows = np.repeat(X, 20, axis=0)
        kernel = FunctionKernel(lambda A, B: rbf_kernel(A, B) - 1.5 * rbf_kernel(A, B, gamma=0.1))
        with pytest.warns(UserWarning, match="not positive semi-definite.* on 512 rows"):
            KernelPCA(2, kernel=kernel, random_state=0).fit(rows)


class TestNewRows:
    def test_before_fit(self):
        for method in ("transform", "inverse_transform", "reconstruct_gram"):
            with pytest.raises(NotFittedError, match="not fitted yet"):
                getattr(KernelPCA(preimage=PreImage()), method)(X)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            PreImage().predict(X)

    def test_after_a_first_fit_that_failed(self):
        model = KernelPCA(solver="x")
        with pytest.raises(ValueError, match="solver"):
            model.fit(X)
        with pytest.raises(NotFittedError, match="not fitted yet"):
            model.transform(X)

    def test_width_and_entries(self):
        model = KernelPCA(2).fit(X)
        with pytest.raises(ValueError, match="X has 2 features, but KernelPCA is expecting 3"):
            model.transform(X[:, :2])
        with pytest.raises(ValueError, match="contains NaN"):
            model.transform(with_entry(X, np.nan))

    def test_gram_of_the_wrong_shape(self):
        model = KernelPCA(2).fit(X, gram=P)
        for gram in (P[:5, :-1], P[:4], P[0]):
            with pytest.raises(ValueError, match=r"gram has shape .*, expected \(5, 60\): κ betw"):
                model.transform(X[:5], gram=gram)
        with pytest.raises(ValueError, match="gram has NaN or infinite"):
            model.transform(X, gram=with_entry(P, np.nan))

    def test_gram_is_missing(self):
        model = KernelPCA(2).fit(X, gram=P)
        for method in (model.transform, model.reconstruct_gram):
            with pytest.raises(ValueError, match=r"pass gram=, κ .* the 60 training rows, or fit"):
                method(X)

    def test_gram_where_there_are_features(self):
        # As many features as rows: the shape alone would not tell.
        model = KernelPCA(2, kernel=features(lambda X: np.tile(X, 20))).fit(X)
        with pytest.raises(ValueError, match=r"come from the features of kernel of Function.*with"):
            model.transform(X, gram=P)

    def test_gram_in_place_of_a_kernel_function(self):
        model = KernelPCA(2, gamma=1 / 3).fit(X)
        np.testing.assert_allclose(model.transform(X, gram=P), model.transform(X), atol=1e-10)

    @pytest.mark.filterwarnings("ignore:divide by zero")
    def test_features_that_are_not_finite(self):
        model = KernelPCA(2, kernel=features(np.log)).fit(X + 0.1)
        with pytest.raises(ValueError, match="FunctionTransformer has NaN or infinite values"):
            model.transform(0 * X)

    def test_row_that_a_precomputed_kernel_does_not_know(self):
        model = KernelPCA(2, kernel=Precomputed(P, rows=X)).fit(X)
        with pytest.raises(ValueError, match="row 0 of X is not among the 60 known rows"):
            model.transform(X + 1)

    @pytest.mark.parametrize("n_components", [0, 1.5])
    def test_number_of_components_of_a_gram(self, n_components):
        with pytest.raises(ValueError, match=f"n_components={n_components} must be a whole number"):
            KernelPCA(2).fit(X).reconstruct_gram(X, n_components=n_components)


class TestWayBack:
    def test_there_is_none_without_a_preimage(self):
        model = KernelPCA(2).fit(X)
        assert not hasattr(model, "inverse_transform")
        with pytest.raises(AttributeError) as error:
            model.inverse_transform(model.transform(X))
        assert "set preimage=PreImage() (from dkae.spectral)" in str(error.value.__cause__)

    def test_preimage_that_was_set_too_late(self):
        model = KernelPCA(2).fit(X).set_params(preimage=PreImage())
        with pytest.raises(ValueError, match="preimage was set after fit: call fit again"):
            model.inverse_transform(X[:, :2])

    @pytest.mark.parametrize("change", [lambda Z: Z[:, :1], lambda Z: Z[0], lambda Z: [Z, Z]])
    def test_scores_of_the_wrong_shape(self, change):
        model = KernelPCA(2, preimage=PreImage()).fit(X)
        with pytest.raises(ValueError, match=r"X has shape .*: pass scores of shape \(n_samp.*2\)"):
            model.inverse_transform(change(model.transform(X)))

    def test_scores_that_are_not_finite(self):
        with pytest.raises(ValueError, match="contains NaN"):
            KernelPCA(2, preimage=PreImage()).fit(X).inverse_transform([[1, np.nan]])


@pytest.mark.parametrize(
    ("params", "gram", "message"),
    [
        ({}, -P, "no component of positive eigenvalue"),
        ({}, P[:5, :5], "but X has 60 rows"),
        ({"solver": "x"}, None, "solver='x'"),
        ({"preimage": PreImage(alphas=())}, None, "alphas is empty"),
        ({"kernel": features(lambda X: X[:, :0])}, None, "has no features"),
    ],
    ids=["eigenvalues", "gram", "solver", "preimage", "features"],
)
@pytest.mark.filterwarnings("ignore:gram is not positive semi-definite")
def test_a_fit_that_fails_leaves_the_former_one(params, gram, message):
    model = KernelPCA(2, preimage=PreImage(), center=False).fit(X)
    before = model.get_params(deep=False)
    expected, state = model.transform(X), pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X[:, :2], gram=gram)
    model.set_params(**before)
    assert pickle.dumps(model) == state
    np.testing.assert_array_equal(model.transform(X), expected)


class TestWhereWarningsPoint:
    @pytest.mark.parametrize("solver", ["dense", "lanczos"])
    @pytest.mark.parametrize("method", ["fit", "fit_transform"])
    @pytest.mark.parametrize(
        ("params", "gram", "message"),
        [
            ({"kernel": "linear"}, None, "has only 3 positive"),
            ({"kernel": features(None)}, None, "has only 3 positive"),
            ({"center": False}, P - 0.9, "not positive semi-definite"),
        ],
        ids=["rank", "rank of features", "indefinite"],
    )
    def test_at_the_line_that_called(self, params, gram, message, method, solver):
        model = KernelPCA(5, solver=solver, **params)
        line = inspect.currentframe().f_lineno
        with pytest.warns(UserWarning, match=message) as caught:
            getattr(model, method)(X, gram=gram)
        assert {(w.filename, w.lineno) for w in caught} == {(__file__, line + 2)}
