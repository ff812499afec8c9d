"""Kernels by name: scikit-learn's numbers to the last bit, γ, and their errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.metrics.pairwise import kernel_metrics, pairwise_kernels, rbf_kernel
from sklearn.svm import SVR

from dkae.kernels import PairwiseKernel, is_fitted
from dkae.kernels.formulas import FORMULAS, N_MEDIAN_ROWS, choose_gamma
from dkae.kernels.pairwise import pairwise_names

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (50, 4)).astype(np.float32)
Y = RNG.uniform(0, 1, (11, 4)).astype(np.float32)
GIVEN = {"gamma": 0.3, "degree": 2, "coef0": 0.7}

every_name = pytest.mark.parametrize("name", pairwise_names())


def made(name: str, **params) -> PairwiseKernel:
    """Return a kernel with those of the parameters that it has."""
    known = FORMULAS[name].params
    return PairwiseKernel(name, **{k: v for k, v in params.items() if k in known})


def test_they_are_all_of_scikit_learn():
    assert pairwise_names() == sorted(kernel_metrics())


@every_name
def test_the_numbers_are_those_of_scikit_learn_to_the_last_bit(name):
    for a, b in ((X, Y), (X.astype(np.float64), Y.astype(np.float64)), (X, None)):
        for params in (GIVEN, {"gamma": 0.3}):
            kernel = made(name, **params).fit(a)
            theirs = pairwise_kernels(a, b, name, filter_params=True, **params)
            np.testing.assert_array_equal(kernel.values(a, b), theirs)


def test_a_kernel_without_a_formula_in_torch():
    kernel = PairwiseKernel("chi2").fit(X)
    np.testing.assert_array_equal(kernel.towards(Y)(X), kernel.gram(X, Y))


def test_a_subclass_is_not_taken_for_its_parent():
    assert PairwiseKernel("rbf").has_formula

    class Twice(PairwiseKernel):
        def evaluate(self, X, Y):
            return 2 * super().evaluate(X, Y)

    twice, once = Twice("rbf").fit(X), PairwiseKernel("rbf").fit(X)
    assert not twice.has_formula
    np.testing.assert_array_equal(twice.towards(Y)(X), 2 * once.gram(X, Y))


@pytest.mark.parametrize("shift", [1e3, 1e4])
def test_rbf_far_from_the_origin_keeps_its_digits(shift):
    far, far_y = X + np.float32(shift), Y + np.float32(shift)
    exact = rbf_kernel(far.astype(np.float64), far_y.astype(np.float64), gamma=0.3)
    towards = PairwiseKernel("rbf", gamma=0.3).fit(far).towards(far_y)
    np.testing.assert_allclose(towards(far), exact, atol=1e-4)


def test_cosine_of_a_zero_row_is_zero():
    zero = np.zeros((1, 4), np.float32)
    assert not PairwiseKernel("cosine").fit(X).towards(Y)(zero).any()


@every_name
def test_images_are_vectors_and_rows_may_be_read_only(name):
    kernel, image = PairwiseKernel(name).fit(X), (-1, 2, 2)
    np.testing.assert_array_equal(kernel.gram(X.reshape(image)), kernel.gram(X))
    towards = kernel.towards(Y.reshape(image))
    np.testing.assert_array_equal(towards(X.reshape(image)), kernel.towards(Y)(X))
    rows = X.copy()
    rows.flags.writeable = False
    np.testing.assert_array_equal(PairwiseKernel(name).fit(rows).gram(rows), kernel.gram(X))


# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("rbf", {"degree": 2}, "degree=2 is not a parameter of kernel 'rbf', which has gamma: "),
        ("laplacian", {"coef0": 1}, "coef0=1 is not a parameter of kernel 'laplacian'"),
        ("sigmoid", {"degree": 3}, "degree=3 is not .* 'sigmoid', which has gamma and coef0: leav"),
        ("linear", {"gamma": 0.5}, "gamma=0.5 is not .* 'linear', which has no parameters: leave"),
        ("cosine", {"gamma": None}, "gamma=None is not a parameter of kernel 'cosine'"),
        ("rbf", {"gamma": "medain"}, r"gamma='medain' is not known.*did you mean 'median'"),
        ("rbf", {"gamma": 0}, r"gamma=0 must be a number in \(0, inf\)"),
    ],
)
def test_parameters_that_a_kernel_does_not_have_or_take(name, params, message):
    with pytest.raises(ValueError, match=message):
        PairwiseKernel(name, **params).fit(X)


def test_only_a_heuristic_needs_rows():
    for learning in (PairwiseKernel("rbf"), PairwiseKernel("rbf", gamma=None)):
        with pytest.raises(ValueError, match="X"):
            learning.fit(None)
        assert not is_fitted(learning)
    for kernel in (PairwiseKernel("rbf", gamma=0.1), PairwiseKernel("linear")):
        assert is_fitted(kernel.fit(None))


@pytest.mark.parametrize(
    "bad",
    [X[:, 0], X[:, :0], np.full(X.shape, "a"), X * np.float32(np.nan)],
    ids=["vector", "no columns", "text", "NaN"],
)
def test_rows_that_are_no_matrix_of_numbers(bad):
    fitted = PairwiseKernel("rbf").fit(X)
    for call in (fitted.gram, PairwiseKernel("rbf", gamma=None).fit, PairwiseKernel("rbf").fit):
        with pytest.raises(ValueError, match=r"\bX\b"):
            call(bad)
    with pytest.raises(ValueError, match=r"\brows\b"):
        fitted.towards(bad)
    with pytest.raises(ValueError, match=r"^X, a ndarray, cannot be used"):
        fitted.towards(X)(X[:, :2])


# --- γ -------------------------------------------------------------------------------------------

INNER = (X @ X.T)[np.triu_indices(len(X), 1)]
CHI2 = [((a - b) ** 2 / (a + b)).sum() for i, a in enumerate(X) for b in X[:i]]


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("rbf", 2 * pdist(X) ** 2),
        ("laplacian", pdist(X, "cityblock")),
        ("chi2", CHI2),
        *((name, INNER) for name in ("poly", "polynomial", "sigmoid")),
    ],
)
def test_the_median_heuristic_is_the_inverse_of_a_median(name, quantity):
    expected = 1 / np.median(quantity)
    assert choose_gamma("median", name, X) == pytest.approx(expected, rel=1e-4)


def test_other_choices():
    svm = SVR(gamma="scale").fit(X, X[:, 0])
    assert choose_gamma("scale", "rbf", X) == pytest.approx(svm._gamma, rel=1e-5)
    assert choose_gamma(None, "rbf", X) == 0.25
    assert choose_gamma(2, "rbf", X) == 2.0
    assert choose_gamma("median", "linear", X) is None


@pytest.mark.parametrize("heuristic", ["median", "scale"])
def test_equal_rows_give_a_usable_gamma(heuristic):
    for name in ("rbf", "laplacian", "poly"):
        assert choose_gamma(heuristic, name, np.zeros((10, 3), np.float32)) == 1


def test_duplicated_rows_do_not_draw_the_median_to_zero():
    mostly_equal = np.zeros((30, 2), np.float32)
    mostly_equal[0] = 3, 4
    assert choose_gamma("median", "rbf", mostly_equal) == pytest.approx(1 / (2 * 25))


def test_a_sample_is_enough_and_always_the_same():
    many = np.random.default_rng(1).standard_normal((5 * N_MEDIAN_ROWS, 3)).astype(np.float32)
    gamma = choose_gamma("median", "rbf", many)
    assert gamma == choose_gamma("median", "rbf", many)
    assert gamma == pytest.approx(1 / (2 * np.median(pdist(many)) ** 2), rel=0.05)


# --- numbers beyond float32 arithmetic -----------------------------------------------------------


@pytest.mark.parametrize("gamma", ["median", "scale", 0.3])
def test_rows_that_are_too_large(gamma):
    far = X.copy()
    far[3, 1] = -3e20
    with pytest.raises(ValueError, match=r"X has entries up to 3e\+20: numbers beyond 1e15 .*, sc"):
        PairwiseKernel("rbf", gamma=gamma).fit(far).gram(far)


@pytest.mark.parametrize("gamma", ["median", "scale"])
def test_a_heuristic_needs_rows_whose_squares_exist(gamma):
    with pytest.raises(ValueError, match=r"X has entries up to 1e-20: squares .*, scale X"):
        PairwiseKernel("rbf", gamma=gamma).fit(X / X.max() * np.float32(1e-20))


@pytest.mark.parametrize("name", sorted({*FORMULAS} - {"linear", "additive_chi2"}))
def test_all_other_rows_have_the_kernel_of_their_unit(name):
    expected = PairwiseKernel(name).fit(X).gram(X)
    for factor in (1e-14, 1e14):
        scaled = PairwiseKernel(name).fit(X * factor)
        np.testing.assert_allclose(scaled.gram(X * factor), expected, rtol=1e-4)
        rows = (X * factor).astype(np.float32)
        np.testing.assert_allclose(scaled.towards(rows)(rows), expected, rtol=1e-3, atol=1e-4)


def test_values_that_are_too_large():
    with pytest.raises(ValueError, match=r"kernel 'linear' has entries up to .*e\+20: .*, or div"):
        PairwiseKernel("linear").fit(X).gram(X * 1e10)
