"""Measures of reconstructions: closed forms and scikit-learn, in memory and on a disk."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mean_squared_error, r2_score

from dkae import RowArray, metrics
from tests.stores import Store, on_disk

MEASURES = [metrics.reconstruction_error, metrics.reconstruction_r2]
every_measure = pytest.mark.parametrize("measure", MEASURES, ids=lambda m: m.__name__)
images = arrays(np.float32, (5, 4), elements=st.floats(-100, 100, width=32))
RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 6)).astype(np.float32) * np.float32([3, 1, 1, 0.2, 1, 2]) + 3
X_HAT = X + RNG.standard_normal(X.shape).astype(np.float32) / 10


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("dkae.metrics.reconstructions.N_CHUNK_ENTRIES", 8 * X.shape[1])


# --- values --------------------------------------------------------------------------------------


@given(images, images, st.integers(1, 30))
def test_mean_over_all_entries(a, b, n_entries):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkae.metrics.reconstructions.N_CHUNK_ENTRIES", n_entries)
        error = metrics.reconstruction_error(a, b)
    assert error == pytest.approx(mean_squared_error(a.astype(float), b.astype(float)))


def test_r2_is_that_of_scikit_learn():
    expected = r2_score(X, X_HAT, multioutput="variance_weighted")
    assert metrics.reconstruction_r2(X, X_HAT) == pytest.approx(expected, abs=1e-6)
    in_units = metrics.reconstruction_r2(X, X_HAT, scale=X.std(axis=0))
    assert in_units == pytest.approx(r2_score(X, X_HAT), abs=1e-6)  # every feature counts alike
    assert abs(in_units - expected) > 1e-3
    assert metrics.reconstruction_r2(X, X_HAT, scale=7) == pytest.approx(expected, abs=1e-6)
    pictures = X.reshape(90, 2, 3), X_HAT.reshape(90, 2, 3)
    assert metrics.reconstruction_r2(*pictures) == pytest.approx(expected, abs=1e-6)


def test_r2_of_the_mean_is_zero_and_rows_without_variance_are_right_or_wrong():
    means = np.broadcast_to(X.mean(axis=0, dtype=float), X.shape)
    assert metrics.reconstruction_r2(X, means) == pytest.approx(0, abs=1e-12)
    same = np.full((4, 2), 0.1)
    found = metrics.reconstruction_r2(same, same), metrics.reconstruction_r2(same, same + 1)
    assert found == (1, 0)


def test_missing_values_do_not_count():
    rows, scale = X.astype(float), np.arange(1, 7)
    rows.flat[RNG.choice(rows.size, 60, replace=False)] = np.nan
    known = ~np.isnan(rows)
    squares = (rows - X_HAT)[known] ** 2
    assert metrics.reconstruction_error(rows, X_HAT) == pytest.approx(squares.mean())
    scores = [r2_score(x[k], y[k]) for x, y, k in zip(rows.T, X_HAT.T, known.T, strict=True)]
    sums = np.nansum((rows - np.nanmean(rows, axis=0)) ** 2, axis=0) / scale**2
    found = metrics.reconstruction_r2(rows, X_HAT, scale=scale)
    assert found == pytest.approx(np.average(scores, weights=sums), abs=1e-9)
    assert (np.isnan(rows) == ~known).all()  # rows stay as they are


def test_bytes_do_not_wrap():
    a, b = np.array([[1, 255]], np.uint8), np.array([[3, 0]], np.uint8)
    assert metrics.reconstruction_error(a, b) == (2**2 + 255**2) / 2


# --- rows on a disk, and many --------------------------------------------------------------------


@every_measure
def test_rows_on_a_disk_are_read_a_few_at_a_time(measure, tmp_path):
    stores, expected = (Store(X), Store(X_HAT)), measure(X, X_HAT)
    assert measure(*stores) == expected
    assert max(store.most for store in stores) == 8
    assert measure(on_disk(X, tmp_path / "a.npy"), RowArray(X_HAT)) == expected


def test_mapped_files_keep_their_precision(tmp_path):
    a = X.astype(np.float64)
    mapped = on_disk(a, tmp_path / "a.npy"), on_disk(a + 1e-9, tmp_path / "b.npy")
    assert metrics.reconstruction_error(*mapped) == pytest.approx(1e-18, rel=1e-5)


def test_sums_are_in_float64_and_without_a_copy_of_the_data(monkeypatch):
    monkeypatch.undo()
    many = np.zeros((2_000, 2_000), np.float32)
    decoded = np.full_like(many, 0.1)
    assert metrics.reconstruction_error(many, decoded) == pytest.approx(np.float32(0.1) ** 2.0)
    tracemalloc.start()
    metrics.reconstruction_error(many, decoded)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * many.nbytes  # a copy of both in float64 would be four times as large


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "decoded", "message"),
    [
        (X, X[:, :5], r"X has shape \(90, 6\), but X_hat has shape \(90, 5\): pass a rec"),
        (Store(X), Store(X[:89]), r"X has shape \(90, 6\), but X_hat has shape \(89, 6\)"),
        (X[:0], X[:0], r"X has shape \(0, 6\) and so no rows"),
        (X[:, :0], X[:, :0], r"X has shape \(90, 0\) and is empty"),
        (X, 1.0, "X_hat=1.0 has no rows: pass an array"),
        (X * np.nan, X, "X has only missing values: pass rows with at least one"),
        (X, X * np.nan, "X_hat has NaN values: only values of X may be missing"),
        (X * np.inf, X, "X has entries up to inf: .*beyond 1e15"),
        (X, np.full_like(X, 1e16), "X_hat has .*beyond 1e15"),
        (X.astype(str), X, "X has entries of type <U32: pass real numbers"),
    ],
)
def test_bad_rows(rows, decoded, message):
    for measure in MEASURES:
        with pytest.raises(ValueError, match=message):
            measure(rows, decoded)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        ([1, 2], r"scale has 2 numbers: pass a positive one for each feature of rows of shape"),
        ([1, 1, 1, 1, 1, 0], "scale has 6 numbers, not all positive"),
        ("a", "scale has entries of type"),
    ],
)
def test_bad_scale(scale, message):
    with pytest.raises(ValueError, match=message):
        metrics.reconstruction_r2(X, X_HAT, scale=scale)
