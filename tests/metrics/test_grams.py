"""Measures of Gram matrices against dense formulas; laws/test_metric_laws.py has their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.decomposition import KernelPCA

import dkae.alignment
from dkae import metrics
from dkae.kernels import PairwiseKernel
from tests.stores import Store, on_disk

N = 7

#: Positive semi-definite matrices that are not zero.
grams = (
    arrays(np.float64, (N, 3), elements=st.floats(-10, 10, width=16))
    .filter(lambda codes: np.abs(codes).max() > 1e-2)
    .map(lambda codes: codes @ codes.T)
)


@pytest.fixture(scope="module", autouse=True)
def _small_tiles():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkae.metrics.comparison.N_TILE_ROWS", 3)
        yield


def dense_loss(a, b):
    return np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b))


def random_codes(n=N, m=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m))


def random_gram(n=N, seed=0):
    codes = random_codes(n, seed=seed)
    return codes @ codes.T


@given(a=grams, b=grams)
def test_torch_gives_the_same_alignment_and_loss(a, b):
    C, P = torch.from_numpy(a), torch.from_numpy(b)
    assert metrics.kernel_alignment(a, b) == pytest.approx(dkae.alignment.alignment(C, P).item())
    expected = dkae.alignment.frobenius(C, P).item()
    assert metrics.alignment_loss(a, b) == pytest.approx(expected, abs=1e-12)


@given(a=grams, t=st.floats(1e-10, 1))
def test_small_losses_keep_their_digits(a, t):
    other = random_gram()
    D = other - np.vdot(other, a) / np.vdot(a, a) * a  # orthogonal to a
    b = a / np.linalg.norm(a) + t * D / np.linalg.norm(D)
    # The angle between them is atan(t). √(2 - 2A) could not tell losses below 1e-8 from zero.
    angle = math.atan(t)
    assert metrics.alignment_loss(a, b) == pytest.approx(2 * math.sin(angle / 2), rel=1e-4)
    assert metrics.relative_error(a, b) == pytest.approx(math.sin(angle), rel=1e-4)
    assert metrics.alignment_loss(a, a.copy()) == metrics.relative_error(a, a.copy()) == 0


def test_opposite_and_zero_matrices():
    zero, a = np.zeros((N, N)), random_gram()
    assert metrics.kernel_alignment(a, -a) == pytest.approx(-1)
    assert metrics.alignment_loss(a, -a) == pytest.approx(2)
    assert metrics.relative_error(a, -a) == 0  # the best factor is -1
    for b in (zero, a):
        assert metrics.kernel_alignment(zero, b) == metrics.centered_alignment(zero, b) == 0
    losses = [metrics.alignment_loss(*pair) for pair in ((zero, a), (a, zero), (zero, zero))]
    assert losses == [1, 1, 0]  # as in dkae.alignment
    assert metrics.relative_error(zero, a) == 1
    with pytest.raises(ValueError, match=r"b is zero everywhere, .* pass a matrix that is not"):
        metrics.relative_error(a, zero)


@pytest.mark.parametrize("offset", [0, 0.1, 1e3])
def test_matrices_that_are_zero_after_centring_are_aligned_with_nothing(offset):
    u = random_codes(m=1)[:, 0]
    assert metrics.centered_alignment(np.add.outer(u, u) + offset, random_gram()) == 0


@given(st.integers(0, 1000), arrays(np.float64, N, elements=st.floats(-10, 10)))
def test_centred_alignment_does_not_see_the_origin(seed, offsets):
    a, b = random_gram(seed=seed), random_gram(seed=seed + 1)
    moved = a + np.add.outer(offsets, offsets)
    expected = metrics.centered_alignment(a, b)
    assert metrics.centered_alignment(moved, b) == pytest.approx(expected, abs=1e-9)


@given(a=grams)
def test_the_floor_is_the_alignment_of_constant_codes(a):
    ones = np.ones((N, N))
    assert metrics.constant_alignment(a) == pytest.approx(metrics.kernel_alignment(ones, a))
    comparison = metrics.compare_grams(random_codes(), dkae.grams.as_gram(a, "a"))
    assert comparison.constant_alignment == pytest.approx(metrics.constant_alignment(a))
    assert metrics.constant_alignment(0 * a) == 0


def test_a_comparison_of_codes_has_the_factor_to_the_kernel():
    X = random_codes(20)
    prior = PairwiseKernel("linear").fit(X).on(X)
    comparison = metrics.compare_grams(X / 2, prior)
    assert comparison.scale == pytest.approx(4)
    assert comparison.alignment_loss == pytest.approx(0, abs=1e-6)
    zero = metrics.compare_grams(0 * X, prior)
    assert (zero.alignment, zero.alignment_loss, zero.scale) == (0, 1, 1)
    with pytest.raises(ValueError, match="codes has 3 rows, but prior has 20: both must belong"):
        metrics.compare_grams(X[:3], prior)


class TestIdealLoss:
    def test_dense_formula(self):
        y = np.array([0, 2, 2, 1, 0, 0, 1])
        expected = dense_loss(random_gram(), (y[:, None] == y).astype(float))
        for labels in (y, y.tolist(), np.array(list("abc"))[y]):
            for gram in (random_gram(), metrics.code_gram(random_codes())):
                assert metrics.ideal_loss(gram, labels) == pytest.approx(expected, abs=1e-6)

    @pytest.mark.parametrize("none", [-1, None, np.nan])
    def test_rows_without_a_label_are_like_no_other(self, none):
        y, gram = ["a", "b", "b", none, "a", none, "a"], random_gram()
        known = np.array([1, 1, 1, 0, 1, 0, 1])
        same = np.equal.outer(y, np.array(y, object)) * np.outer(known, known)
        assert metrics.ideal_loss(gram, y) == pytest.approx(dense_loss(gram, same.astype(float)))

    @pytest.mark.parametrize(
        ("y", "message"),
        [
            ([0, 1], "y has 2 labels, but gram has 7 rows: pass one label for each row"),
            (np.zeros((N, 1)), r"y has shape \(7, 1\): pass one label for each row"),
            ([], "y is empty: pass the label of at least one row"),
            ([-1] * N, "labels has no label but -1"),
        ],
    )
    def test_bad_labels(self, y, message):
        with pytest.raises(ValueError, match=message):
            metrics.ideal_loss(random_gram(), y)


class TestMeanOverBlocks:
    @pytest.mark.parametrize(("n", "k", "n_blocks"), [(20, 6, 3), (20, 20, 1), (20, 5, 4)])
    def test_blocks_are_disjoint_random_rows_and_the_rest_is_dropped(self, n, k, n_blocks):
        seen = []

        def spy(a, b):
            seen.append(a.diagonal())
            assert (a == b).all()
            return len(seen)

        a = np.diag(np.arange(n))
        assert metrics.mean_over_blocks(spy, a, a, k, 0) == (n_blocks + 1) / 2
        assert [len(rows) for rows in seen] == [k] * n_blocks
        rows = np.concatenate(seen)
        assert len(set(rows)) == n_blocks * k
        assert not (np.diff(rows) > 0).all()

    def test_seed_decides_and_objects_give_the_same_as_arrays(self):
        codes, P = random_codes(30), random_gram(30, seed=1)
        grams = codes @ codes.T, codes @ codes.T, metrics.code_gram(codes)
        a, b, c = (metrics.mean_over_blocks(metrics.alignment_loss, g, P, 7, 0) for g in grams)
        assert a == b == pytest.approx(c, abs=1e-6)
        assert a != metrics.mean_over_blocks(metrics.alignment_loss, grams[0], P, 7, 1)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((np.eye(N), np.eye(N)), "block_size=200 is more than the 7 rows .* at most 7"),
            ((np.eye(N), np.eye(N), 0), "block_size=0 must be a whole number of at least 1"),
            ((np.eye(N), np.eye(3), 2), "a has 7 rows, but b has 3"),
            ((np.full((N, N), np.nan), np.eye(N), 2), "a has NaN"),
        ],
    )
    def test_bad_input(self, arguments, message):
        with pytest.raises(ValueError, match=message):
            metrics.mean_over_blocks(metrics.kernel_alignment, *arguments)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_code_gram_is_read_by_blocks(dtype):
    codes = (10 * random_codes()).astype(dtype)
    gram, rows, columns = metrics.code_gram(codes), np.array([4, 0]), np.array([1, 4, 6])
    assert len(gram) == N
    np.testing.assert_allclose(gram.block(rows), codes[rows] @ codes[rows].T, rtol=1e-5)
    np.testing.assert_allclose(gram.block(rows, columns), codes[rows] @ codes[columns].T, rtol=1e-5)


class TestAlignmentLossCurve:
    @given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 1000))
    def test_every_part_of_the_codes_by_itself(self, n, m, seed):
        codes, P = random_codes(n, m, seed), random_gram(n, seed + 1)
        expected = [dense_loss(codes[:, :i] @ codes[:, :i].T, P) for i in range(1, m + 1)]
        curve = metrics.alignment_loss_curve(codes, P)
        np.testing.assert_allclose(curve, expected, atol=1e-7)

    @pytest.mark.parametrize("dtype", [np.float32, np.uint8])
    def test_codes_on_a_disk_are_read_by_parts(self, dtype, tmp_path):
        codes, P = (50 + 10 * random_codes(30, 5)).astype(dtype), random_gram(30, 1)
        curve = metrics.alignment_loss_curve(codes, P)
        loss = metrics.alignment_loss(metrics.code_gram(codes), P)
        assert curve[-1] == pytest.approx(loss, abs=1e-6)
        for source in (Store(codes), on_disk(codes, tmp_path / "codes.npy")):
            np.testing.assert_allclose(metrics.alignment_loss_curve(source, P), curve, rtol=1e-12)
            assert metrics.alignment_loss(metrics.code_gram(source), P) == pytest.approx(loss)

    def test_falls_to_zero_for_all_scores_of_kernel_pca(self):
        # Centred codes, so that the centring of kernel PCA changes nothing.
        codes = random_codes(20, 4) - random_codes(20, 4).mean(axis=0)
        scores = KernelPCA(4, kernel="precomputed").fit_transform(codes @ codes.T)
        curve = metrics.alignment_loss_curve(scores, codes @ codes.T)
        assert (np.diff(curve) < -1e-3).all()
        assert curve[-1] < 1e-7

    def test_zero_codes_and_zero_priors(self):
        codes = np.column_stack([np.zeros(N), random_codes(m=1)])
        curve = metrics.alignment_loss_curve(codes, codes @ codes.T)
        assert curve == pytest.approx([1, 0], abs=1e-7)
        assert metrics.alignment_loss_curve(codes, np.zeros((N, N))).tolist() == [0, 1]

    @pytest.mark.parametrize(
        ("codes", "prior", "message"),
        [
            (np.ones((3, 2)), np.eye(N), "codes has 3 rows, but prior has 7"),
            (np.ones(N), np.eye(N), "Expected 2D array"),
            (Store(np.ones((N, 2, 2))), np.eye(N), r"codes has shape \(7, 2, 2\): pass a matrix"),
            (np.full((N, 2), np.nan), np.eye(N), "Input codes contains NaN"),
            (Store(np.full((N, 2), np.nan)), np.eye(N), "row 0 of X contains NaN"),
            (np.full((N, 2), 1e16), np.eye(N), "codes has .*beyond 1e15"),
            (np.ones((N, 2)), np.ones((N, 2)), r"^prior has shape \(7, 2\)"),
            (np.ones((N, 2)), np.diag([np.nan] * N), "^prior has NaN or infinite values"),
        ],
    )
    def test_bad_input(self, codes, prior, message):
        with pytest.raises(ValueError, match=message):
            metrics.alignment_loss_curve(codes, prior)
