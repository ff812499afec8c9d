"""γ by heuristics, against closed forms and scikit-learn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.spatial.distance import pdist
from sklearn.svm import SVR

from dkae.grams import sample_rows
from dkae.kernels.bandwidth import N_MEDIAN_ROWS, choose_gamma

X = np.random.default_rng(0).uniform(0, 1, (50, 4)).astype(np.float32)


def test_median_of_the_rbf_kernel_is_one_over_two_sigma_squared():
    sigma = np.median(pdist(X))
    assert choose_gamma("median", "rbf", X) == pytest.approx(1 / (2 * sigma**2), rel=1e-4)


def test_median_of_the_laplacian_kernel_is_that_of_the_l1_distance():
    expected = 1 / np.median(pdist(X, "cityblock"))
    assert choose_gamma("median", "laplacian", X) == pytest.approx(expected, rel=1e-4)


def test_median_of_the_chi2_kernel():
    pairs = [(a, b) for i, a in enumerate(X) for b in X[:i]]
    distances = [((a - b) ** 2 / (a + b)).sum() for a, b in pairs]
    assert choose_gamma("median", "chi2", X) == pytest.approx(1 / np.median(distances), rel=1e-4)


@pytest.mark.parametrize("name", ["poly", "polynomial", "sigmoid"])
def test_median_of_kernels_of_the_inner_product(name):
    products = (X @ X.T)[np.triu_indices(len(X), 1)]
    assert choose_gamma("median", name, X) == pytest.approx(1 / np.median(products), rel=1e-4)


def test_scale_is_that_of_the_support_vector_machine():
    svm = SVR(gamma="scale").fit(X, X[:, 0])
    assert choose_gamma("scale", "rbf", X) == pytest.approx(svm._gamma, rel=1e-5)


def test_none_is_one_over_the_number_of_features_and_a_number_is_itself():
    assert choose_gamma(None, "rbf", X) == 0.25
    assert choose_gamma(2, "rbf", X) == 2.0


def test_scale_makes_no_float64_copy_of_the_data():
    big = np.ones((20_000, 50), np.float32)
    tracemalloc.start()
    choose_gamma("scale", "rbf", big)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < big.nbytes / 2


@pytest.mark.parametrize("name", ["linear", "cosine", "additive_chi2"])
def test_kernels_without_gamma_have_none(name):
    assert choose_gamma("median", name, X) is None


@pytest.mark.parametrize("heuristic", ["median", "scale"])
@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
def test_equal_rows_give_a_usable_gamma(heuristic, name):
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


@pytest.mark.parametrize("gamma", [0, -1.0, float("nan"), float("inf"), True])
def test_impossible_numbers_are_refused(gamma):
    with pytest.raises(ValueError, match=r"gamma=.* must be a number in \(0, inf\)"):
        choose_gamma(gamma, "rbf", X)


def test_unknown_heuristic_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"gamma='medain' is not known.*did you mean 'median'"):
        choose_gamma("medain", "rbf", X)


def test_outliers_do_not_choose_the_unit_of_the_median():
    rows = np.random.default_rng(0).uniform(size=(60, 3)).astype(np.float32)
    expected = choose_gamma("median", "rbf", rows)
    rows[3] = 3e38
    assert choose_gamma("median", "rbf", rows) == pytest.approx(expected, rel=0.1)


def test_rows_too_far_apart_for_a_variance():
    rows = np.random.default_rng(0).uniform(size=(3000, 3)).astype(np.float32)
    outside = np.setdiff1d(np.arange(3000), sample_rows(3000, 1000))[0]
    rows[outside] = 3e38
    with pytest.raises(ValueError, match="X has rows so far apart that their distances leave"):
        choose_gamma("scale", "rbf", rows)
