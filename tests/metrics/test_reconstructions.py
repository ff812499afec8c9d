"""How well rows are given back: closed forms and scikit-learn."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mean_squared_error

from dkae import metrics

images = arrays(np.float32, (5, 4), elements=st.floats(-100, 100, width=32))


@given(images, images, st.integers(1, 30))
def test_mean_over_all_entries(X, X_hat, n_entries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkae.metrics.codes.N_CHUNK_ENTRIES", n_entries)
        error = metrics.reconstruction_error(X, X_hat)
    assert error == pytest.approx(mean_squared_error(X.astype(float), X_hat.astype(float)))


def test_sums_are_in_float64_and_without_a_copy_of_the_data():
    X = np.zeros((2_000, 2_000), np.float32)
    X_hat = np.full_like(X, 0.1)
    assert metrics.reconstruction_error(X, X_hat) == pytest.approx(np.float32(0.1) ** 2.0)
    tracemalloc.start()
    metrics.reconstruction_error(X, X_hat)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.9 * X.nbytes  # a copy in float64 would be twice as large as X


def test_bytes_do_not_wrap():
    X, X_hat = np.array([[1, 255]], np.uint8), np.array([[3, 0]], np.uint8)
    assert metrics.reconstruction_error(X, X_hat) == (2**2 + 255**2) / 2


def test_rows_may_be_pictures():
    X = np.random.default_rng(0).standard_normal((6, 2, 4))
    assert metrics.reconstruction_error(X, 0 * X) == pytest.approx((X**2).mean())


@given(st.floats(1e-6, 1e3), st.floats(1e-3, 1e3))
def test_psnr_of_a_constant_error(error, peak):
    X = np.zeros((3, 2))
    expected = 20 * math.log10(peak / error)
    assert metrics.psnr(X, X + error, peak) == pytest.approx(expected, abs=1e-9)


def test_psnr_is_infinite_where_nothing_was_lost():
    assert metrics.psnr(np.ones((3, 2)), np.ones((3, 2))) == math.inf


@pytest.mark.parametrize("measure", [metrics.reconstruction_error, metrics.psnr])
@pytest.mark.parametrize(
    ("X", "X_hat", "message"),
    [
        (
            np.ones((3, 2)),
            np.ones((3, 1)),
            r"X has shape \(3, 2\), but X_hat .* \(3, 1\): pass",
        ),
        (np.ones((3, 2)), np.ones((2, 3)), r"X_hat has shape \(2, 3\)"),
        (np.ones((0, 2)), np.ones((0, 2)), r"X has shape \(0, 2\) and is empty"),
        (np.ones((3, 2)), 1.0, "X_hat is a single number: pass an array"),
        (np.array([[np.nan]]), np.ones((1, 1)), "X has NaN or infinite values: leave out"),
        (np.ones((1, 1)), np.array([[np.inf]]), "X_hat has NaN or infinite values"),
        (np.array([["a"]]), np.ones((1, 1)), "X has entries of type <U1: pass real numbers"),
    ],
)
def test_bad_input(measure, X, X_hat, message):
    with pytest.raises(ValueError, match=message):
        measure(X, X_hat)


@pytest.mark.parametrize("peak", [0, -1, math.nan, math.inf, "1", True])
def test_bad_peak(peak):
    with pytest.raises(ValueError, match=rf"peak={peak!r} must be a number in \(0, inf\)"):
        metrics.psnr(np.ones((3, 2)), np.ones((3, 2)), peak)
