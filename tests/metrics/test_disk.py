"""Measures of rows and codes on a disk: the same numbers as in memory, of a few rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

from dkae import metrics
from dkae.rows import RowArray
from tests.stores import Store, on_disk

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 6)).astype(np.float32) + 3
X_HAT = X + RNG.standard_normal(X.shape).astype(np.float32) / 10
CODES = RNG.standard_normal((90, 4)).astype(np.float32)
P = (CODES @ CODES.T + X @ X.T / 100).astype(np.float64)
N_CHUNK = 8

RECONSTRUCTIONS = [metrics.reconstruction_error, metrics.reconstruction_r2, metrics.psnr]
every_reconstruction = pytest.mark.parametrize("measure", RECONSTRUCTIONS)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("dkae.metrics.codes.N_CHUNK_ENTRIES", N_CHUNK * X.shape[1])
    monkeypatch.setattr("dkae.metrics.codes.N_CHUNK_ROWS", N_CHUNK)
    monkeypatch.setattr("dkae.metrics.comparison.N_TILE_ROWS", N_CHUNK)
    monkeypatch.setattr("dkae.kernels.features.N_CHUNK_NUMBERS", N_CHUNK * CODES.shape[1])
    monkeypatch.setattr(RowArray, "__array__", Store.__array__)


@every_reconstruction
@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25])
def test_reconstructions(measure, scale, tmp_path):
    a, b = (np.float32(scale) * values for values in (X, X_HAT))
    stores = Store(a), Store(b)
    expected = measure(a, b)
    assert measure(*stores) == expected
    assert max(store.most for store in stores) == N_CHUNK
    assert measure(on_disk(a, tmp_path / "a.npy"), RowArray(b)) == expected


@every_reconstruction
def test_mapped_files_keep_their_precision(measure, tmp_path):
    a = X.astype(np.float64)
    b = a + 1e-9  # less than float32 can tell
    mapped = on_disk(a, tmp_path / "a.npy"), on_disk(b, tmp_path / "b.npy")
    assert measure(*mapped) == measure(a, b)
    assert metrics.reconstruction_error(*mapped) == pytest.approx(1e-18, rel=1e-5)


@every_reconstruction
def test_bytes(measure, tmp_path):
    a, b = (np.clip(40 * values, 0, 255).astype(np.uint8) for values in (X, X_HAT))
    expected = measure(a, b)
    assert measure(Store(a), Store(b)) == expected
    assert measure(on_disk(a, tmp_path / "a.npy"), b) == expected


def test_pictures():
    pictures = X.reshape(90, 2, 3)
    expected = metrics.reconstruction_r2(X, X_HAT)
    found = metrics.reconstruction_r2(Store(pictures), Store(X_HAT.reshape(90, 2, 3)))
    assert found == pytest.approx(expected, rel=1e-12)


def test_reconstructions_that_cannot_be_measured():
    bad = X_HAT.copy()
    bad[70, 1] = np.inf
    message = r"X_hat, a RowArray, cannot be used: row 70 of X contains an infinite value"
    with pytest.raises(ValueError, match=message):
        metrics.reconstruction_error(Store(X), Store(bad))
    with pytest.raises(ValueError, match=r"X has shape \(90, 6\), but X_hat has shape \(89, 6\)"):
        metrics.reconstruction_error(Store(X), Store(X[:89]))
    with pytest.raises(ValueError, match=r"X has shape \(0, 6\) and is empty"):
        metrics.reconstruction_error(Store(X[:0]), Store(X[:0]))


@pytest.mark.parametrize("scale", [1.0, 1e-25, 1e25])
def test_codes(scale, tmp_path):
    codes = np.float32(scale) * CODES
    curve = metrics.alignment_loss_curve(codes, P)
    loss = metrics.alignment_loss(metrics.code_gram(codes), P)
    store = Store(codes)
    for source in (store, RowArray(codes), on_disk(codes, tmp_path / "codes.npy")):
        np.testing.assert_array_equal(metrics.alignment_loss_curve(source, P), curve)
        assert metrics.alignment_loss(metrics.code_gram(source), P) == loss
    assert store.most == N_CHUNK * X.shape[1] // CODES.shape[1]


def test_codes_of_bytes(tmp_path):
    codes = RNG.integers(0, 255, CODES.shape).astype(np.uint8)
    expected = metrics.alignment_loss_curve(codes, P)
    for source in (Store(codes), on_disk(codes, tmp_path / "codes.npy")):
        np.testing.assert_allclose(metrics.alignment_loss_curve(source, P), expected, rtol=1e-12)
        block = metrics.code_gram(source).block(np.array([5, 2]))
        np.testing.assert_allclose(block, metrics.code_gram(codes).block(np.array([5, 2])))


@pytest.mark.parametrize(
    "measure", [metrics.code_gram, lambda c: metrics.alignment_loss_curve(c, P)]
)
@pytest.mark.parametrize("shape", [(90,), (0, 4), (90, 0), (90, 2, 2)])
def test_what_are_no_codes(measure, shape):
    with pytest.raises(ValueError, match=r"codes has shape .*: pass a matrix"):
        measure(Store(np.ones(shape)))


def test_codes_that_are_not_finite():
    bad = CODES.copy()
    bad[70, 1] = np.nan
    with pytest.raises(ValueError, match=r"codes, a RowArray, .* row 70 of X contains NaN"):
        metrics.alignment_loss_curve(Store(bad), P)
    with pytest.raises(ValueError, match=r"row 70 of X contains NaN"):
        metrics.alignment_loss(metrics.code_gram(Store(bad)), P)
