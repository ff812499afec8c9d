"""What a Stack builds: weights, options, widths; tests/oracles has its equations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dkae import recipes
from dkae.networks import Autoencoder, Stack, hidden_sizes
from dkae.networks.stack import NARROWEST, WIDEST
from dkae.statistics import Statistics
from dkae.training import Optimization

RNG = np.random.default_rng(0)


def build(sizes=(6, 5, 4, 3), *, seed=0, X=None, **params) -> Autoencoder:
    defaults = {
        "activation": "relu",
        "output_activation": "sigmoid",
        "layer_norm": False,
        "input_scaling": False,
    }
    d, *hidden, width = sizes
    known = Statistics.of(RNG.random((50, d)).astype(np.float32) if X is None else X)
    return Stack(hidden, **(defaults | params)).build(
        known, width, torch.Generator().manual_seed(seed)
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# --- the paper's network -------------------------------------------------------------------------


def test_activations_of_the_layers():
    network = build(activation="tanh", code_activation="relu")
    assert [layer.activation for layer in network.layers] == ["tanh", "tanh", "relu"]
    # A layer's decoder gives back what the layer below put out.
    assert [layer.output_activation for layer in network.layers] == ["sigmoid", "tanh", "tanh"]


@pytest.mark.parametrize("sizes", [(6, 5, 4, 3), (1, 4, 1)])
def test_untied_weights_start_as_tied_ones_and_are_separate(sizes):
    tied, network, x = build(sizes), build(sizes, tied_weights=False), torch.rand(7, sizes[0])
    torch.testing.assert_close(network(x), tied(x))
    n_layers = len(sizes) - 1
    # Of a tied layer: one weight, and two biases.
    assert [len(list(n.parameters())) for n in (tied, network)] == [3 * n_layers, 4 * n_layers]
    before = [layer.weight.detach().clone() for layer in network.layers]
    with torch.no_grad():
        for layer in network.layers:
            layer.decoder_weight += 1
    assert all(torch.equal(la.weight, w) for la, w in zip(network.layers, before, strict=True))


def test_gradients_of_tied_weights_are_added_in_place():
    """And not into another array of the size of the weights, at every step."""
    network = build()
    codes, back = network(torch.rand(7, 6))
    loss = codes.square().sum() + back.square().sum()
    with torch.profiler.profile(record_shapes=True) as profile:
        loss.backward()
    shapes = [list(layer.weight.shape) for layer in network.layers]
    sums = [
        e.name
        for e in profile.events()
        if "add" in e.name and e.input_shapes[:1] in [[s] for s in shapes]
    ]
    assert sums == ["aten::add_"] * len(shapes)


@pytest.mark.parametrize("tied", [True, False])
def test_glorot_initialisation(tied):
    layer = build((300, 200), tied_weights=tied).layers[0]
    bound = np.sqrt(6 / (300 + 200))
    for weight in [layer.weight] if tied else [layer.weight, layer.decoder_weight]:
        assert weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / np.sqrt(3), rel=0.02)
    assert not layer.bias.any()
    assert not layer.decoder_bias.any()


def test_lower_layers_start_the_same_whatever_the_code_size():
    narrow, wide = build((6, 5, 2)), build((6, 5, 9))
    assert torch.equal(narrow.layers[0].weight, wide.layers[0].weight)


def test_the_paper_s_recipe_is_eq_1_on_rows_as_they_are(digits):
    hardly = Optimization(learning_rate="constant", learning_rate_init=1e-12)
    model = recipes.paper(
        n_components=3, kernel="rbf", pretrain_max_iter=0, max_iter=1, steps_per_epoch=1,
        batch_size=300, optimization=hardly, random_state=0,
    ).set_params(network__hidden_layer_sizes=(6,)).fit(digits)  # fmt: skip
    error = digits - model.inverse_transform(model.transform(digits))
    loss = model.history_[0]["reconstruction_loss"]
    assert loss == pytest.approx(np.square(error).mean(), rel=1e-4)  # Eq. 3
    h = digits
    for layer in model.network_.layers:
        h = sigmoid(h @ layer.weight.detach().numpy().T + layer.bias.detach().numpy())
    np.testing.assert_allclose(model.transform(digits), h, atol=1e-5)


# --- what goes beyond the paper ------------------------------------------------------------------


def test_layer_norm_stands_before_the_activation_of_hidden_layers_alone():
    """By hand: (a - mean) / √(variance + 1e-5) over the units of a row."""
    network = build((5, 7, 6, 3), layer_norm=True, activation="tanh", output_activation="identity")
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(9, 5, generator=generator)
    h = x.double()
    for i, layer in enumerate(network.layers):
        with torch.no_grad():
            layer.bias.uniform_(-1, 1, generator=generator)
        h = h @ layer.weight.detach().double().T + layer.bias.detach().double()
        if i < 2:
            centred = h - h.mean(dim=1, keepdim=True)
            h = torch.tanh(centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt())
    torch.testing.assert_close(network.encode(x), h.float(), rtol=1e-4, atol=1e-5)
    # On the way down there is none.
    for layer in reversed(network.layers):
        a = h @ layer.weight.detach().double() + layer.decoder_bias.detach().double()
        h = a if layer is network.layers[0] else torch.tanh(a)
    torch.testing.assert_close(network.decode(network.encode(x)), h.float(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0, 1, "sigmoid"), (0, 0.4, "identity"), (-1, 1, "identity")]
)
def test_the_output_activation_follows_from_the_range(low, high, expected):
    X = np.linspace(low, high, 20, dtype=np.float32).reshape(10, 2)
    assert build((2, 3), X=X, output_activation="auto").layers[0].output_activation == expected


def test_a_sigmoid_that_cannot_give_rows_back_is_warned_of():
    X = RNG.normal(size=(20, 2)).astype(np.float32)
    with pytest.warns(UserWarning, match=r"'sigmoid' gives values in \(0, 1\) only, but X ranges"):
        build((2, 3), X=X)


# --- widths --------------------------------------------------------------------------------------

sizes = st.integers(1, 100_000)


@given(sizes, sizes, st.integers(1, 5000))
def test_widths_are_the_largest_that_the_data_allow(n, d, n_components):
    def n_weights(h):
        return d * h + h * h + h * n_components

    h, again = hidden_sizes("auto", (n, d), n_components)
    assert h == again
    assert NARROWEST <= h <= WIDEST
    assert h == NARROWEST or n_weights(h) <= n * (d + n_components)
    assert h == WIDEST or n_weights(h + 1) > n * (d + n_components)


@pytest.mark.parametrize(
    ("given_sizes", "expected"),
    [((3, 4), [3, 4]), ([], []), (7, [7]), (range(1, 3), [1, 2]), ("auto", [11, 11])],
)
def test_widths_that_are_given(given_sizes, expected):
    assert hidden_sizes(given_sizes, (20, 10), 5) == expected


# --- bad parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"hidden_layer_sizes": "wide"},
            r"hidden_layer_sizes='wide' is not known: pass 'auto' or widths, such as \(1000, 1000",
        ),
        ({"hidden_layer_sizes": (3, 0)}, "each of hidden_layer_sizes=0 must be a whole number"),
        ({"hidden_layer_sizes": 2.5}, "each of hidden_layer_sizes=2.5 must be a whole number"),
        ({"activation": "rleu"}, "activation='rleu' is not known.*did you mean 'relu'"),
        ({"code_activation": None}, "code_activation=None is not known"),
        ({"output_activation": "line"}, "output_activation='line' is not known: expected.*'auto'"),
        ({"layer_norm": "yes"}, "layer_norm='yes' must be True or False"),
        ({"tied_weights": 1}, "tied_weights=1 must be True or False"),
        (
            {"input_scaling": "feature"},
            "input_scaling='feature' is not known.*'auto', 'features', 'shared'",
        ),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(params, message, digits, tiny):
    with pytest.raises(ValueError, match=message):
        tiny(network=Stack(**params)).fit(digits)


def test_images_are_refused(digits, tiny):
    with pytest.raises(ValueError, match="Found array with dim 3"):
        tiny().fit(digits.reshape(-1, 8, 8))
    known = Statistics.of(digits.reshape(-1, 8, 8))
    with pytest.raises(ValueError, match=r"maps vectors, but a row of X has the shape \(8, 8\)"):
        Stack().build(known, 3)
