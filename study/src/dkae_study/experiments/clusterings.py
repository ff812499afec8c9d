r"""Spectral clustering of a code Gram, without the Gram, and how well clusters agree with classes.

Codes :math:`c_i` whose inner products are affinities, :math:`C = Z Z^\top`, have the degrees
:math:`d = Z (Z^\top 1)`, and the normalised affinities are again a Gram matrix:

.. math:: D^{-1/2} C D^{-1/2} = (D^{-1/2} Z)(D^{-1/2} Z)^\top .

Its largest eigenvectors are left singular vectors of the n × m matrix :math:`D^{-1/2} Z`; their
rows, at unit length, are clustered by k-means (Ng, Jordan and Weiss, 2001). Time is O(n m²) and
memory O(n m); scikit-learn's class needs the n × n affinities.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix


def spectral_clustering(codes: NDArray[Any], n_clusters: int, seed: int) -> NDArray[Any]:
    """Return the cluster of each row; the codes should not be centred."""
    points = spectral_embedding(codes, n_clusters)
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(points))


def spectral_embedding(codes: NDArray[Any], n_components: int) -> NDArray[Any]:
    """Return the largest eigenvectors of the normalised affinities, with rows of unit length."""
    degrees = codes @ codes.sum(axis=0, dtype=np.float64).astype(codes.dtype)
    # If all affinities are positive, a degree is at least the affinity of the row to itself. With
    # negative ones it may be smaller, or negative, and would blow up the row.
    degrees = np.maximum(degrees, np.einsum("im,im->i", codes, codes))
    scaled = codes / np.sqrt(np.where(degrees > 0, degrees, 1))[:, None]
    # Eigenvectors of the small matrix: D^-1/2 Z V are those of the large one, up to their length.
    _, vectors = np.linalg.eigh((scaled.T @ scaled).astype(np.float64))
    points = scaled @ vectors[:, : -n_components - 1 : -1].astype(codes.dtype)
    points /= np.linalg.norm(points, axis=0)
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(norms > 0, norms, 1))


def clustering_scores(y: NDArray[Any], clusters: NDArray[Any]) -> dict[str, float]:
    r"""Return accuracy, normalised mutual information and adjusted Rand index of clusters.

    Accuracy is the share of rows that are right under the best one-to-one matching,

    .. math:: \frac 1 n \max_\pi \sum_c \left| \{ i : \text{cluster}_i = c, y_i = \pi(c) \} \right|
    """
    counts = contingency_matrix(y, clusters)
    return {
        "accuracy": float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(y)),
        "nmi": float(normalized_mutual_info_score(y, clusters)),
        "ari": float(adjusted_rand_score(y, clusters)),
    }
