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
from sklearn.utils.estimator_checks import parametrize_with_checks

from dkae.datasets import load_mnist20k
from dkae.kernels import ProbabilisticClusterKernel, cluster, ideal_kernel
from dkae.kernels import posteriors as screening
from dkae.kernels.mixtures import moments_of, posteriors
from dkae.kernels.posteriors import compress
from dkae.metrics import alignment_loss

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
    ideal = ideal_kernel(y).fit(X).on(X)
    assert alignment_loss(prior, ideal) == pytest.approx(1.01, abs=0.03)
    assert prior.rows.nbytes / len(X) < 2_500  # 20,000 rows stay well under 100 MB


def test_constant_features_cancel(X):
    constant = np.hstack([X, np.full((len(X), 7), 0.3, np.float32)])
    a, b = clone(SMALL).fit(X), clone(SMALL).fit(constant)
    np.testing.assert_array_equal(a.transform(X), b.transform(constant))
    # A new row may differ there; so do all components alike.
    other = constant.copy()
    other[:, -1] = 0.9
    np.testing.assert_allclose(b.transform(other), b.transform(constant))


def test_batches_and_chunks_make_no_difference(X, monkeypatch):
    whole = clone(SMALL).fit(X).transform(X)
    monkeypatch.setattr("dkae.kernels.mixtures.MAX_BATCH_BYTES", 30_000)
    monkeypatch.setattr(cluster, "N_CHUNK_ROWS", 33)
    np.testing.assert_allclose(clone(SMALL).fit(X).transform(X), whole, atol=1e-5)


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


def test_mixtures_see_only_the_rows_of_their_sample(X):
    kernel = clone(SMALL).set_params(max_fit_samples=50).fit(X)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    sample = np.random.default_rng(seed).choice(len(X), 50, replace=False)
    poisoned = X + 100
    poisoned[sample] = X[sample]
    other = clone(SMALL).set_params(max_fit_samples=50).fit(poisoned)
    np.testing.assert_array_equal(kernel.gram(X), other.gram(X))


def test_the_origin_does_not_matter():
    X = np.random.default_rng(0).standard_normal((60, 5))
    near, far = (clone(SMALL).fit(X + offset).transform(X + offset) for offset in (0, 1e6))
    np.testing.assert_allclose(far, near, atol=1e-4)


def test_rows_too_large_for_float32_arithmetic():
    X = np.random.default_rng(0).standard_normal((80, 10))
    kernel = clone(SMALL).fit(X)
    for call in (kernel.fit, kernel.transform, kernel.gram, lambda X: kernel.on(X).block([0])):
        with pytest.raises(ValueError, match=r"X has entries up to .*e\+20: .* scale X"):
            call(1e20 * X)
    phi = kernel.features(1e14 * X)
    np.testing.assert_allclose(kernel.gram(1e14 * X), phi @ phi.T, atol=1e-3)


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
        moments = moments_of(rows)
        exact = torch.addmm(screen.constants.unsqueeze(1), screen.slopes, moments.T)
        upper = torch.cat([part.flatten(0, 1) for _, part in screen._upper_bounds(moments)])
        error = (upper.double() - screen.errors - exact).abs()
        estimate = screen.errors + screen.relative_error * exact.abs()
        assert (error / estimate).max() < 1


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
        error = np.abs(compact.product(compact) - exact)
        assert error.max() <= tolerance + 1e-6
        dense = compact.transposed().T
        np.testing.assert_allclose(dense @ dense.T / 5, exact, atol=tolerance)

    def test_one_byte_for_each_row_and_mixture_where_posteriors_are_sharp(self):
        sizes = [3] * 50
        posteriors = torch.eye(3).repeat(40, 50).double()
        compact = compress(posteriors, sizes, 1e-4)
        assert compact.top.nbytes == 120 * 50
        assert compact.rest.nnz == 0


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

    def test_equal_rows_are_all_alike(self):
        X = np.ones((20, 3))
        gram = clone(SMALL).fit(X).gram(X)
        assert np.ptp(gram) < 1e-6
        assert gram[0, 0] > 0
