"""Clusters against classes: brute force over all matchings, and scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, adjusted_rand_score, normalized_mutual_info_score

from dkae.metrics import cluster_accuracy, clustering_scores

numbers = st.integers(1, 4).flatmap(lambda k: st.lists(st.integers(0, k), min_size=12, max_size=12))


def best_matching(y, clusters):
    """Try every way to give the clusters different names, of which some may be no class."""
    names = [*sorted(set(y)), *(f"none {i}" for i in range(len(set(clusters))))]
    found = sorted(set(clusters))
    share = 0.0
    for chosen in permutations(names, len(found)):
        renamed = dict(zip(found, chosen, strict=True))
        right = [label == renamed[cluster] for label, cluster in zip(y, clusters, strict=True)]
        share = max(share, sum(right) / len(y))
    return share


@given(st.integers(0, 10_000))
def test_brute_force(seed):
    rng = np.random.default_rng(seed)
    n_classes, n_clusters = rng.integers(1, 5, 2)
    y, clusters = rng.integers(0, n_classes, 15).tolist(), rng.integers(0, n_clusters, 15).tolist()
    assert cluster_accuracy(y, clusters) == pytest.approx(best_matching(y, clusters))


@given(numbers, numbers)
def test_scores_of_scikit_learn(y, clusters):
    scores = clustering_scores(y, clusters)
    assert scores._fields == ("accuracy", "nmi", "ari")
    assert all(type(score) is float for score in scores)
    assert accuracy_score(y, clusters) <= cluster_accuracy(y, clusters) == scores.accuracy <= 1
    assert scores.nmi == pytest.approx(normalized_mutual_info_score(y, clusters))
    assert scores.ari == pytest.approx(adjusted_rand_score(y, clusters))


@given(numbers, st.permutations("abcde"))
def test_names_do_not_matter(y, names):
    renamed = [names[label] for label in y]
    assert clustering_scores(y, renamed) == pytest.approx((1, 1, 1))
    assert clustering_scores(np.array(y), np.array(renamed)) == pytest.approx((1, 1, 1))


def test_matching_is_the_best_and_not_the_greedy_one():
    # A greedy choice would match class 0 with cluster 0, and get 3 + 0 right.
    y, clusters = [0] * 5 + [1] * 2, [0, 0, 0, 1, 1, 0, 0]
    assert cluster_accuracy(y, clusters) == cluster_accuracy(clusters, y) == pytest.approx(4 / 7)
    assert cluster_accuracy([0, 0, 1, 1], [-1, -1, 3, 3]) == 1  # -1 is a cluster like any other


@pytest.mark.parametrize(
    "labels",
    [
        [1, "1", 1, "1"],
        np.array([1, "1", 1, "1"], object),
        np.array([0.5, 2.5, 0.5, 2.5]),
        np.array([True, False, True, False]),
        np.array(["2020", "2021", "2020", "2021"], "datetime64[Y]"),
        ("a", b"a", "a", b"a"),
    ],
)
def test_any_type_of_label(labels):
    assert cluster_accuracy(labels, [0, 1, 0, 1]) == 1
    assert cluster_accuracy(labels, [0, 0, 1, 1]) == 0.5


@pytest.mark.parametrize(
    ("y", "clusters", "message"),
    [
        ([0, 1], [0, 1, 1], "y has 2 labels, but clusters has 3: pass both for the same rows"),
        ([], [], "y is empty: pass the label of at least one row"),
        ([0], [[0]], r"clusters has shape \(1, 1\): pass one label for each row"),
        (3, [0], r"y has shape \(\)"),
        (np.array([0, np.nan]), [0, 1], r"y has rows without a label \(None or NaN\): leave these"),
        ([0, 1], ["a", None], "clusters has rows without a label"),
    ],
)
def test_bad_labels(y, clusters, message):
    with pytest.raises(ValueError, match=message):
        clustering_scores(y, clusters)
