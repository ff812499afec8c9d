"""Every kernel on rows that are on a disk: the same Gram matrix, and never all rows at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem

from dkae.kernels import (
    FeatureKernel,
    ForestKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    normalize,
)
from dkae.kernels.features import ComputedGram
from dkae.rows import RowArray
from tests.ids import plain_id
from tests.laws.maps import make
from tests.laws.test_kernel_laws import KERNELS, RNG, X
from tests.stores import Store, on_disk

ROWS, COLUMNS = np.array([5, 0, 17, 5]), np.array([39, 3, 17])
BYTES = (255 * X).astype(np.uint8)
#: Rows that a patched chunk has.
N_CHUNK = 10

every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=plain_id)
FEATURES = [kernel for kernel in KERNELS if isinstance(kernel, FeatureKernel)]
every_feature_kernel = pytest.mark.parametrize("kernel", FEATURES, ids=plain_id)


@pytest.fixture
def small_chunks(monkeypatch):
    """Let every kernel read a few rows at a time, and none all of them."""
    for name in ("features.N_CHUNK_NUMBERS", "known_rows.N_CHUNK_NUMBERS"):
        monkeypatch.setattr(f"dkae.kernels.{name}", N_CHUNK * X.shape[1])
    monkeypatch.setattr("dkae.kernels.cluster.N_CHUNK_ROWS", N_CHUNK)
    monkeypatch.setattr("dkae.grams.N_DIAGONAL_ROWS", N_CHUNK)
    monkeypatch.setattr(RowArray, "__array__", Store.__array__)


def assert_same(gram, expected):
    assert len(gram) == len(expected)
    for columns in (None, COLUMNS):
        block = gram.block(ROWS, columns)
        assert block.dtype == np.float32
        np.testing.assert_allclose(block, expected.block(ROWS, columns), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gram.diagonal(), expected.diagonal(), rtol=1e-5, atol=1e-6)


# --- the same matrix -----------------------------------------------------------------------------


@every_kernel
def test_rows_on_a_disk_give_the_same_matrix(kernel, tmp_path):
    expected = clone(kernel).fit(X).on(X)
    mapped = on_disk(X, tmp_path / "X.npy")
    for rows in (mapped, Store(X)):  # the latter takes ascending rows only
        assert_same(clone(kernel).fit(rows).on(rows), expected)
    if kernel.knows_new_rows:
        rows = RowArray(on_disk(BYTES, tmp_path / "bytes.npy"), scale=255)
        scaled = BYTES.astype(np.float32) / np.float32(255)
        assert_same(clone(kernel).fit(rows).on(rows), clone(kernel).fit(scaled).on(scaled))


def test_posteriors_of_rows_of_float64_are_those_of_float32(tmp_path):
    kernel = clone(next(k for k in FEATURES if "Probabilistic" in repr(k)))
    double = RNG.uniform(0.1, 1, X.shape) + 2.0**14  # of which float32 has few digits left
    kernel.fit(double.astype(np.float32))
    assert np.abs(kernel.on(double).block(ROWS) - kernel.on(Store(double)).block(ROWS)).max() > 1e-4
    expected = kernel.on(double.astype(np.float32)).block(ROWS)
    for source in (Store(double), on_disk(double, tmp_path / "X.npy")):
        np.testing.assert_array_equal(kernel.on(source).block(ROWS), expected)
        np.testing.assert_array_equal(kernel.on(source, cache_bytes=1e9).block(ROWS), expected)
        computed = kernel.on(source, cache_bytes=0).block(ROWS)
        np.testing.assert_allclose(computed, expected, rtol=1e-5, atol=1e-6)


# --- never all rows at once ----------------------------------------------------------------------


@every_kernel
@pytest.mark.usefixtures("small_chunks")
def test_a_few_rows_are_read_at_a_time(kernel, monkeypatch):
    monkeypatch.setattr("dkae.kernels.features.N_SAMPLE_ROWS", N_CHUNK)
    kernel, store = clone(kernel).fit(X), Store(X)
    expected = kernel.on(X)
    for cache_bytes in (None, 0, 1e9):
        gram = kernel.on(store, cache_bytes)
        for columns in (None, COLUMNS):
            block = gram.block(ROWS, columns)
            np.testing.assert_allclose(block, expected.block(ROWS, columns), rtol=1e-5, atol=1e-6)
    assert store.most <= N_CHUNK


@every_feature_kernel
@pytest.mark.usefixtures("small_chunks")
def test_features_are_computed_of_a_few_rows_at_a_time(kernel):
    kernel, store = clone(kernel).fit(X), Store(X)
    for name in ("features", "feature_matrix"):
        phi, expected = getattr(kernel, name)(store), getattr(kernel, name)(X)
        dense = [a.toarray() if hasattr(a, "toarray") else a for a in (phi, expected)]
        np.testing.assert_allclose(*dense, rtol=1e-4, atol=1e-6)
    assert store.most <= N_CHUNK


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.knows_new_rows], ids=plain_id)
def test_fit_reads_a_sample_or_chunks(kernel, monkeypatch):
    monkeypatch.setattr("dkae.kernels.forests.N_FIT_ROWS", 1024)
    store = Store(RNG.uniform(0.1, 1, (3000, X.shape[1])).astype(np.float32))
    fitted = clone(kernel).fit(store)
    assert store.most <= 1024
    assert fitted.gram(X).shape == (len(X), len(X))


@pytest.mark.parametrize(
    ("name", "share"),
    [("autoencoder", "validation_fraction"), ("nystroem, mlp", "decoder__validation_fraction")],
)
def test_a_fit_that_holds_rows_out_never_reads_all_others_at_once(name, share):
    store = Store(RNG.uniform(0.1, 1, (25_000, 30)).astype(np.float32))
    make(name, **{share: 0.1}).fit(store)
    assert store.most <= 20_000  # what a Nyström map is computed from


WIDE = np.random.default_rng(1).integers(0, 255, (20_000, 50)).astype(np.uint8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "wrap"),
    [
        (ProbabilisticClusterKernel(3, 1, random_state=0, reg_covar=1e-2), lambda kernel: kernel),
        (ForestKernel(n_estimators=4, random_state=0), lambda kernel: 2 * kernel),
        (TransformerKernel(Nystroem(n_components=5, random_state=0).fit(WIDE[:50])), normalize),
    ],
    ids=["pck", "forest", "transformer"],
)
def test_memory_does_not_grow_with_a_mapped_file(kernel, wrap, tmp_path):
    mapped = on_disk(WIDE, tmp_path / "X.npy")
    kernel = wrap(kernel).fit(WIDE[:50])
    kernel.on(mapped[:2000], cache_bytes=0)  # whatever is needed once
    tracemalloc.start()
    kernel.on(mapped, cache_bytes=0).block(ROWS, COLUMNS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * WIDE.size  # a copy in float32 would be twice as large


# --- held or computed ----------------------------------------------------------------------------


@every_feature_kernel
def test_held_and_computed_features_give_the_same_matrix(kernel):
    kernel = clone(kernel).fit(X)
    held, computed = kernel.on(X, cache_bytes=1e9), kernel.on(X, cache_bytes=0)
    assert isinstance(computed, ComputedGram)
    assert not isinstance(held, ComputedGram)
    assert computed.kernel is kernel
    assert_same(computed, held)
    part = computed[::2].block(ROWS // 2)
    np.testing.assert_allclose(part, held[::2].block(ROWS // 2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("compose", [normalize, lambda k: k + k, lambda k: k * k])
def test_composed_kernels_pass_it_on(compose):
    composed = compose(ForestKernel(n_estimators=4, random_state=0)).fit(X)
    computed = composed.on(X, cache_bytes=0)
    assert isinstance(computed.grams[0], ComputedGram)
    assert_same(computed, composed.on(X))
