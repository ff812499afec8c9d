"""Products with Gram matrices and features, against the dense formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from dkae.grams import Gram
from dkae.kernels import PairwiseKernel
from dkae.spectral import operators
from dkae.spectral.operators import (
    centered_product,
    gram_product,
    mean_of_rows,
    tiled_product,
    times,
)
from tests.spectral.helpers import centered

RNG = np.random.default_rng(0)
ATOL = {np.float32: 2e-5, np.float64: 1e-12}

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])
forms = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])


@given(
    n=st.integers(1, 12),
    d=st.integers(1, 12),
    width=st.integers(1, 5),
    density=st.sampled_from([0, 0.2, 1]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 99),
)
def test_sparse_product_is_the_dense_one(n, d, width, density, dtype, seed):
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    dense, vectors = dense.astype(dtype), rng.standard_normal((d, width)).astype(dtype)
    for matrix in (dense, sparse.csr_array(dense), sparse.csr_matrix(dense)):
        result = times(matrix, vectors)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, dense @ vectors, rtol=0, atol=ATOL[dtype])


@both_types
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_entries_may_be_unsorted_repeated_and_read_only_and_vectors_in_any_order(index, dtype):
    data, columns = np.array([1, 2, 3, 4, 5], dtype=dtype), np.array([2, 0, 2, 1, 1], dtype=index)
    matrix = sparse.csr_array((data, columns, np.array([0, 3, 3, 5], dtype=index)), shape=(3, 4))
    # joblib hands large arrays to its workers like that, and torch would warn of them.
    for array in (matrix.data, matrix.indices, matrix.indptr):
        array.flags.writeable = False
    vectors = RNG.standard_normal((4, 2)).astype(dtype)
    expected = [[2, 0, 4, 0], [0, 0, 0, 0], [0, 9, 0, 0]] @ vectors
    for view in (vectors, np.asfortranarray(vectors), np.repeat(vectors, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(times(matrix, view), expected, atol=1e-6)


def test_single_precision_matrix_takes_vectors_of_double_precision():
    matrix, vectors = sparse.eye_array(4, dtype=np.float32, format="csr"), RNG.random((4, 2))
    np.testing.assert_allclose(times(matrix, vectors), vectors, rtol=1e-6)


@both_types
@forms
def test_mean_of_many_rows_is_accurate(form, dtype):
    phi = np.full((300_000, 2), 0.1, dtype=dtype)
    np.testing.assert_allclose(mean_of_rows(form(phi)), phi[0], rtol=1e-7)


class TestTiles:
    X = RNG.random((24, 3)).astype(np.float32)
    prior = PairwiseKernel("rbf", gamma=0.7).fit(X).on(X)

    @both_types
    @pytest.mark.parametrize("n_tile", [1, 5, 12, 23, 24, 25])
    def test_product_is_that_of_the_whole(self, n_tile, dtype, monkeypatch):
        monkeypatch.setattr(operators, "N_TILE_ROWS", n_tile)
        vectors = RNG.standard_normal((24, 3)).astype(dtype)
        result = tiled_product(self.prior, vectors)
        assert result.dtype == dtype
        np.testing.assert_allclose(result, rbf_kernel(self.X, gamma=0.7) @ vectors, atol=1e-5)

    @pytest.mark.parametrize("n_tile", [7, 8, 24])
    def test_each_pair_is_computed_once(self, n_tile, monkeypatch):
        monkeypatch.setattr(operators, "N_TILE_ROWS", n_tile)
        seen = np.zeros((24, 24))

        class Spy(Gram):
            def __len__(self):
                return 24

            def block(self, rows, columns=None):
                columns = rows if columns is None else columns
                assert max(len(rows), len(columns)) <= n_tile
                seen[np.ix_(rows, columns)] += 1
                return np.ones((len(rows), len(columns)), dtype=np.float32)

        tiled_product(Spy(), np.ones((24, 1)))
        either = np.maximum(seen, seen.T)
        assert (seen.max(), either.min()) == (1, 1)
        assert seen.sum() < 24 * 24 or n_tile == 24


class TestGram:
    K = rbf_kernel(RNG.random((50, 3)))
    V = RNG.standard_normal((50, 4))

    def test_product_is_centred_on_both_sides(self):
        np.testing.assert_allclose(gram_product(self.K, self.V), self.K @ self.V, atol=1e-12)
        expected = centered(self.K) @ self.V
        np.testing.assert_allclose(centered_product(self.K, self.V), expected, atol=1e-12)

    @pytest.mark.parametrize("n_tile", [1, 7, 50])
    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.float16, np.float32])
    def test_matrix_of_another_type_is_read_by_rows(self, dtype, n_tile, monkeypatch):
        monkeypatch.setattr(operators, "N_TILE_ROWS", n_tile)
        K = (10 * self.K).astype(dtype)
        product = gram_product(K, self.V)
        assert product.dtype == np.float64
        np.testing.assert_allclose(product, K.astype(np.float64) @ self.V, atol=1e-12)
