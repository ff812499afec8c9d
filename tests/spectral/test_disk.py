"""Kernel PCA of rows on a disk, and scores and rows that are written to one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel

from dkae import load, save
from dkae.kernels import TransformerKernel, center
from dkae.rows import RowArray
from dkae.spectral import KernelPCA, PreImage
from tests.stores import Results, Store, on_disk

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1, (90, 6)).astype(np.float32)
MORE = RNG.uniform(0.1, 1, (50, 6)).astype(np.float32)
BYTES = (255 * X).astype(np.uint8)
N_CHUNK = 8

KERNELS = {
    "rbf": {"kernel": "rbf"},
    "centred": {"kernel": center(TransformerKernel(Nystroem(n_components=9).fit(X)))},
    "features": {"kernel": TransformerKernel(Nystroem(n_components=9, random_state=0).fit(X))},
    "pck": {
        "kernel": "pck",
        "kernel_params": {"max_components": 3, "n_initializations": 2, "reg_covar": 1e-2},
        "random_state": 0,
    },
    "forest": {"kernel": "forest", "random_state": 0},
}
every_kernel = pytest.mark.parametrize("name", KERNELS)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr("dkae.spectral.kernel_pca.N_CHUNK_ROWS", N_CHUNK)


def model(name="rbf", **params):
    return KernelPCA(3, **KERNELS[name], **params)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


# --- rows ----------------------------------------------------------------------------------------


@every_kernel
def test_scores_are_those_of_rows_in_memory(name, tmp_path):
    expected = model(name).fit(X)
    for rows in (Store(X), RowArray(X), on_disk(X, tmp_path / "X.npy")):
        mine = model(name)
        scores = mine.fit_transform(rows)
        assert scores.dtype == np.float32
        close(scores, expected.fit_transform(X))
        close(mine.transform(Store(MORE)), expected.transform(MORE))
        close(mine.reconstruct_gram(Store(MORE)), expected.reconstruct_gram(MORE))


def test_rows_of_bytes(tmp_path):
    mapped = on_disk(BYTES, tmp_path / "X.npy")
    close(model().fit_transform(mapped), model().fit_transform(BYTES.astype(np.float32)))
    scaled = RowArray(mapped, scale=255)
    close(model().fit_transform(scaled), model().fit_transform(scaled[:]))


@every_kernel
def test_transform_reads_a_few_rows_at_a_time(name, monkeypatch):
    fitted, store = model(name).fit(X), Store(MORE)
    monkeypatch.setattr(RowArray, "__array__", Store.__array__)
    fitted.transform(store)
    assert store.most == N_CHUNK


def test_a_kernel_with_features_needs_no_copy_of_the_rows(monkeypatch):
    monkeypatch.setattr(RowArray, "__array__", Store.__array__)
    monkeypatch.setattr("dkae.kernels.features.N_CHUNK_NUMBERS", N_CHUNK * X.shape[1])
    store = Store(X)
    mine = model("features").fit(store)
    assert store.most == N_CHUNK
    assert mine.X_fit_ is None


def test_the_model_holds_its_rows(tmp_path):
    mapped = on_disk(X, tmp_path / "X.npy")
    mine = model(preimage=PreImage(alpha=0.1)).fit(mapped)
    assert type(mine.X_fit_) is np.ndarray
    assert not np.shares_memory(mine.X_fit_, mapped)
    expected = mine.transform(MORE)
    save(mine, tmp_path / "model.dkae")
    for again in (pickle.loads(pickle.dumps(mine)), load(tmp_path / "model.dkae")):
        np.testing.assert_array_equal(again.X_fit_, X)
        np.testing.assert_array_equal(again.transform(MORE), expected)


def test_a_gram_beside_rows_on_a_disk():
    gram = rbf_kernel(X).astype(np.float32)
    mine = KernelPCA(3).fit(Store(X), gram=gram)
    close(mine.transform(Store(X), gram=gram), KernelPCA(3).fit_transform(X, gram=gram))
    bad = gram.copy()
    bad[-1, 0] = np.nan
    with pytest.raises(ValueError, match="gram has NaN or infinite values"):
        mine.transform(X, gram=bad)


def test_a_row_that_is_not_finite_is_named():
    bad = MORE.copy()
    bad[33, 2] = np.nan
    fitted = model().fit(X)
    with pytest.raises(ValueError, match=r"row 33 of X contains NaN"):
        fitted.transform(Store(bad))
    with pytest.raises(ValueError, match=r"row 33 of X contains NaN"):
        model().fit(Store(bad))


def test_rows_of_another_width():
    with pytest.raises(ValueError, match="X has 5 features, but KernelPCA is expecting 6 features"):
        model().fit(X).transform(Store(MORE[:, :5]))


# --- out -----------------------------------------------------------------------------------------


def outs(shape, tmp_path):
    yield np.empty(shape)
    yield np.asfortranarray(np.empty(shape, np.float32))
    yield np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, shape)


@every_kernel
@pytest.mark.parametrize("rows", [MORE, Store(MORE)], ids=["memory", "store"])
def test_scores_are_written_to_out(name, rows, tmp_path):
    fitted = model(name).fit(X)
    expected = fitted.transform(MORE)
    for out in outs((50, 3), tmp_path):
        assert fitted.transform(rows, out=out) is out
        close(out, expected)
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), out)


def test_rows_are_written_to_out(tmp_path):
    fitted = model(preimage=PreImage(alpha=0.1)).fit(X)
    scores = fitted.transform(MORE)
    expected = fitted.inverse_transform(scores)
    assert expected.dtype == np.float32
    for out in outs(MORE.shape, tmp_path):
        assert fitted.inverse_transform(Store(scores), out=out) is out
        close(out, expected)


def test_results_are_written_chunk_by_chunk():
    fitted = model(preimage=PreImage(alpha=0.1)).fit(X)
    scores, rows = Results((50, 3)), Results((50, 6))
    assert fitted.transform(Store(MORE), out=scores) is scores
    store = Store(scores.rows)
    assert fitted.inverse_transform(store, out=rows) is rows
    assert scores.most == rows.most == store.most == N_CHUNK
    close(scores.rows, fitted.transform(MORE))
    close(rows.rows, fitted.inverse_transform(scores.rows))


def test_out_beside_a_gram(tmp_path):
    gram = rbf_kernel(X)
    fitted = KernelPCA(3).fit(X, gram=gram)
    for out in outs((90, 3), tmp_path):
        close(fitted.transform(X, gram=gram, out=out), fitted.transform(X, gram=gram))


def test_scores_that_leave_the_type_of_out():
    fitted = KernelPCA(1, kernel="linear").fit(X.astype(np.float64))
    out = np.empty((1, 1), np.float32)
    with pytest.raises(ValueError, match=r"the scores of X has NaN or infinite values"):
        fitted.transform(np.full((1, 6), 1e300), out=out)


@pytest.mark.parametrize("method", ["transform", "inverse_transform"])
def test_an_out_that_does_not_fit(method, tmp_path):
    fitted = model(preimage=PreImage(alpha=0.1)).fit(X)
    given, shape = (MORE, (50, 3)) if method == "transform" else (MORE[:, :3], (50, 6))
    apply = getattr(fitted, method)
    with pytest.raises(ValueError, match=rf"out has shape \(7, 3\): .* shape \(50, {shape[1]}\)"):
        apply(given, out=np.empty((7, 3)))
    with pytest.raises(ValueError, match="out has entries of type int64: pass an array of floats"):
        apply(given, out=np.empty(shape, int))
    with pytest.raises(ValueError, match="out is read-only"):
        apply(given, out=on_disk(np.empty(shape), tmp_path / "out.npy"))
    with pytest.raises(TypeError, match=r"out='scores.npy' cannot be written to: pass an array"):
        apply(given, out="scores.npy")
