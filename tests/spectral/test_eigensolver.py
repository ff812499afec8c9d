"""The largest eigenpairs against LAPACK, for every kind of spectrum."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dkae.spectral import eigensolver
from dkae.spectral.eigensolver import dense_eigenpairs, largest_eigenpairs

SPECTRA = {
    "even": lambda n, rng: np.linspace(1, 0, n),
    "fast": lambda n, rng: 0.3 ** np.arange(n),
    "slow": lambda n, rng: 1 / np.arange(1, n + 1),
    "clustered": lambda n, rng: 2 + rng.integers(0, 3, n) + 1e-10 * rng.random(n),
    "repeated": lambda n, rng: 1.0 * (np.arange(n) < n // 2) + (np.arange(n) < n // 8),
    "deficient": lambda n, rng: 1.0 * (np.arange(n) < 3),
    "indefinite": lambda n, rng: np.linspace(1, -1.5, n),
    "negative": lambda n, rng: -1 - rng.random(n),
    "one": lambda n, rng: np.ones(n),
}
#: Errors relative to the largest eigenvalue: of eigenvalues, orthonormality, residuals.
TOLERANCES = {np.float64: (1e-8, 1e-10, 2e-9), np.float32: (1e-5, 1e-5, 2e-5)}


def with_spectrum(values, rng):
    q = np.linalg.qr(rng.standard_normal((len(values), len(values))))[0]
    return (q * values) @ q.T


def solve(matrix, n_pairs, dtype=np.float64, seed=0):
    matrix = matrix.astype(dtype)
    return largest_eigenpairs(
        lambda V: matrix @ V, len(matrix), n_pairs, dtype=dtype, rng=np.random.default_rng(seed)
    )


def assert_largest_pairs(matrix, pairs, n_pairs, dtype=np.float64):
    exact = np.linalg.eigvalsh(matrix.astype(dtype).astype(np.float64))[::-1]
    scale = np.abs(exact).max() or 1
    of_values, of_basis, of_residuals = TOLERANCES[dtype]
    values, vectors = pairs
    assert vectors.dtype == dtype
    np.testing.assert_allclose(values / scale, exact[:n_pairs] / scale, rtol=0, atol=of_values)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(n_pairs), atol=of_basis)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert residuals.max() <= of_residuals * scale


@given(
    size=st.integers(1, 130),
    share=st.floats(0, 1) | st.just(1.0),  # 1 is all pairs
    spectrum=st.sampled_from(sorted(SPECTRA)),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_pairs_are_those_of_lapack(size, share, spectrum, dtype, seed):
    rng = np.random.default_rng(seed)
    matrix = with_spectrum(SPECTRA[spectrum](size, rng), rng)
    n_pairs = 1 + round(share * (size - 1))
    assert_largest_pairs(matrix, solve(matrix, n_pairs, dtype, seed), n_pairs, dtype)


@given(
    n_block=st.integers(1, 9),
    n_pairs=st.integers(1, 12),
    spectrum=st.sampled_from(["even", "fast", "slow", "deficient", "indefinite"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    seed=st.integers(0, 2**16),
)
def test_blocks_may_be_narrow(n_block, n_pairs, spectrum, dtype, seed):
    rng = np.random.default_rng(seed)
    matrix = with_spectrum(SPECTRA[spectrum](100, rng), rng)
    with mock.patch.object(eigensolver, "N_BLOCK", n_block):
        pairs = solve(matrix, n_pairs, dtype, seed)
    assert_largest_pairs(matrix, pairs, n_pairs, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_pairs", [10, 80, 100])
@pytest.mark.parametrize("n_levels", [1, 3])
def test_more_vectors_of_one_eigenvalue_than_columns_in_a_block(n_levels, n_pairs, dtype):
    # The ideal kernel of 80 balanced classes, of classes within classes, ...
    labels = [np.arange(640) % (80 * 2**level) for level in range(n_levels)]
    gram = sum((y[:, None] == y) * 1.0 for y in labels)
    assert_largest_pairs(gram, solve(gram, n_pairs, dtype), n_pairs, dtype)


@pytest.mark.parametrize("rank", [0, 4])
@pytest.mark.parametrize("n_pairs", [1, 90, 200])
def test_a_matrix_of_exact_zeros_still_has_orthonormal_vectors(n_pairs, rank):
    diagonal = np.diag((np.arange(200) < rank) * 1.0)
    assert_largest_pairs(diagonal, solve(diagonal, n_pairs), n_pairs)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scale_does_not_matter(scale):
    rng = np.random.default_rng(0)
    matrix = scale * with_spectrum(SPECTRA["slow"](120, rng), rng)
    assert_largest_pairs(matrix, solve(matrix, 6), 6)


def test_small_eigenvalues_have_accurate_vectors_too():
    rng = np.random.default_rng(0)
    matrix = with_spectrum(10.0 ** -np.linspace(0, 11, 300), rng)
    values, vectors = solve(matrix, 250)
    residuals = np.linalg.norm(matrix @ vectors - vectors * values, axis=0)
    assert (residuals < 0.02 * values).all()


def test_a_few_products_are_enough():
    rng = np.random.default_rng(0)
    matrix, widths = with_spectrum(SPECTRA["fast"](500, rng), rng), []

    def multiply(V):
        widths.append(V.shape[1])
        return matrix @ V

    largest_eigenpairs(multiply, 500, 10, dtype=np.float64, rng=rng)
    assert len(widths) <= 3
    assert sum(widths) <= 96


def test_products_that_are_not_finite():
    with pytest.raises(ValueError, match="are not finite: check the kernel"):
        solve(np.full((50, 50), np.nan), 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_whole_matrix_is_decomposed_in_float64_and_left_alone(dtype):
    rng = np.random.default_rng(0)
    matrix = (10 * with_spectrum(SPECTRA["indefinite"](30, rng), rng)).astype(dtype)
    matrix = matrix + matrix.T
    before = matrix.copy()
    values, vectors = dense_eigenpairs(matrix)
    np.testing.assert_array_equal(matrix, before)
    assert values.dtype == vectors.dtype == np.float64
    np.testing.assert_allclose(values, np.linalg.eigvalsh(before * 1.0)[::-1], atol=1e-10)
    np.testing.assert_allclose((vectors * values) @ vectors.T, before, atol=1e-10)
