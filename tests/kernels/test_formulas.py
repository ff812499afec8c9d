"""Kernels in torch: the values of scikit-learn and the kernels themselves, and true gradients."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from dkae.kernels import (
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    Precomputed,
    center,
    ideal_kernel,
    make_kernel,
    normalize,
)
from dkae.kernels.formulas import (
    FORMULAS,
    EvaluatedRows,
    Filled,
    FormulaRows,
    formula_params,
    has_formula,
    knows_new_rows,
    rows_module,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(25, 4)).astype(np.float32)
Y = RNG.normal(size=(11, 4)).astype(np.float32)
POSITIVE, POSITIVE_Y = np.abs(X), np.abs(Y)

every_formula = pytest.mark.parametrize("metric", FORMULAS)


def values(module, rows):
    with torch.no_grad():
        return module(torch.from_numpy(rows)).numpy()


# --- formulas ------------------------------------------------------------------------------------


@every_formula
@pytest.mark.parametrize("gamma", [None, "median", "scale", 0.3])
def test_a_formula_has_scikit_learn_s_values(metric, gamma):
    kernel = PairwiseKernel(metric, gamma=gamma, degree=2, coef0=0.7).fit(X)
    module = rows_module(kernel, Y)
    assert isinstance(module, FormulaRows)
    assert module.is_smooth
    given_params = {"gamma": kernel.gamma_, "degree": 2, "coef0": 0.7}
    expected = pairwise_kernels(
        X.astype(np.float64), Y.astype(np.float64), metric, filter_params=True, **given_params
    )
    np.testing.assert_allclose(values(module, X), expected, rtol=2e-5, atol=2e-5)


@every_formula
def test_a_formula_has_true_gradients(metric):
    params = {"gamma": 0.4, "degree": 3.0, "coef0": 0.5}
    formula, names = FORMULAS[metric]
    rows = torch.from_numpy(Y.astype(np.float64))
    x = torch.from_numpy(X[:5].astype(np.float64)).requires_grad_()
    chosen = {name: params[name] for name in names}
    assert torch.autograd.gradcheck(lambda x: formula(x, rows, **chosen), x)


@pytest.mark.parametrize("shift", [1e3, 1e4])
def test_rbf_far_from_the_origin_keeps_its_digits(shift):
    far, far_y = X + np.float32(shift), Y + np.float32(shift)
    kernel = PairwiseKernel("rbf", gamma=0.3).fit(far)
    exact = rbf_kernel(far.astype(np.float64), far_y.astype(np.float64), gamma=0.3)
    np.testing.assert_allclose(values(rows_module(kernel, far_y), far), exact, atol=1e-4)


def test_cosine_of_a_zero_row_is_zero():
    module = rows_module(PairwiseKernel("cosine").fit(X), Y)
    zero = np.zeros((1, 4), np.float32)
    np.testing.assert_array_equal(values(module, zero), np.zeros((1, len(Y))))


@given(st.integers(1, 12), st.integers(1, 9), st.integers(1, 6), st.sampled_from(sorted(FORMULAS)))
def test_formulas_of_any_size(n, m, d, metric):
    rng = np.random.default_rng(n + 100 * m + 10_000 * d)
    a, b = (rng.normal(size=(k, d)).astype(np.float32) for k in (n, m))
    kernel = PairwiseKernel(metric, gamma=0.5).fit(a)
    np.testing.assert_allclose(values(rows_module(kernel, b), a), kernel.gram(a, b), atol=1e-4)


def test_a_formula_has_the_parameters_of_the_fitted_kernel_alone():
    kernel = PairwiseKernel("poly", gamma=0.2, degree=2, coef0=3).fit(X)
    assert formula_params(kernel) == {"gamma": 0.2, "degree": 2.0, "coef0": 3.0}
    assert formula_params(PairwiseKernel("linear").fit(X)) == {}


def test_a_subclass_is_not_taken_for_its_parent():
    class Twice(PairwiseKernel):
        def evaluate(self, X, Y):
            return 2 * super().evaluate(X, Y)

    kernel = Twice("rbf").fit(X)
    assert not has_formula(kernel)
    np.testing.assert_allclose(
        values(rows_module(kernel, Y), X), 2 * PairwiseKernel("rbf").fit(X).gram(X, Y), atol=1e-6
    )


# --- kernels without a formula -------------------------------------------------------------------


def cubic(A, B):
    return (A @ B.T) ** 3


EVALUATED = {
    "chi2": PairwiseKernel("chi2"),
    "additive chi2": PairwiseKernel("additive_chi2"),
    "forest": make_kernel("forest", random_state=0, kernel_params={"n_estimators": 8}),
    "pck": make_kernel(
        "pck", random_state=0, kernel_params={"max_components": 3, "n_initializations": 2}
    ),
    "callable": FunctionKernel(cubic),
    "Gaussian process": GaussianProcessKernel(RBF(0.7)),
    "sum": 0.3 * PairwiseKernel("rbf") + PairwiseKernel("linear"),
    "product": PairwiseKernel("rbf") * PairwiseKernel("chi2"),
    "centred": center(PairwiseKernel("rbf")),
    "normalised": normalize(PairwiseKernel("poly")),
}


@pytest.mark.parametrize("name", EVALUATED)
def test_kernels_without_a_formula_are_evaluated(name):
    kernel = copy.copy(EVALUATED[name]).fit(POSITIVE)
    module = rows_module(kernel, POSITIVE_Y)
    assert isinstance(module, EvaluatedRows)
    assert not module.is_smooth
    mine = values(module, POSITIVE)
    assert mine.dtype == np.float32
    np.testing.assert_allclose(mine, kernel.gram(POSITIVE, POSITIVE_Y), rtol=1e-5, atol=1e-6)


def test_what_a_kernel_keeps_of_its_rows_is_computed_once():
    class Counting(PairwiseKernel):
        seen = 0

        def on(self, X):
            type(self).seen += len(X)
            return super().on(X)

    module = rows_module(Counting("rbf").fit(X), Y)
    for _ in range(3):
        values(module, X[:2])
    assert Counting.seen == len(Y) + 3 * 2


def test_a_copy_shares_the_kernel():
    class Large(PairwiseKernel):
        def __deepcopy__(self, memo):
            raise AssertionError("a fitted kernel must not be copied")

    module = rows_module(Large("rbf").fit(X), Y)
    twin = copy.deepcopy(torch.nn.Sequential(module))[0]
    assert twin.towards is module.towards
    np.testing.assert_array_equal(values(twin, X), values(module, X))


def test_kernels_of_known_rows_are_told_apart():
    assert knows_new_rows(PairwiseKernel("rbf"))
    assert not knows_new_rows(None)
    assert not knows_new_rows(Precomputed(np.eye(3)))
    assert not knows_new_rows(ideal_kernel([0, 1]))


# --- missing values ------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["rbf", "chi2"])
def test_kernels_that_do_not_take_missing_values_see_the_fill_on_both_sides(metric):
    fill = torch.arange(4, dtype=torch.float32)
    rows, others = POSITIVE.copy(), POSITIVE_Y.copy()
    rows[::2, 1] = np.nan
    others[1::3, 3] = np.nan
    kernel = PairwiseKernel(metric, gamma=0.3).fit(POSITIVE)
    module = rows_module(kernel, others, fill)
    assert isinstance(module, Filled)
    assert module.is_smooth == (metric == "rbf")
    filled = [np.where(np.isnan(a), fill.numpy(), a) for a in (rows, others)]
    np.testing.assert_allclose(values(module, rows), kernel.gram(*filled), rtol=1e-5, atol=1e-6)


def test_kernels_that_take_missing_values_see_them():
    def known_in_common(A, B):
        return (~np.isnan(A)).astype(float) @ (~np.isnan(B)).astype(float).T

    rows = X.copy()
    rows[0, :3] = np.nan
    module = rows_module(FunctionKernel(known_in_common), Y, torch.zeros(4))
    assert isinstance(module, EvaluatedRows)
    np.testing.assert_array_equal(values(module, rows)[0], np.ones(len(Y)))


def test_a_sum_takes_missing_values_only_if_all_its_parts_do():
    takes, does_not = FunctionKernel(cubic), PairwiseKernel("rbf")
    assert (takes + takes).takes_missing
    assert (takes * takes).takes_missing
    assert not (takes + does_not).takes_missing
    assert not (does_not * takes).takes_missing
    assert not normalize(does_not).takes_missing
    assert center(takes).takes_missing
