"""Batched expectation maximisation against scikit-learn's GaussianMixture, step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from dkae.kernels.cluster import em
from dkae.kernels.cluster.em import FitResult, fit_mixtures
from dkae.kernels.cluster.initialization import INITS, first_means, initial_mixtures, unit_of
from dkae.kernels.cluster.mixtures import (
    COVARIANCES,
    Mixtures,
    log_joint,
    posteriors,
)

PRECISIONS = {
    "diag": lambda c: 1 / c,
    "spherical": lambda c: 1 / c[:, 0],
    "full": np.linalg.inv,
}


def clouds(seed: int, n: int = 60, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 3 * rng.standard_normal((3, d))
    return rng.standard_normal((n, d)) * rng.uniform(0.3, 2, d) + centres[rng.integers(3, size=n)]


def start(X: np.ndarray, sizes: list[int], covariance_type: str, seed: int) -> Mixtures:
    """Mixtures that start at random rows with covariances of different sizes."""
    rng = np.random.default_rng(seed)
    means = np.concatenate([X[rng.choice(len(X), g, replace=False)] for g in sizes])
    n, d = means.shape
    variances = X.var(axis=0) * rng.uniform(0.5, 2, (n, 1))
    covariances = {
        "diag": variances,
        "spherical": variances.mean(axis=1, keepdims=True),
        "full": variances[:, :, None] * np.eye(d),
    }[covariance_type]
    weights = np.concatenate([rng.dirichlet(np.ones(g)) for g in sizes])
    return Mixtures(torch.tensor(sizes), *map(torch.from_numpy, (weights, means, covariances)))


def fit(X: torch.Tensor, initial: Mixtures, covariance_type: str, **params) -> FitResult:
    joint = log_joint(X, initial)
    sizes = initial.sizes
    return fit_mixtures(X, sizes, lambda part: joint[part].clone(), covariance_type, **params)


def components(mixtures: Mixtures, i: int) -> slice:
    end = int(mixtures.sizes[: i + 1].sum())
    return slice(end - int(mixtures.sizes[i]), end)


def theirs(X, initial: Mixtures, i: int, covariance_type, **params) -> GaussianMixture:
    part = components(initial, i)
    return GaussianMixture(
        int(initial.sizes[i]),
        covariance_type=covariance_type,
        weights_init=initial.weights[part].numpy(),
        means_init=initial.means[part].numpy(),
        precisions_init=PRECISIONS[covariance_type](initial.covariances[part].numpy()),
        init_params="random_from_data",
        random_state=0,
        **params,
    ).fit(X)


@pytest.mark.parametrize("covariance_type", COVARIANCES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), reg_covar=st.sampled_from([1e-6, 1e-3, 0.1]))
def test_same_start_same_result_as_scikit_learn(covariance_type, seed, reg_covar):
    X = clouds(seed)
    initial = start(X, [2, 2, 3, 5], covariance_type, seed)
    params = {"reg_covar": reg_covar, "tol": 1e-3, "max_iter": 200}
    result = fit(torch.from_numpy(X), initial, covariance_type, **params)
    ours = posteriors(torch.from_numpy(X), result.mixtures).numpy()
    for i in range(4):
        expected, part = theirs(X, initial, i, covariance_type, **params), components(initial, i)
        assert bool(result.converged[i]) == expected.converged_
        assert int(result.n_iter[i]) == expected.n_iter_
        np.testing.assert_allclose(result.mixtures.means[part], expected.means_, atol=1e-6)
        np.testing.assert_allclose(result.mixtures.weights[part], expected.weights_, atol=1e-6)
        np.testing.assert_allclose(
            result.mixtures.covariances[part].squeeze(), expected.covariances_, atol=1e-6
        )
        np.testing.assert_allclose(ours[:, part], expected.predict_proba(X), atol=1e-6)


def test_a_collapsed_mixture_does_not_converge_and_harms_no_other():
    X = torch.from_numpy(np.vstack([np.zeros((5, 2)), clouds(0, d=2)]))
    initial = start(X.numpy()[5:], [2, 2], "diag", 0)
    initial.means[0] = 0  # a component that will hold the five equal rows alone
    initial.covariances[0] = 1e-12
    result = fit(X, initial, "diag", reg_covar=0.0, max_iter=100, tol=1e-3)
    assert result.converged.tolist() == [False, True]
    assert torch.isfinite(result.mixtures.means[2:]).all()


def test_a_mixture_that_the_last_step_spoils_does_not_count():
    for seed in range(60):
        X = np.round(np.random.default_rng(seed).normal(size=(25, 2)), 1) + 1e3
        result = fit(
            torch.from_numpy(X), start(X, [2, 3, 5, 6], "full", seed), "full",
            reg_covar=0.0, max_iter=50, tol=1e-3,
        )  # fmt: skip
        kept = result.mixtures.select(result.converged)
        if len(kept.sizes):
            assert torch.isfinite(posteriors(torch.from_numpy(X), kept)).all()


@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_leaving_out_what_did_not_move_changes_nothing(covariance_type, monkeypatch):
    # In high dimension posteriors are sharp: most components soon keep their members.
    X = torch.from_numpy(clouds(1, n=80, d=60))
    initial = start(X.numpy(), [3, 6, 6, 9], covariance_type, 2)
    params = {"reg_covar": 1e-3, "tol": 1e-9, "max_iter": 200}
    moves, maximize = [], em._maximize

    def counting(X, moments, responsibilities, *args):
        moves.append(len(responsibilities))
        return maximize(X, moments, responsibilities, *args)

    monkeypatch.setattr(em, "_maximize", counting)
    ours = fit(X, initial, covariance_type, **params)
    n_ours = sum(moves)
    monkeypatch.setattr(em, "UNMOVED", -1.0)
    plain = fit(X, initial, covariance_type, **params)
    assert n_ours < 0.9 * (sum(moves) - n_ours)
    assert torch.equal(ours.n_iter, plain.n_iter)
    for a, b in zip(vars(ours.mixtures).values(), vars(plain.mixtures).values(), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("covariance_type", ["diag", "spherical"])
def test_sparse_averages_are_the_dense_ones(covariance_type, monkeypatch):
    X = torch.from_numpy(clouds(1, n=80, d=60))
    initial = start(X.numpy(), [12, 20, 25], covariance_type, 2)
    params = {"reg_covar": 1e-3, "tol": 1e-9, "max_iter": 200}
    monkeypatch.setattr(em, "MAX_DENSITY", 2.0)
    few = fit(X, initial, covariance_type, **params)
    monkeypatch.setattr(em, "MAX_DENSITY", 0.0)
    all_rows = fit(X, initial, covariance_type, **params)
    assert torch.equal(few.n_iter, all_rows.n_iter)
    for a, b in zip(vars(few.mixtures).values(), vars(all_rows.mixtures).values(), strict=True):
        torch.testing.assert_close(a, b)


# --- the first step ------------------------------------------------------------------------------


@pytest.mark.parametrize("init", INITS)
def test_the_first_components_are_around_g_rows(init):
    rows = torch.from_numpy(clouds(0, n=40))
    rows = rows - rows.mean(dim=0)
    sizes, log_densities = initial_mixtures(rows, 5, 3, init=init, reg_covar=1e-3, seed=7)
    assert sizes.tolist() == [2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]
    first = [first_means(rows, g, init, [7, i % 3, g]) for i, g in enumerate(sizes.tolist())]
    normal = torch.distributions.Normal(
        rows[np.concatenate(first)].unsqueeze(1), (rows.square().mean() + 1e-3).sqrt()
    )
    weights = torch.repeat_interleave(1 / sizes.double(), sizes).unsqueeze(1)
    expected = normal.log_prob(rows).sum(dim=2) + weights.log()
    torch.testing.assert_close(log_densities(slice(None)), expected)
    torch.testing.assert_close(log_densities(slice(5, 9)), expected[5:9])


@pytest.mark.parametrize("init", INITS)
def test_first_means_are_distinct_and_depend_on_the_seed_alone(init):
    rows = torch.from_numpy(clouds(0, n=40))
    a, b, c = (first_means(rows, 12, init, [0, q, 12]).tolist() for q in (1, 1, 2))
    assert len(set(a)) == 12
    assert a == b != c


@pytest.mark.parametrize(
    ("deviation", "unit"), [(0.15, 1), (0.45, 1), (1.4, 1), (0.14, 0.1), (1.5, 10), (3e-9, 1e-8)]
)
def test_the_unit_of_rows_is_a_power_of_ten(deviation, unit):
    rows = torch.tensor([[-1.0], [1.0]], dtype=torch.float64) * deviation + 5
    assert unit_of(rows) == unit
    assert unit_of(rows[:1]) == 1
