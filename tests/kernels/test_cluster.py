"""The Probabilistic Cluster Kernel, by value on real digits; tests/oracles has its equation."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

from dkae.datasets import load_mnist20k
from dkae.kernels import ProbabilisticClusterKernel
from dkae.kernels.cluster import kernel as cluster
from dkae.kernels.cluster import screening
from dkae.kernels.cluster.compact import compress
from dkae.kernels.cluster.mixtures import moments_of, posteriors
from dkae.metrics import ideal_loss

SMALL = ProbabilisticClusterKernel(5, 3, random_state=0)


@pytest.fixture(scope="module", name="X")
def rows() -> np.ndarray:
    return (load_digits().data[:400] / 16).astype(np.float32)


@parametrize_with_checks([SMALL])
@pytest.mark.filterwarnings("ignore:max_components=5, but")
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_the_papers_kernel_of_real_digits():
    """870 mixtures, 13,920 columns, and L_c(P, K_I) on the test part: 1.0132 in the paper."""
    mnist = load_mnist20k(scaled=True)
    X, y = mnist.data[mnist.test], mnist.target[mnist.test]
    kernel = ProbabilisticClusterKernel(random_state=0).fit(mnist.data[mnist.train])
    assert kernel.n_mixtures_ == 870
    assert len(kernel.get_feature_names_out()) == kernel.transform(X[:2]).shape[1] == 13_920
    prior = kernel.on(X)
    assert ideal_loss(prior, y) == pytest.approx(1.01, abs=0.03)
    assert prior.rows.nbytes / len(X) < 2_500  # 20,000 rows stay well under 100 MB


@pytest.mark.parametrize("n_features", [3, 60])
def test_full_covariance_in_the_span_is_full_covariance(n_features):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, n_features)) + 4 * rng.integers(0, 2, (40, 1))
    X /= 5  # to the unit 1
    kernel = ProbabilisticClusterKernel(
        2, 2, covariance_type="full", reg_covar=0.1, random_state=0, tolerance=0
    ).fit(X)
    new = (rng.standard_normal((30, n_features)) + 2) / 5
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    sample = X[np.random.default_rng(seed).choice(40, 40, replace=False)]
    rank = min(39, n_features)
    variance = sample.var(axis=0).sum() / rank + 0.1
    for q in range(2):
        rows = np.random.default_rng([seed, q, 2]).choice(40, 2, replace=False)
        theirs = GaussianMixture(
            2, covariance_type="full", reg_covar=0.1, means_init=sample[rows],
            weights_init=[0.5, 0.5], precisions_init=[np.eye(n_features) / variance] * 2,
            init_params="random_from_data", random_state=0,
        ).fit(sample)  # fmt: skip
        ours = kernel.transform(new)[:, 2 * q : 2 * q + 2]
        np.testing.assert_allclose(ours, theirs.predict_proba(new), atol=1e-5)


def test_constant_features_cancel(X):
    constant = np.hstack([X, np.full((len(X), 7), 0.3, np.float32)])
    a, b = clone(SMALL).fit(X), clone(SMALL).fit(constant)
    np.testing.assert_array_equal(a.transform(X), b.transform(constant))
    # A new row may differ there; so do all components alike.
    other = constant.copy()
    other[:, -1] = 0.9
    np.testing.assert_allclose(b.transform(other), b.transform(constant))


@pytest.mark.parametrize("covariance_type", ["diag", "spherical", "full"])
def test_batches_and_chunks_make_no_difference(X, covariance_type, monkeypatch):
    kernel = clone(SMALL).set_params(covariance_type=covariance_type)
    whole = clone(kernel).fit(X).transform(X)
    monkeypatch.setattr("dkae.kernels.cluster.mixtures.MAX_BATCH_BYTES", 30_000)
    monkeypatch.setattr(cluster, "N_CHUNK_ROWS", 33)
    np.testing.assert_allclose(clone(kernel).fit(X).transform(X), whole, atol=1e-5)


def test_threads_make_no_difference(X, monkeypatch):
    monkeypatch.setattr(cluster, "N_CHUNK_ROWS", 33)
    exact = []
    monkeypatch.setattr(
        screening.Screening,
        "_exact",
        lambda *args, old=screening.Screening._exact: exact.append(1) or old(*args),
    )
    before, filters, grams = torch.get_num_threads(), list(warnings.filters), []
    for n_threads in (1, 4):
        torch.set_num_threads(n_threads)
        try:
            kernel = clone(SMALL).fit(X)
            grams += [kernel.gram(X) for _ in range(5)]
        finally:
            torch.set_num_threads(before)
    for gram in grams[1:]:
        np.testing.assert_array_equal(gram, grams[0])
    assert exact  # not the dense form that is taken if much is in doubt
    assert warnings.filters == filters


def test_the_seed_and_the_first_means_matter(X):
    a, b, c = (
        clone(SMALL).set_params(**params).fit(X).gram(X)
        for params in ({}, {"random_state": 1}, {"init": "k-means++"})
    )
    assert not np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_mixtures_see_only_the_rows_of_their_sample(X):
    kernel = clone(SMALL).set_params(max_fit_samples=50).fit(X)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    sample = np.random.default_rng(seed).choice(len(X), 50, replace=False)
    poisoned = X + 100
    poisoned[sample] = X[sample]
    other = clone(SMALL).set_params(max_fit_samples=50).fit(poisoned)
    np.testing.assert_array_equal(kernel.gram(X), other.gram(X))


@pytest.mark.parametrize("covariance_type", ["diag", "spherical", "full"])
def test_the_origin_does_not_matter(covariance_type):
    X = np.random.default_rng(0).standard_normal((60, 5))
    kernel = clone(SMALL).set_params(covariance_type=covariance_type, tolerance=0)
    near, far = (clone(kernel).fit(X + offset).gram(X + offset) for offset in (0, 1e6))
    np.testing.assert_allclose(far, near, atol=1e-4)


def test_rows_too_large_for_float32_arithmetic():
    X = np.random.default_rng(0).standard_normal((80, 10))
    kernel = clone(SMALL).fit(X)
    for call in (kernel.fit, kernel.transform, kernel.gram, lambda X: kernel.on(X).block([0])):
        with pytest.raises(ValueError, match=r"X has entries up to .*e\+20: .* scale X"):
            call(1e20 * X)
    compact, exact = (clone(SMALL).set_params(tolerance=t).fit(X).gram(1e14 * X) for t in (1e-3, 0))
    np.testing.assert_allclose(compact, exact, atol=1e-3)


def test_reg_covar_is_itself_for_pixels_in_the_unit_interval(X):
    mnist = load_mnist20k(scaled=True)
    for rows in (X, mnist.data[mnist.train], mnist.data[mnist.test]):
        few = ProbabilisticClusterKernel(3, 1, random_state=0).fit(rows)
        assert float(few.mixtures_.covariances.min()) == pytest.approx(1e-6, rel=1e-3)


class TestScreening:
    """float32 finds who matters, float64 computes those: as good as float64 for all."""

    @pytest.fixture
    def mnist(self):
        data = load_mnist20k(scaled=True).data[:3000]
        kernel = ProbabilisticClusterKernel(30, 3, random_state=0).fit(data)
        rows = kernel._reduce(data[1000:1300])
        return kernel.mixtures_, rows, posteriors(rows, kernel.mixtures_)

    @pytest.fixture
    def soft(self, monkeypatch):
        """Return mixtures with many rivals, and forbid the way out to dense posteriors."""
        monkeypatch.setattr(screening, "MAX_DOUBTFUL_SHARE", 1.0)
        X = np.random.default_rng(0).standard_normal((200, 3))
        kernel = ProbabilisticClusterKernel(6, 3, random_state=0).fit(X)
        rows = kernel._reduce(X)
        return kernel.mixtures_, rows, posteriors(rows, kernel.mixtures_)

    @pytest.mark.parametrize("case", ["mnist", "soft"])
    @pytest.mark.parametrize("epsilon", [1e-2, 2.5e-4, 1e-8])
    def test_it_is_the_compact_form_of_exact_posteriors(self, case, epsilon, request):
        mixtures, rows, exact = request.getfixturevalue(case)
        ours = screening.Screening(mixtures, epsilon).compress(rows)
        theirs = compress(exact, mixtures.sizes.tolist(), epsilon)
        np.testing.assert_array_equal(ours.top, theirs.top)
        np.testing.assert_allclose(
            ours.transposed().T, theirs.transposed().T, atol=2e-5 + epsilon / 2
        )
        error = np.abs(ours.transposed().T - exact.numpy())
        assert error.max() <= epsilon + 1e-6

    def test_autocast_of_the_caller_changes_nothing(self, mnist):
        mixtures, rows, _ = mnist
        expected = screening.Screening(mixtures, 1e-3).compress(rows)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            ours = screening.Screening(mixtures, 1e-3).compress(rows)
        np.testing.assert_array_equal(ours.transposed().T, expected.transposed().T)

    def test_error_of_float32_is_within_its_estimate(self, mnist):
        mixtures, rows, _ = mnist
        screen = screening.Screening(mixtures, 1e-3)
        moments = moments_of(rows, mixtures)
        exact = torch.addmm(screen.constants.unsqueeze(1), screen.slopes, moments.T)
        upper = torch.cat([part.flatten(0, 1) for _, part in screen._upper_bounds(moments)])
        error = (upper.double() - screen.errors - exact).abs()
        estimate = screen.errors + screen.relative_error * exact.abs()
        assert (error / estimate).max() < 1


class TestNormalisation:
    def test_max_is_one_at_the_largest_fitted_row(self, X):
        kernel = clone(SMALL).set_params(normalize="max", max_fit_samples=400).fit(X)
        assert kernel.diag(X).max() == pytest.approx(1, abs=1e-3)

    @pytest.mark.parametrize("tolerance", [0, 1e-3, 0.1])
    def test_cosine_has_ones_on_the_diagonal(self, X, tolerance):
        kernel = clone(SMALL).set_params(normalize="cosine", tolerance=tolerance).fit(X)
        np.testing.assert_allclose(kernel.diag(X), 1, atol=1e-5)

    def test_max_needs_a_fit_of_its_own(self, X):
        kernel = clone(SMALL).fit(X).set_params(normalize="max")
        with pytest.raises(ValueError, match="normalize='max' was set after fit"):
            kernel.gram(X)


class TestCompactForm:
    @settings(deadline=None)
    @given(
        seed=st.integers(0, 1000),
        sharpness=st.sampled_from([0.5, 5.0, 30.0]),
        tolerance=st.sampled_from([1e-1, 1e-2, 1e-3, 1e-4]),
    )
    def test_error_of_the_kernel_is_within_the_bound(self, seed, sharpness, tolerance):
        sizes = [2, 2, 3, 5, 9]
        rng = np.random.default_rng(seed)
        parts = [torch.from_numpy(sharpness * rng.standard_normal((12, g))) for g in sizes]
        posteriors = torch.cat([part.softmax(dim=1) for part in parts], dim=1)
        compact = compress(posteriors, sizes, tolerance / 4)
        exact = (posteriors @ posteriors.T).numpy() / len(sizes)
        error = np.abs(compact.product(compact) / len(sizes) - exact)
        assert error.max() <= tolerance + 1e-6
        dense = compact.transposed().T
        np.testing.assert_allclose(dense @ dense.T / 5, exact, atol=tolerance)
        np.testing.assert_allclose(compact.squared_norms(), (dense**2).sum(axis=1), rtol=1e-5)

    def test_one_byte_for_each_row_and_mixture_where_posteriors_are_sharp(self):
        sizes = [3] * 50
        posteriors = torch.eye(3).repeat(40, 50).double()
        assert compress(posteriors, sizes, 1e-4).nbytes == 120 * 50 + 4 * 121 + 4 * 120


class TestBadInput:
    def test_more_components_than_rows(self, X):
        with pytest.warns(UserWarning, match=r"more than 3 components are left out"):
            kernel = clone(SMALL).fit(X[:3])
        assert kernel.n_mixtures_ <= 3 * 2

    def test_no_mixture_converges(self, X):
        with pytest.raises(ValueError, match="none of the 12 mixtures converged: raise max_iter=1"):
            clone(SMALL).set_params(max_iter=1).fit(X)

    def test_many_mixtures_are_lost(self, X):
        with pytest.warns(UserWarning, match=r"\d+ of 12 mixtures collapsed or did not converge"):
            kernel = clone(SMALL).set_params(max_iter=4, tol=0.5).fit(X)
        assert 0 < kernel.n_mixtures_ < 12
        assert kernel.gram(X).max() <= 1 + 1e-5

    @pytest.mark.parametrize("init", ["random", "k-means++"])
    @pytest.mark.parametrize("covariance_type", ["diag", "full"])
    def test_equal_rows_are_all_alike(self, covariance_type, init):
        X = np.ones((20, 3))
        kernel = clone(SMALL).set_params(covariance_type=covariance_type, init=init).fit(X)
        gram = kernel.gram(X)
        assert np.ptp(gram) < 1e-6
        assert gram[0, 0] > 0
