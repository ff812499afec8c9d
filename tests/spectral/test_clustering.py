"""Spectral clustering of codes against the dense definition and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import SpectralClustering

from dkae.kernels import ProbabilisticClusterKernel
from dkae.metrics import cluster_accuracy
from dkae.spectral import spectral_clustering, spectral_embedding


def positive_codes(n: int = 90, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Codes of three groups, each mostly along directions of its own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    codes = rng.uniform(0, 0.3, (n, 6))
    codes[np.arange(n), 2 * y] += rng.uniform(0.7, 1, n)
    return codes, y


def test_embedding_is_that_of_the_dense_definition():
    codes, _ = positive_codes()
    gram = codes @ codes.T
    root = 1 / np.sqrt(gram.sum(axis=1))
    _, vectors = np.linalg.eigh(root[:, None] * gram * root)
    expected = vectors[:, -1:-4:-1]
    expected = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    ours = spectral_embedding(codes, 3)
    np.testing.assert_allclose(np.abs(ours), np.abs(expected), atol=1e-9)
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_same_groups_as_scikit_learn_on_the_gram(dtype):
    codes, y = positive_codes()
    ours = spectral_clustering(codes.astype(dtype), 3, random_state=0)
    theirs = SpectralClustering(3, affinity="precomputed", random_state=0).fit_predict(
        codes @ codes.T
    )
    assert cluster_accuracy(theirs, ours) == 1
    assert cluster_accuracy(y, ours) == 1


def test_rows_on_rings_that_k_means_cannot_tell_apart():
    rng = np.random.default_rng(0)
    radius = np.repeat([1.0, 6.0], 150)
    angle = rng.uniform(0, 2 * np.pi, 300)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    X += 0.1 * rng.standard_normal(X.shape)
    kernel = ProbabilisticClusterKernel(12, 10, max_fit_samples=300, random_state=0).fit(X)
    clusters = spectral_clustering(kernel.features(X), 2, random_state=0)
    assert cluster_accuracy(radius, clusters) > 0.95


def test_scale_and_rotation_of_codes_do_not_matter():
    codes, _ = positive_codes()
    rotation = np.linalg.qr(np.random.default_rng(1).standard_normal((6, 6)))[0]
    a = spectral_clustering(codes, 3, random_state=0)
    b = spectral_clustering(100 * codes @ rotation, 3, random_state=0)
    assert cluster_accuracy(a, b) == 1


def test_a_row_that_is_unlike_all_others_is_harmless():
    codes, y = positive_codes()
    codes[0] = -codes[0]
    clusters = spectral_clustering(codes, 3, random_state=0)
    assert np.isfinite(spectral_embedding(codes, 3)).all()
    assert cluster_accuracy(y[1:], clusters[1:]) > 0.95


@pytest.mark.parametrize(
    ("codes", "n_clusters", "message"),
    [
        (np.ones((5, 2)), 3, r"n_clusters=3, but codes of shape \(5, 2\)"),
        (np.ones((5, 2)), 0, "n_clusters=0 must be a whole number of at least 1"),
        (np.array([[1.0, 0], [-1, 0]]), 1, "sum to zero or less: pass codes that are not centred"),
        (np.array([[1.0, np.nan], [1, 0]]), 1, "codes contains NaN"),
        (np.full((5, 2), 1e16), 1, "codes has .*beyond 1e15"),
        (np.ones((1, 2)), 1, "minimum of 2"),
    ],
)
def test_bad_input(codes, n_clusters, message):
    with pytest.raises(ValueError, match=message):
        spectral_clustering(codes, n_clusters)
    with pytest.raises(ValueError, match=message.replace("n_clusters", "n_components")):
        spectral_embedding(codes, n_clusters)
