"""Nyström features: chunks, precision and round-off; tests/oracles has their values."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from dkae.kernels import NystroemFeatures, PairwiseKernel, ProbabilisticClusterKernel
from dkae.kernels import nystroem as module
from dkae.kernels.nystroem import root_of

X = (load_digits().data / 16).astype(np.float32)
ROWS, LANDMARKS = X[:1200], X[1200:1500]
RBF = PairwiseKernel("rbf").fit(X)


def test_the_root_is_that_of_the_inverse():
    gram = RBF.gram(LANDMARKS)
    root = root_of(gram)
    np.testing.assert_allclose(root.T @ gram @ root, np.eye(len(gram)), atol=1e-6)
    rank_one = root_of(np.ones((5, 5), np.float32))
    assert rank_one.shape == (5, 1)
    assert root_of(np.zeros((5, 5))).shape == (5, 0)


def test_chunks_make_no_difference(monkeypatch):
    whole = NystroemFeatures(RBF, LANDMARKS, 8).fit(ROWS)
    monkeypatch.setattr(module, "N_CHUNK_ROWS", 101)
    parts = NystroemFeatures(RBF, LANDMARKS, 8).fit(ROWS)
    np.testing.assert_allclose(np.abs(parts(ROWS)), np.abs(whole(ROWS)), atol=1e-6)


def test_codes_have_the_precision_of_the_projection():
    features = NystroemFeatures(RBF, LANDMARKS, 8).fit(ROWS)
    codes = features(ROWS)
    assert codes.dtype == np.float64
    features.projection = features.projection.astype(np.float32)
    assert features(ROWS).dtype == np.float32
    np.testing.assert_allclose(features(ROWS), codes, atol=1e-4)


@pytest.mark.parametrize(
    "kernel",
    [PairwiseKernel("rbf", gamma=1e-3), RBF, ProbabilisticClusterKernel(6, 5, random_state=0)],
    ids=["smooth", "rbf", "pck"],
)
def test_the_cut_off_loses_nothing_and_adds_no_noise(kernel, monkeypatch):
    """Kernels in float32; the codes too."""
    kernel = kernel.fit(X)
    P = kernel.values(ROWS.astype(np.float64))

    def error(tolerance):
        monkeypatch.setattr(module, "RANK_TOLERANCE", tolerance)
        features = NystroemFeatures(kernel, LANDMARKS)
        features.projection = features.projection.astype(np.float32)
        codes = features(ROWS).astype(np.float64)
        return np.linalg.norm(codes @ codes.T - P) / np.linalg.norm(P)

    ours = error(1e-7)
    assert ours < min(map(error, (1e-5, 1e-6, 1e-8, 1e-9, 1e-11))) + 2e-6
