"""Measures of Gram matrices against dense formulas; laws/test_metric_laws.py has their laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

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
        patch.setattr("dkae.metrics.grams.N_TILE_ROWS", 3)
        yield


def dense_loss(a, b):
    return np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b))


def random_codes(n=N, m=3, seed=0):
    return np.random.default_rng(seed).standard_normal((n, m))


def random_gram(n=N, seed=0):
    codes = random_codes(n, seed=seed)
    return codes @ codes.T


@given(a=grams, t=st.floats(1e-10, 1))
def test_small_losses_keep_their_digits(a, t):
    other = random_gram()
    D = other - np.vdot(other, a) / np.vdot(a, a) * a  # orthogonal to a
    b = a / np.linalg.norm(a) + t * D / np.linalg.norm(D)
    # The angle between them is atan(t). √(2 - 2A) could not tell losses below 1e-8 from zero.
    angle = math.atan(t)
    assert metrics.alignment_loss(a, b) == pytest.approx(2 * math.sin(angle / 2), rel=1e-4)
    assert metrics.alignment_loss(a, a.copy()) == 0


def test_opposite_and_zero_matrices():
    zero, a = np.zeros((N, N)), random_gram()
    assert metrics.kernel_alignment(a, -a) == pytest.approx(-1)
    assert metrics.alignment_loss(a, -a) == pytest.approx(2)
    for b in (zero, a):
        assert metrics.kernel_alignment(zero, b) == metrics.centered_alignment(zero, b) == 0
    losses = [metrics.alignment_loss(*pair) for pair in ((zero, a), (a, zero), (zero, zero))]
    assert losses == [1, 1, 0]  # as in dkae.alignment


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
    comparison = metrics.compare_grams(random_gram(), a)
    assert comparison.constant_alignment == pytest.approx(metrics.constant_alignment(a))
    assert metrics.constant_alignment(0 * a) == 0


def test_a_comparison_of_codes_has_the_factor_to_the_kernel():
    X = random_codes(20)
    prior = PairwiseKernel("linear").fit(X).on(X)
    comparison = metrics.compare_grams(metrics.code_gram(X / 2), prior)
    assert comparison.scale == pytest.approx(4)
    assert comparison.alignment_loss == pytest.approx(0, abs=1e-6)
    zero = metrics.compare_grams(metrics.code_gram(0 * X), prior)
    assert (zero.alignment, zero.alignment_loss, zero.scale) == (0, 1, 1)
    with pytest.raises(ValueError, match="codes has 3 rows, but prior has 20: both must belong"):
        metrics.compare_grams(metrics.code_gram(X[:3]), prior, ("codes", "prior"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_code_gram_is_read_by_blocks(dtype):
    codes = (10 * random_codes()).astype(dtype)
    gram, rows, columns = metrics.code_gram(codes), np.array([4, 0]), np.array([1, 4, 6])
    assert len(gram) == N
    np.testing.assert_allclose(gram.block(rows), codes[rows] @ codes[rows].T, rtol=1e-5)
    np.testing.assert_allclose(gram.block(rows, columns), codes[rows] @ codes[columns].T, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_codes_on_a_disk_are_read_by_parts(dtype, tmp_path):
    codes, P = (50 + 10 * random_codes(30, 5)).astype(dtype), random_gram(30, 1)
    loss = metrics.alignment_loss(metrics.code_gram(codes), P)
    for source in (Store(codes), on_disk(codes, tmp_path / "codes.npy")):
        assert metrics.alignment_loss(metrics.code_gram(source), P) == pytest.approx(loss)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        (np.ones(N), "Expected 2D array"),
        (Store(np.ones((N, 2, 2))), r"codes has shape \(7, 2, 2\): features are a matrix"),
        (np.full((N, 2), np.nan), "Input codes contains NaN"),
        (Store(np.full((N, 2), np.nan)), "row 0 of X contains NaN"),
        (np.full((N, 2), 1e16), "codes has .*beyond 1e15"),
    ],
)
def test_bad_codes(codes, message):
    with pytest.raises(ValueError, match=message):
        metrics.alignment_loss(metrics.code_gram(codes), np.eye(N))
