"""Sparse and oddly ordered rows: the same model as of dense rows, and never dense as a whole."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dkae import DeepKernelizedAutoencoder
from dkae.networks import rows as network_rows
from dkae.networks import statistics
from dkae.rows import RowArray
from dkae.training import starts

RNG = np.random.default_rng(0)
X = (RNG.random((90, 12)) * (RNG.random((90, 12)) < 0.3)).astype(np.float32)
FORMATS = {
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "COO": sparse.coo_array,
    "CSR matrix": sparse.csr_matrix,
}


def make(**params):
    defaults = {
        "n_components": 4,
        "network": "stacked",
        "hidden_layer_sizes": (12,),
        "max_iter": 1,
        "decoder_max_iter": 1,
        "steps_per_epoch": 4,
        "batch_size": 40,
        "random_state": 0,
    }
    return DeepKernelizedAutoencoder(**(defaults | params))


both = pytest.mark.parametrize("network", ["stacked", "kernel_layer"])


def in_common(A, B):
    assert isinstance(A, np.ndarray)
    assert isinstance(B, np.ndarray)
    return np.minimum(A[:, None], B[None]).sum(axis=2)


KERNELS = {
    "rbf": {"kernel": "rbf"},
    "scale": {"kernel": "rbf", "gamma": "scale"},
    "linear": {"kernel": "linear"},
    "chi2": {"kernel": "chi2"},
    "pck": {"kernel": "pck", "kernel_params": {"max_components": 3, "n_initializations": 2}},
    "forest": {"kernel": "forest", "kernel_params": {"n_estimators": 8}},
    "callable": {"kernel": in_common},
}


@both
@pytest.mark.parametrize("name", KERNELS)
def test_sparse_rows_give_the_same_model_as_dense_ones(name, network):
    dense, mine = (make(network=network, **KERNELS[name]) for _ in range(2))
    dense.fit(X)
    mine.fit(sparse.csr_array(X))
    codes = dense.transform(X)
    assert mine.history_ == dense.history_
    np.testing.assert_array_equal(mine.transform(sparse.csr_array(X)), codes)
    np.testing.assert_array_equal(mine.transform(X), codes)
    np.testing.assert_array_equal(mine.inverse_transform(codes), dense.inverse_transform(codes))
    assert mine.score(sparse.csr_array(X)) == dense.score(X)
    assert (mine.alignment_, mine.r2_) == (dense.alignment_, dense.r2_)


@pytest.mark.parametrize("format_name", FORMATS)
def test_every_format_will_do(format_name):
    rows = FORMATS[format_name](X)
    model = make().fit(rows)
    np.testing.assert_array_equal(model.transform(rows), make().fit(X).transform(X))
    assert model.score(rows) == model.score(X)


def test_a_gram_matrix_beside_sparse_rows():
    gram = X @ X.T
    model = make().fit(sparse.csr_array(X), gram=gram)
    assert model.score(sparse.csr_array(X), gram=gram) == model.score(X, gram=gram)
    with pytest.raises(ValueError, match=r"gram has shape \(80, 80\), but X has 90 rows"):
        model.score(sparse.csr_array(X), gram=gram[:80, :80])


def test_noise_validation_and_pretraining():
    params = {"input_noise": 0.1, "early_stopping": True, "pretrain_max_iter": 1}
    dense, mine = make(**params).fit(X), make(**params).fit(sparse.csr_array(X))
    assert mine.history_ == dense.history_


def test_a_broken_off_fit_goes_on(tmp_path):
    rows = sparse.csr_array(X)
    whole = make().fit(rows, checkpoint=tmp_path / "state")
    again = make().fit(rows, checkpoint=tmp_path / "state")
    assert again.history_ == whole.history_


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad):
    rows = sparse.csr_array(X)
    rows.data[3] = bad
    with pytest.raises(ValueError, match="Input X contains"):
        make().fit(rows)


# --- never dense as a whole ----------------------------------------------------------------------


@both
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
@pytest.mark.parametrize("missing", ["error", "mask"])
def test_rows_are_never_dense_all_together(kernel, network, missing, monkeypatch):
    """Rows of a chunk, a batch or a sample are, and of landmarks."""
    rows = sparse.csr_array(sparse.random(700, 12, 0.3, random_state=0, dtype=np.float32))
    most = 300
    for module in (statistics, network_rows):
        monkeypatch.setattr(module, "N_CHUNK_NUMBERS", most * 12)
    monkeypatch.setattr(network_rows, "N_CHUNK_ROWS", most)
    monkeypatch.setattr(starts, "N_START_ROWS", most)
    monkeypatch.setattr("dkae.fitting.N_SAMPLE_ROWS", most)
    monkeypatch.setattr("dkae.kernels.bandwidth.N_MEDIAN_ROWS", most)
    monkeypatch.setattr("dkae.metrics.comparison.N_TILE_ROWS", most)

    def refuse(self, dtype=None, copy=None):
        raise AssertionError("all rows became dense")

    sizes = []
    original = RowArray.__getitem__

    def watched(self, ids):
        part = original(self, ids)
        sizes.append(len(part))
        return part

    monkeypatch.setattr(RowArray, "__array__", refuse)
    monkeypatch.setattr(RowArray, "__getitem__", watched)
    model = make(kernel=kernel, network=network, missing=missing).fit(rows)
    assert model.transform(rows).shape == (700, 4)
    assert model.score(rows) > 0
    assert sizes
    assert max(sizes) <= most


def test_the_dense_rows_of_a_part_are_those_asked_for():
    rows = RowArray(sparse.csr_array(X))
    for ids in (slice(3, 8), np.array([5, 0, 5]), np.arange(90) % 2 == 0, slice(None)):
        np.testing.assert_array_equal(rows[ids], X[ids])
        assert rows[ids].dtype == np.float32
    np.testing.assert_array_equal(np.asarray(rows), X)
    assert (len(rows), rows.shape, rows.size, rows.ndim) == (90, (90, 12), X.size, 2)


def test_gaps_of_a_part_are_filled():
    gappy = X.copy()
    gappy[2, 3] = np.nan
    filled = RowArray(sparse.csr_array(gappy), fill=np.arange(12, dtype=np.float32))
    expected = X.copy()
    expected[2, 3] = 3
    np.testing.assert_array_equal(filled[1:4], expected[1:4])


@both
def test_a_table_of_categories(network):
    colours, sizes = (RNG.choice(values, 90) for values in (list("rgb"), list("sml")))
    table = np.column_stack([colours, sizes])
    pipeline = make_pipeline(OneHotEncoder(), make(network=network, n_components=6, max_iter=20))
    codes = pipeline.fit_transform(table)
    assert codes.shape == (90, 6)
    back = pipeline[-1].inverse_transform(codes)
    assert back.shape == (90, 6)
    if network == "kernel_layer":  # six dimensions hold all of it
        assert (pipeline[0].inverse_transform(back) == table).all()


# --- arrays in any order -------------------------------------------------------------------------

ORDERS = {
    "reversed": lambda a: a[::-1],
    "flipped": np.fliplr,
    "Fortran": np.asfortranarray,
    "every other": lambda a: np.repeat(a, 2, axis=0)[::2],
    "read-only": lambda a: np.frombuffer(a.tobytes(), np.float32).reshape(a.shape),
}


@both
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kernel", ["rbf", "chi2"])
def test_arrays_in_any_order_are_as_good_as_others(order, kernel, network):
    rows = ORDERS[order](X)
    plain = np.array(rows, order="C")
    mine, other = (make(network=network, kernel=kernel).fit(a) for a in (rows, plain))
    codes = other.transform(plain)
    np.testing.assert_allclose(mine.transform(rows), codes, atol=1e-5)
    np.testing.assert_array_equal(
        mine.inverse_transform(ORDERS[order](codes)),
        mine.inverse_transform(np.array(ORDERS[order](codes), order="C")),
    )
    assert mine.score(rows) == pytest.approx(other.score(plain), abs=1e-6)
