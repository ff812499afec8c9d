"""Batched expectation maximisation against scikit-learn's GaussianMixture, step by step."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture

from dkae.kernels import mixtures as module
from dkae.kernels.mixtures import (
    FitResult,
    Mixtures,
    first_densities,
    fit_mixtures,
    log_joint,
    moments_of,
    posteriors,
    unit_of,
)


def clouds(seed: int, n: int = 60, d: int = 4) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = 3 * rng.standard_normal((3, d))
    return rng.standard_normal((n, d)) * rng.uniform(0.3, 2, d) + centres[rng.integers(3, size=n)]


def start(X: np.ndarray, sizes: list[int], seed: int) -> Mixtures:
    """Mixtures that start at random rows with covariances of different sizes."""
    rng = np.random.default_rng(seed)
    means = np.concatenate([X[rng.choice(len(X), g, replace=False)] for g in sizes])
    variances = X.var(axis=0) * rng.uniform(0.5, 2, (len(means), 1))
    weights = np.concatenate([rng.dirichlet(np.ones(g)) for g in sizes])
    return Mixtures(torch.tensor(sizes), *map(torch.from_numpy, (weights, means, variances)))


def fit(X: np.ndarray, initial: Mixtures, **params) -> FitResult:
    rows = torch.from_numpy(X)
    joint = log_joint(moments_of(rows), *initial.components)
    return fit_mixtures(rows, initial.sizes, lambda part: joint[part].clone(), **params)


def part_of(mixtures: Mixtures, i: int) -> slice:
    end = int(mixtures.sizes[: i + 1].sum())
    return slice(end - int(mixtures.sizes[i]), end)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), reg_covar=st.sampled_from([1e-6, 1e-3, 0.1]))
def test_same_start_same_result_as_scikit_learn(seed, reg_covar):
    X = clouds(seed)
    initial = start(X, [2, 2, 3, 5], seed)
    params = {"reg_covar": reg_covar, "tol": 1e-3, "max_iter": 200}
    result = fit(X, initial, **params)
    ours = posteriors(torch.from_numpy(X), result.mixtures).numpy()
    for i, size in enumerate(initial.sizes.tolist()):
        part = part_of(initial, i)
        theirs = GaussianMixture(
            size, covariance_type="diag",
            weights_init=initial.weights[part].numpy(), means_init=initial.means[part].numpy(),
            precisions_init=1 / initial.covariances[part].numpy(),
            init_params="random_from_data", random_state=0, **params,
        ).fit(X)  # fmt: skip
        assert bool(result.converged[i]) == theirs.converged_
        assert int(result.n_iter[i]) == theirs.n_iter_
        for name in ("weights", "means", "covariances"):
            found, expected = getattr(result.mixtures, name)[part], getattr(theirs, f"{name}_")
            np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_allclose(ours[:, part], theirs.predict_proba(X), atol=1e-6)


def test_a_collapsed_mixture_does_not_converge_and_harms_no_other():
    X = np.vstack([np.zeros((5, 2)), clouds(0, d=2)])
    initial = start(X[5:], [2, 2], 0)
    initial.means[0] = 0  # a component that will hold the five equal rows alone
    initial.covariances[0] = 1e-12
    result = fit(X, initial, reg_covar=0.0, max_iter=100, tol=1e-3)
    assert result.converged.tolist() == [False, True]
    assert torch.isfinite(result.mixtures.means[2:]).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, torch.nan, torch.inf])
def test_a_mixture_that_the_last_step_spoils_does_not_count(bad, monkeypatch):
    X, steps, maximize = clouds(0), [], module._maximize
    initial, params = start(X, [3], 0), {"reg_covar": 1e-3, "tol": 1e-3, "max_iter": 100}
    plain = fit(X, initial, **params)
    assert plain.converged.all()

    def spoiling(*args):
        weights, means, variances = maximize(*args)
        steps.append(1)
        if len(steps) == int(plain.n_iter):
            variances[0, 0] = bad
        return weights, means, variances

    monkeypatch.setattr(module, "_maximize", spoiling)
    assert not fit(X, initial, **params).converged.any()


@pytest.mark.parametrize("constant", ["UNMOVED", "MAX_DENSITY"])
def test_what_is_left_out_changes_nothing(constant, monkeypatch):
    """Components that did not move, and shares of rows in components that do not matter."""
    # In high dimension posteriors are sharp: most components soon keep their members.
    X = clouds(1, n=80, d=60)
    initial = start(X, [3, 6, 6, 9, 20], 2)
    params = {"reg_covar": 1e-3, "tol": 1e-9, "max_iter": 200}
    moved, maximize = [], module._maximize

    def counting(moments, responsibilities, reg_covar):
        moved.append(len(responsibilities))
        return maximize(moments, responsibilities, reg_covar)

    monkeypatch.setattr(module, "_maximize", counting)
    monkeypatch.setattr(module, "MAX_DENSITY", 2.0)
    ours = fit(X, initial, **params)
    n_moved = sum(moved)
    monkeypatch.setattr(module, constant, -1.0)
    plain = fit(X, initial, **params)
    if constant == "UNMOVED":
        assert n_moved < 0.9 * (sum(moved) - n_moved)
    assert torch.equal(ours.n_iter, plain.n_iter)
    for a, b in zip(ours.mixtures.components, plain.mixtures.components, strict=True):
        torch.testing.assert_close(a, b)


# --- the first step ------------------------------------------------------------------------------


def test_the_first_components_are_around_g_distinct_rows():
    rows = torch.from_numpy(clouds(0, n=40))
    rows = rows - rows.mean(dim=0)
    sizes, log_densities = first_densities(rows, 5, 3, reg_covar=1e-3, seed=7)
    assert sizes.tolist() == [2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]
    first = [
        np.random.default_rng([7, i % 3, g]).choice(40, g, replace=False)
        for i, g in enumerate(sizes.tolist())
    ]
    normal = torch.distributions.Normal(
        rows[np.concatenate(first)].unsqueeze(1), (rows.square().mean() + 1e-3).sqrt()
    )
    weights = torch.repeat_interleave(1 / sizes.double(), sizes).unsqueeze(1)
    expected = normal.log_prob(rows).sum(dim=2) + weights.log()
    torch.testing.assert_close(log_densities(slice(None)), expected)
    torch.testing.assert_close(log_densities(slice(5, 9)), expected[5:9])


@pytest.mark.parametrize(
    ("deviation", "unit"), [(0.15, 1), (0.45, 1), (1.4, 1), (0.14, 0.1), (1.5, 10), (3e-9, 1e-8)]
)
def test_the_unit_of_rows_is_a_power_of_ten(deviation, unit):
    rows = torch.tensor([[-1.0], [1.0]], dtype=torch.float64) * deviation + 5
    assert unit_of(rows) == unit
    assert unit_of(rows[:1]) == 1
