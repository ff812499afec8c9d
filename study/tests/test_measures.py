"""Measures of the study against dense formulas, brute force and scikit-learn."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from dkae_study.experiments.alignment_losses import (
    alignment_loss_curve,
    ideal_loss,
    mean_over_blocks,
)
from dkae_study.experiments.clusterings import clustering_scores, spectral_clustering
from sklearn.cluster import SpectralClustering

from dkae.grams import MatrixGram
from dkae.metrics import alignment_loss

RNG = np.random.default_rng(0)


def random_gram(n=30):
    codes = RNG.standard_normal((n, 4))
    return MatrixGram(codes @ codes.T)


def test_the_curve_is_l_c_of_each_part_of_the_codes(monkeypatch):
    monkeypatch.setattr("dkae_study.experiments.alignment_losses.N_CHUNK_ROWS", 7)
    codes, prior = RNG.standard_normal((30, 5)).astype(np.float32), random_gram()
    parts = (codes[:, :m].astype(float) for m in range(1, 6))
    expected = [alignment_loss(Z @ Z.T, prior) for Z in parts]
    np.testing.assert_allclose(alignment_loss_curve(codes, prior), expected, atol=1e-7)


def test_rows_without_a_label_are_like_no_other():
    y, gram = np.array([0, 1, 1, -1, 0, -1]), random_gram(6)
    ideal = (y[:, None] == y) * np.outer(y >= 0, y >= 0) * 1.0
    assert ideal_loss(gram, y) == pytest.approx(alignment_loss(gram, ideal))


def test_blocks_are_disjoint_and_the_rest_is_dropped(monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dkae.metrics.alignment_loss", lambda a, b: seen.append(a.diagonal()) or len(seen)
    )
    a = MatrixGram(np.diag(np.arange(20)))
    assert mean_over_blocks(a, a, 6) == 2
    assert [len(ids) for ids in seen] == [6, 6, 6]
    assert len(set(np.concatenate(seen))) == 18


def test_accuracy_is_that_of_the_best_matching():
    for _ in range(20):
        y, clusters = RNG.integers(0, 3, 15), RNG.integers(0, 4, 15)
        best = max(np.mean(np.array(names)[clusters] == y) for names in permutations(range(4)))
        assert clustering_scores(y, clusters)["accuracy"] == pytest.approx(best)
    assert clustering_scores(y, y + 1) == {"accuracy": 1, "nmi": 1, "ari": 1}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_spectral_clusters_are_those_of_scikit_learn(dtype):
    y = RNG.integers(3, size=90)
    codes = RNG.uniform(0, 0.3, (90, 6))
    codes[np.arange(90), 2 * y] += RNG.uniform(0.7, 1, 90)
    ours = spectral_clustering(codes.astype(dtype), 3, 0)
    theirs = SpectralClustering(3, affinity="precomputed", random_state=0)
    for expected in (y, theirs.fit_predict(codes @ codes.T)):
        assert clustering_scores(expected, ours)["accuracy"] == 1
