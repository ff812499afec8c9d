"""Divergences against pyRiemann, SciPy, and closed forms in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from pyriemann.geometry.distance import distance_logdet, distance_wasserstein
from scipy.linalg import logm

from dkae.alignment import bures, jensen_renyi, logdet, von_neumann
from dkae.alignment.divergences import EPSILON

K = 7
DIVERGENCES = (logdet, von_neumann, jensen_renyi, bures)
seeds = st.integers(0, 10_000)


def random_gram(seed, width=K):
    codes = np.random.default_rng(seed).standard_normal((K, width))
    return codes @ codes.T


def density(gram):
    return (gram / np.trace(gram) + EPSILON / len(gram) * np.eye(len(gram))) / (1 + EPSILON)


def measured(measure, C, P):
    return measure(torch.from_numpy(C), torch.from_numpy(P)).item()


def pairs(width=K):
    return [(random_gram(seed, width), random_gram(seed + 100)) for seed in range(5)]


def renyi_entropy(A, alpha):
    return math.log2(np.sum(np.linalg.eigvalsh(A) ** alpha)) / (1 - alpha)


def jensen_difference(A, B, alpha):
    ends = renyi_entropy(A, alpha) + renyi_entropy(B, alpha)
    return renyi_entropy((A + B) / 2, alpha) - ends / 2


# --- oracles -------------------------------------------------------------------------------------


def log_divergence(A, B):
    return np.trace(A @ logm(A) - A @ logm(B) - A + B)


ORACLES = {
    logdet: lambda A, B: distance_logdet(A, B, squared=True) / K,
    bures: lambda A, B: distance_wasserstein(A, B, squared=True),
    von_neumann: log_divergence,
}


@pytest.mark.parametrize("measure", ORACLES, ids=lambda measure: measure.__name__)
def test_it_is_that_of_pyriemann_and_scipy(measure):
    for C, P in pairs() + pairs(width=3):
        expected = ORACLES[measure](density(C), density(P))
        assert measured(measure, C, P) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("alpha", [1 - 1e-5, 1 + 1e-5])
def test_jensen_renyi_is_the_limit_of_orders_near_one(alpha):
    for C, P in pairs() + pairs(width=3):
        expected = jensen_difference(density(C), density(P), alpha)
        assert measured(jensen_renyi, C, P) == pytest.approx(expected, abs=1e-4)


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("measure", "largest"), [(jensen_renyi, 1), (bures, 2)])
def test_matrices_without_a_common_direction_are_at_the_far_end(measure, largest):
    C, P = np.diag([1.0, 0, 0, 0]), np.diag([0, 1.0, 0, 0])
    assert 0.95 * largest < measured(measure, C, P) < largest


def test_an_indefinite_prior_counts_as_its_nearest_semidefinite_one():
    rotation, _ = np.linalg.qr(random_gram(0))
    eigenvalues = np.array([4.0, 3, 2, 1, 0, 0, -1])
    P, nearest = ((rotation * v) @ rotation.T for v in (eigenvalues, eigenvalues.clip(0)))
    near = nearest / np.trace(nearest) + 0.05 * random_gram(1) / np.trace(random_gram(1))
    for measure in DIVERGENCES:
        far = measured(measure, random_gram(1), P)
        assert measured(measure, nearest, P) < 0.01 * far
        assert measured(measure, near, P) == pytest.approx(
            measured(measure, near, nearest), rel=0.2
        )


# --- what the docstrings say ---------------------------------------------------------------------


def test_a_zero_matrix_counts_as_the_identity():
    P = random_gram(0)
    for measure in DIVERGENCES:
        expected = measured(measure, np.eye(K), P)
        assert measured(measure, np.zeros((K, K)), P) == pytest.approx(expected, rel=1e-9)


def test_logdet_of_singular_codes_is_a_matter_of_epsilon(monkeypatch):
    C, P = random_gram(0, 2), random_gram(1)
    before = {measure: measured(measure, C, P) for measure in DIVERGENCES}
    monkeypatch.setattr("dkae.alignment.divergences.EPSILON", EPSILON / 100)
    change = {measure: measured(measure, C, P) / value for measure, value in before.items()}
    assert change.pop(logdet) > 1.5
    assert all(value == pytest.approx(1, abs=0.1) for value in change.values())
