"""What networks see of rows: statistics as NumPy has them, and models that know no units."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dkae.networks.statistics import Statistics, learn_scaling
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.metrics.pairwise import rbf_kernel
from torch import nn

from dkae import DeepKernelizedAutoencoder
from dkae.networks import Scaled, Scaling, StackedNetwork, scaled, statistics
from dkae.networks.scaling import VARIANCE
from dkae.recipes import paper
from tests.nets import Linear

RNG = np.random.default_rng(0)
X = RNG.normal(size=(100, 5)).astype(np.float32)
GRAM = rbf_kernel(X, gamma=0.2)


def make(**params):
    defaults = {
        "n_components": 3,
        "network": "stacked",
        "hidden_layer_sizes": (12,),
        "max_iter": 3,
        "decoder_max_iter": 1,
        "steps_per_epoch": 5,
        "batch_size": 40,
        "random_state": 0,
    }
    return DeepKernelizedAutoencoder(**(defaults | params))


# --- statistics ----------------------------------------------------------------------------------


@given(
    st.integers(1, 40),
    st.integers(1, 5),
    st.integers(1, 60),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 100.0]),
)
def test_statistics_are_numpy_s_in_chunks_of_any_size(n, d, chunk, gaps, shift):
    rng = np.random.default_rng(n + 100 * d)
    rows = (rng.normal(size=(n, d)) + shift).astype(np.float32)
    rows[rng.random((n, d)) < gaps] = np.nan
    rows[0] = shift  # a value of each feature at least
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(statistics, "N_CHUNK_NUMBERS", chunk)
        found = Statistics.of(rows)
        ends = found.range
    exact = rows.astype(np.float64)
    np.testing.assert_allclose(found.mean, np.nanmean(exact, axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.variance, np.nanvar(exact, axis=0), rtol=1e-9, atol=1e-10)
    np.testing.assert_array_equal(found.low, np.nanmin(exact, axis=0))
    np.testing.assert_array_equal(found.high, np.nanmax(exact, axis=0))
    assert ends == (np.nanmin(exact), np.nanmax(exact))


@pytest.mark.parametrize("i", [0, 3])
def test_a_chunk_without_any_value_does_not_hide_the_range(i, monkeypatch):
    monkeypatch.setattr(statistics, "N_CHUNK_NUMBERS", 1)
    rows = np.random.default_rng(0).random((4, 3)).astype(np.float32)
    rows[i] = np.nan
    assert Statistics.of(rows).range == (np.nanmin(rows), np.nanmax(rows))


def test_statistics_of_images():
    images = RNG.random((30, 2, 4, 3)).astype(np.float32)
    found = Statistics.of(images)
    np.testing.assert_allclose(found.mean, images.mean(axis=0, dtype=np.float64), rtol=1e-9)
    np.testing.assert_allclose(found.variance, images.var(axis=0, dtype=np.float64), rtol=1e-9)


def test_the_largest_share_is_that_of_the_squared_distances():
    rows = (X * [1, 3, 1, 2, 1]).astype(np.float64)
    squares = np.square(rows[:, None] - rows[None]).sum(axis=(0, 1))
    j, share = Statistics.of(rows.astype(np.float32)).largest_share
    assert j == squares.argmax() == 1
    assert share == pytest.approx(squares[1] / squares.sum(), rel=1e-5)
    assert Statistics.of(np.ones((3, 2), np.float32)).largest_share == (0, 0.0)


# --- which scale ---------------------------------------------------------------------------------

SERIES = np.sin(np.linspace(0, 9, 50) + RNG.random((60, 1)) * 6) * (1 + RNG.random((60, 1)))


@pytest.mark.parametrize(
    ("load", "is_shared"),
    [
        (lambda: load_digits().data, True),
        (lambda: SERIES, True),
        (lambda: load_breast_cancer().data, False),
        (lambda: load_wine().data, False),
    ],
    ids=["pixels", "series", "breast cancer", "wine"],
)
def test_pixels_and_series_share_a_scale_tables_have_one_for_each_feature(load, is_shared):
    rows = load().astype(np.float32)
    scaling = learn_scaling(rows, "auto")
    assert (scaling.scale.ndim == 0) == is_shared
    seen = scaling(torch.from_numpy(rows)).numpy().astype(np.float64)
    np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-4)
    if is_shared:
        assert np.square(seen).mean() == pytest.approx(1, rel=1e-4)
    else:
        np.testing.assert_allclose(seen.std(axis=0), 1, rtol=1e-3)


@pytest.mark.parametrize("how", ["auto", "features", "shared", False])
def test_there_and_back(how):
    rows = torch.from_numpy(X * np.float32([1, 2, 100, 1, 1]) + 7)
    scaling = learn_scaling(rows.numpy(), how)
    torch.testing.assert_close(scaling.inverse(scaling(rows)), rows, rtol=1e-5, atol=1e-4)
    if how is False:
        assert torch.equal(scaling(rows), rows)


@pytest.mark.parametrize("how", ["features", "shared"])
@pytest.mark.parametrize("value", [0.0, 1.0, 1 / 3, 1e6 / 3, -12345.678])
def test_constant_features_are_only_centred(how, value):
    rows = X.copy()
    rows[:, 1] = value
    seen = learn_scaling(rows, how)(torch.from_numpy(rows)).numpy()
    assert np.abs(seen[:, 1]).max() <= 1e-6 * max(1, abs(value))
    assert np.isfinite(seen).all()
    assert (learn_scaling(np.full((5, 2), value, np.float32), how).scale == 1).all()


def test_round_off_of_a_constant_is_not_blown_up():
    rows = X.copy()
    rows[:, 2] = np.float32(1e4) * (1 + np.float32(1e-7) * RNG.integers(-1, 2, 100))
    assert rows[:, 2].std() > 0
    scaling = learn_scaling(rows, "features")
    assert scaling.scale[2] == 1
    assert np.abs(scaling(torch.from_numpy(rows)).numpy()).max() < 10


@pytest.mark.parametrize("value", [True, "feature", None, 1])
@pytest.mark.parametrize("network", ["stacked", "kernel_layer"])
def test_an_unknown_way_is_refused(value, network):
    message = "standardize=.* is not known: expected one of 'auto', 'features', 'shared'"
    with pytest.raises(ValueError, match=message):
        make(standardize=value, network=network).fit(X)


# --- models know no units ------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"linear_path": 0.3}, {"pretrain_max_iter": 1}])
def test_a_model_is_the_same_in_any_units(params):
    a, b = np.float32([1, 1000, 0.01, 7, 2]), np.float32([0, 5, 1, -100, 3])
    # A range in [0, 1] would ask for a sigmoid: neither has one.
    plain = make(standardize="features", **params).fit(X, gram=GRAM)
    other = make(standardize="features", **params).fit(a * X + b, gram=GRAM)
    codes = plain.transform(X)
    np.testing.assert_allclose(other.transform(a * X + b), codes, atol=1e-3 * np.abs(codes).max())
    back = plain.inverse_transform(codes)
    np.testing.assert_allclose((other.inverse_transform(codes) - b) / a, back, atol=1e-2)
    for mine, its in zip(plain.history_, other.history_, strict=True):
        assert its["loss"] == pytest.approx(mine["loss"], rel=1e-3)
    assert other.r2_ == pytest.approx(plain.r2_, abs=1e-3)


@pytest.mark.parametrize("how", ["features", "shared"])
def test_the_reconstruction_loss_is_a_part_of_what_is_left_unexplained(how):
    rows = X * np.float32([1, 2, 3, 1, 1])
    model = make(
        standardize=how, max_iter=1, decoder_max_iter=0, steps_per_epoch=1, batch_size=100,
        learning_rate_init=1e-12,
    ).fit(rows)  # fmt: skip
    expected = VARIANCE * (1 - model.r2_)
    assert model.history_[0]["reconstruction_loss"] == pytest.approx(expected, rel=1e-3)


def test_the_paper_s_recipe_sees_rows_as_they_are(digits):
    params = {
        "n_components": 3, "hidden_layer_sizes": (6,), "kernel": "rbf", "pretrain_max_iter": 0,
        "max_iter": 1, "steps_per_epoch": 1, "batch_size": 300, "learning_rate_init": 1e-12,
        "random_state": 0,
    }  # fmt: skip
    model = paper(**params).fit(digits)
    assert model.scaling_ is None
    error = digits - model.inverse_transform(model.transform(digits))
    loss = model.history_[0]["reconstruction_loss"]
    assert loss == pytest.approx(np.square(error).mean(), rel=1e-4)  # Eq. 3
    with torch.no_grad():
        h = torch.from_numpy(digits)
        for layer in model.network_.layers:
            assert not layer.norm
            h = torch.sigmoid(h @ layer.weight.T + layer.bias)  # Eq. 1
    np.testing.assert_allclose(model.transform(digits), h.numpy(), atol=1e-5)


class Watching(Linear):
    """A network of a user's that keeps what it sees."""

    def encode(self, x):
        self.seen = x.detach()
        return super().encode(x)


@pytest.mark.parametrize(
    ("how", "is_scaled"), [("auto", False), (False, False), ("features", True)]
)
def test_a_network_of_the_user_s_sees_rows_as_they_are_unless_told(how, is_scaled):
    rows = 100 * X + 50
    model = make(network=Watching, standardize=how, decoder_max_iter=0).fit(rows)
    model.transform(rows)
    seen = model.network_.seen.numpy()
    expected = (rows - rows.mean(axis=0)) / rows.std(axis=0) if is_scaled else rows
    np.testing.assert_allclose(seen, expected, rtol=1e-3, atol=1e-3)
    assert (model.scaling_ is not None) == is_scaled


def test_a_stack_of_the_user_s_sees_standardised_rows():
    rows = 100 * X + 50
    model = make(network=StackedNetwork((8,)), standardize="auto").fit(rows)
    assert model.scaling_ is not None
    assert model.r2_ > -1


# --- the module ----------------------------------------------------------------------------------


def test_an_output_with_an_activation_is_a_row_as_it_is():
    network, mean, scale = Linear((5,), 3), torch.ones(5), torch.tensor(2.0)
    codes = torch.rand(4, 3)
    with torch.no_grad():
        plain = network.decode(codes)
        for scales_output, expected in ((True, 1 + 2 * plain), (False, plain)):
            maps = Scaled(network, Scaling(mean, scale, scales_output=scales_output))
            torch.testing.assert_close(maps.decode(codes), expected)
            torch.testing.assert_close(maps.encode(mean[None]), network.encode(0 * mean[None]))


def test_nothing_stands_before_a_network_that_needs_no_scaling():
    network, scaling = Linear((5,), 3), Scaling(torch.zeros(5), torch.tensor(1.0))
    assert scaled(network, None) is network
    assert isinstance(scaled(network, scaling), Scaled)
    network.sees_rows = True
    assert scaled(network, scaling) is network


def test_missing_values_stay_without_a_fill():
    x = torch.tensor([[1.0, torch.nan]])
    assert Scaling(torch.zeros(2), torch.ones(2))(x).isnan().tolist() == [[False, True]]
    filled = Scaling(torch.zeros(2), torch.ones(2), torch.tensor([5.0, 6.0]))
    assert filled(x).tolist() == [[1.0, 6.0]]


def test_the_scaling_does_not_learn():
    assert not list(learn_scaling(X, "features").parameters())
    assert isinstance(learn_scaling(X, "features"), nn.Module)
