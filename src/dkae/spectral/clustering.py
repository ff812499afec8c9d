r"""Spectral clustering of a code Gram, without the Gram.

Codes :math:`c_i` whose inner products are affinities, :math:`C = Z Z^\top`, have the degrees
:math:`d = Z (Z^\top 1)`, and the normalised affinities are again a Gram matrix:

.. math:: D^{-1/2} C D^{-1/2} = (D^{-1/2} Z)(D^{-1/2} Z)^\top .

Its largest eigenvectors are left singular vectors of the n × m matrix :math:`D^{-1/2} Z`; their
rows, at unit length, are clustered by k-means (Ng, Jordan and Weiss, 2001). Time is O(n m²) and
memory O(n m), where the usual way needs O(n²).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.utils import check_array

from dkae._support.arrays import check_magnitude, naming
from dkae._support.checks import check_integer


def spectral_clustering(codes: Any, n_clusters: int, *, random_state: Any = None) -> NDArray[Any]:
    """Return the cluster of each row, from 0 to n_clusters - 1.

    Parameters
    ----------
    codes : array-like of shape (n, m)
        Features whose inner products are affinities: codes of an autoencoder, scores of uncentred
        kernel PCA, features of a kernel. Affinities should be mostly positive.
    n_clusters : int
        Number of clusters, at most n and m.
    random_state : int, RandomState or None, default=None
        Seed of k-means.
    """
    points = _embedding(codes, n_clusters, "n_clusters")
    return np.asarray(KMeans(n_clusters, n_init=10, random_state=random_state).fit_predict(points))


def spectral_embedding(codes: Any, n_components: int) -> NDArray[Any]:
    """Return the largest eigenvectors of the normalised affinities, with rows of unit length."""
    return _embedding(codes, n_components, "n_components")


def _embedding(codes: Any, n_vectors: int, name: str) -> NDArray[Any]:
    with naming("codes", codes):
        types = [np.float32, np.float64]
        Z = check_array(codes, dtype=types, ensure_min_samples=2, input_name="codes")
    check_magnitude(Z, "codes")
    m = check_integer(name, n_vectors, at_least=1)
    if m > min(Z.shape):
        raise ValueError(
            f"{name}={m}, but codes of shape {Z.shape} have at most {min(Z.shape)} eigenvectors: "
            f"lower {name}, or pass wider codes"
        )
    degrees = Z @ Z.sum(axis=0, dtype=np.float64).astype(Z.dtype)
    if not degrees.mean() > 0:
        raise ValueError(
            "the affinities of codes sum to zero or less: pass codes that are not centred, whose "
            "inner products are mostly positive"
        )
    # If all affinities are positive, a degree is at least the affinity of the row to itself. With
    # negative ones it may be smaller, or negative, and would blow up the row.
    degrees = np.maximum(degrees, np.einsum("im,im->i", Z, Z))
    scaled = Z / np.sqrt(np.where(degrees > 0, degrees, 1))[:, None]
    # Eigenvectors of the small matrix: D^-1/2 Z V are those of the large one, up to their length.
    _, vectors = np.linalg.eigh((scaled.T @ scaled).astype(np.float64))
    points = scaled @ vectors[:, : -m - 1 : -1].astype(Z.dtype)
    points /= np.linalg.norm(points, axis=0)
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(norms > 0, norms, 1))
