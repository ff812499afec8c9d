"""How well clusters agree with classes."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from dkae._support.arrays import naming
from dkae.grams import Rows


class ClusteringScores(NamedTuple):
    """Three measures of agreement; each is 1 if clusters and classes are the same up to names."""

    accuracy: float
    nmi: float
    ari: float


def cluster_accuracy(y: Any, clusters: Any) -> float:
    r"""Return the share of rows that are right under the best one-to-one matching.

    .. math:: \frac 1 n \max_\pi \sum_c \left| \{ i : \text{cluster}_i = c, y_i = \pi(c) \} \right|

    Clusters are matched with classes by the Hungarian method; rows of an unmatched cluster or class
    count as wrong.

    Parameters
    ----------
    y, clusters : array-like of shape (n,)
        Class and cluster of each row: numbers, strings or both. -1, which marks noise in some
        methods, is a cluster like any other.
    """
    return _matched_share(*_check_pair(y, clusters))


def clustering_scores(y: Any, clusters: Any) -> ClusteringScores:
    """Return `cluster_accuracy`, normalised mutual information and adjusted Rand index.

    Parameters
    ----------
    y, clusters : array-like of shape (n,)
        Class and cluster of each row, as in `cluster_accuracy`.
    """
    pair = _check_pair(y, clusters)
    nmi, ari = normalized_mutual_info_score(*pair), adjusted_rand_score(*pair)
    return ClusteringScores(_matched_share(*pair), float(nmi), float(ari))


def count_labels(labels: Any, name: str) -> int:
    """Return the number of labels; raise unless they are a list of at least one."""
    with naming(name, labels):
        shape = np.shape(labels)
    if len(shape) != 1:
        raise ValueError(f"{name} has shape {shape}: pass one label for each row")
    if len(labels) == 0:
        raise ValueError(f"{name} is empty: pass the label of at least one row")
    return len(labels)


def _matched_share(y: Rows, clusters: Rows) -> float:
    counts = contingency_matrix(y, clusters)
    return float(counts[linear_sum_assignment(counts, maximize=True)].sum() / len(y))


def _check_pair(y: Any, clusters: Any) -> tuple[Rows, Rows]:
    n, n_clusters = count_labels(y, "y"), count_labels(clusters, "clusters")
    if n != n_clusters:
        raise ValueError(
            f"y has {n} labels, but clusters has {n_clusters}: pass both for the same rows"
        )
    return _number(y, "y"), _number(clusters, "clusters")


def _number(labels: Any, name: str) -> Rows:
    """Return labels as numbers 0, 1, ...; raise if a row has no label."""
    # One by one, because NumPy would turn 1 among strings into a string.
    keys: dict[Any, int] = {}
    with naming(name, labels):  # a label that is a list cannot be compared
        numbers = np.array([keys.setdefault(label, len(keys)) for label in labels], dtype=np.intp)
    if any(key is None or key != key for key in keys):
        raise ValueError(f"{name} has rows without a label (None or NaN): leave these rows out")
    return numbers
