"""What networks see of rows, and models that know no units."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics.pairwise import rbf_kernel

from dkae import DeepKernelizedAutoencoder
from dkae.networks import VARIANCE, Scaling, Stack, learn_scaling
from dkae.statistics import Statistics
from dkae.training import Optimization
from tests.nets import Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 5)).astype(np.float32)
GRAM = rbf_kernel(X, gamma=0.2)


def make(how="auto", **params):
    defaults = {
        "n_components": 3,
        "network": Stack((12,), input_scaling=how),
        "max_iter": 3,
        "decoder_max_iter": 1,
        "steps_per_epoch": 5,
        "batch_size": 40,
        "random_state": 0,
    }
    return DeepKernelizedAutoencoder(**(defaults | params))


def scaling_of(rows, how="auto"):
    return learn_scaling(Statistics.of(rows), how)


@pytest.mark.parametrize(("load", "is_shared"), [(load_digits, True), (load_wine, False)])
def test_pixels_share_a_scale_tables_have_one_for_each_feature(load, is_shared):
    rows = load().data.astype(np.float32)
    scaling = scaling_of(rows)
    assert (scaling.scale.ndim == 0) == is_shared
    seen = scaling(torch.from_numpy(rows)).numpy().astype(np.float64)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-4)
    if is_shared:
        assert np.square(seen).mean() == pytest.approx(1, rel=1e-4)
    else:
        np.testing.assert_allclose(seen.std(axis=0), 1, rtol=1e-3)


@pytest.mark.parametrize("how", ["features", "shared"])
@pytest.mark.parametrize("value", [0.0, 1 / 3, 1e6 / 3, -12345.678])
def test_there_and_back_and_constants_are_only_centred(how, value):
    rows = X * np.float32([1, 2, 100, 1, 1]) + 7
    rows[:, 1] = value
    scaling, x = scaling_of(rows, how), torch.from_numpy(rows)
    seen = scaling(x)
    assert seen[:, 1].abs().max() <= 1e-6 * max(1, abs(value))
    torch.testing.assert_close(scaling.inverse(seen), x, rtol=1e-5, atol=1e-4)
    assert (scaling_of(np.full((5, 2), value, np.float32), how).scale == 1).all()


def test_round_off_of_a_constant_is_not_blown_up():
    rows = X.copy()
    rows[:, 2] = np.float32(1e4) * (1 + np.float32(1e-7) * RNG.integers(-1, 2, 100))
    assert rows[:, 2].std() > 0
    assert np.abs(scaling_of(rows, "features")(torch.from_numpy(rows)).numpy()).max() < 10


def test_an_output_with_an_activation_is_a_row_as_it_is():
    h = torch.rand(4, 5)
    for scales_output, expected in ((True, 1 + 2 * h), (False, h)):
        scaling = Scaling(torch.ones(5), torch.tensor(2.0), scales_output=scales_output)
        torch.testing.assert_close(scaling.inverse(h), expected)


# --- models know no units ------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"pretrain_max_iter": 1}])
def test_a_model_is_the_same_in_any_units(params):
    a, b = np.float32([1, 1000, 0.01, 7, 2]), np.float32([0, 5, 1, -100, 3])
    # A range in [0, 1] would ask for a sigmoid: neither has one.
    plain = make("features", **params).fit(X, gram=GRAM)
    other = make("features", **params).fit(a * X + b, gram=GRAM)
    codes = plain.transform(X)
    np.testing.assert_allclose(other.transform(a * X + b), codes, atol=1e-3 * np.abs(codes).max())
    back = plain.inverse_transform(codes)
    np.testing.assert_allclose((other.inverse_transform(codes) - b) / a, back, atol=1e-2)
    for mine, its in zip(plain.history_, other.history_, strict=True):
        assert its["loss"] == pytest.approx(mine["loss"], rel=1e-3)
    assert other.r2_ == pytest.approx(plain.r2_, abs=1e-3)


@pytest.mark.parametrize("how", ["features", "shared"])
def test_the_reconstruction_loss_is_a_part_of_what_is_left_unexplained(how):
    model = make(
        how, max_iter=1, decoder_max_iter=0, steps_per_epoch=1, batch_size=100,
        optimization=Optimization(learning_rate_init=1e-12),
    ).fit(X * np.float32([1, 2, 3, 1, 1]))  # fmt: skip
    expected = VARIANCE * (1 - model.r2_)
    assert model.history_[0]["reconstruction_loss"] == pytest.approx(expected, rel=1e-3)


class Watching(Linear):
    """A custom network that keeps what it sees."""

    def encode(self, x):
        self.seen = x.detach()
        return super().encode(x)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_custom_network_sees_rows_as_they_are_unless_told(standardize):
    rows = 100 * X + 50
    model = make(network=Watching, standardize=standardize, decoder_max_iter=0).fit(rows)
    model.transform(rows)
    expected = (rows - rows.mean(axis=0)) / rows.std(axis=0) if standardize else rows
    np.testing.assert_allclose(model.network_.seen.numpy(), expected, rtol=1e-3, atol=1e-3)
