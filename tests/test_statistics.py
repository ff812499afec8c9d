"""Statistics of rows, as NumPy has them, whatever part of the rows is read at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from dkae import statistics
from dkae.statistics import Statistics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 5)).astype(np.float32)
SERIES = np.sin(np.linspace(0, 9, 50) + RNG.random((60, 1)) * 6) * (1 + RNG.random((60, 1)))


@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 100.0]),
    st.booleans(),
)
def test_statistics_are_numpy_s_in_chunks_of_any_size(n, d, chunk, gaps, shift, some):
    rng = np.random.default_rng(n + 100 * d)
    rows = (rng.normal(size=(n, d)) + shift).astype(np.float32)
    rows[rng.random((n, d)) < gaps] = np.nan
    rows[0] = shift  # a value of each feature at least
    ids = np.append(0, 1 + rng.permutation(n - 1)[: n // 2]) if some else np.arange(n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "N_CHUNK_NUMBERS", chunk)
        found = Statistics.of(rows, ids if some else None)
    exact = rows[ids].astype(np.float64)
    np.testing.assert_allclose(found.mean, np.nanmean(exact, axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.variance, np.nanvar(exact, axis=0), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(found.low, np.nanmin(exact, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(exact, axis=0))
    assert found.range == (np.nanmin(exact), np.nanmax(exact))
    assert found.n_rows == len(ids)


@pytest.mark.parametrize("i", [0, 3])
def test_a_chunk_without_any_value_does_not_hide_the_range(i, monkeypatch):
    monkeypatch.setattr(statistics, "N_CHUNK_NUMBERS", 1)
    rows = RNG.random((4, 3)).astype(np.float32)
    rows[i] = np.nan
    assert Statistics.of(rows).range == (np.nanmin(rows), np.nanmax(rows))


def test_statistics_of_images():
    images = RNG.random((30, 2, 4, 3)).astype(np.float32)
    found = Statistics.of(images)
    np.testing.assert_allclose(found.mean, images.mean(axis=0, dtype=np.float64), rtol=1e-9)
    np.testing.assert_allclose(found.variance, images.var(axis=0, dtype=np.float64), rtol=1e-9)


def test_parts_merge_to_the_whole_and_standardised_rows_have_mean_0_and_variance_1():
    whole = Statistics.of(X)
    merged = Statistics.of(X[:30]).merged(Statistics.of(X[30:]))
    for a, b in zip(merged, whole, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    center, scale = whole.units
    expected = Statistics.of((X - center) / scale)
    for a, b in zip(whole.standardized(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_shares_are_those_of_the_squared_distances():
    rows = X * np.float32([1, 3, 1, 2, 1])
    squares = np.square(rows[:, None] - rows[None]).sum(axis=(0, 1), dtype=np.float64)
    found = Statistics.of(rows)
    np.testing.assert_allclose(found.shares, squares / squares.sum(), rtol=1e-5)
    assert found.n_effective == pytest.approx(1 / np.square(squares / squares.sum()).sum())
    assert Statistics.of(np.ones((3, 2), np.float32)).n_effective == 2
    one = Statistics.of(np.float32([[0, 1], [1, 1]]))  # the other feature is constant
    assert one.n_effective == 1


@pytest.mark.parametrize(
    ("load", "is_shared"),
    [
        (lambda: load_digits().data, True),
        (lambda: SERIES, True),
        (lambda: np.ones((3, 2)), True),
        (lambda: load_breast_cancer().data, False),
        (lambda: load_wine().data, False),
    ],
    ids=["pixels", "series", "constants", "breast cancer", "wine"],
)
def test_pixels_and_series_share_a_unit_tables_do_not(load, is_shared):
    assert Statistics.of(load().astype(np.float32)).share_a_unit == is_shared
