"""The stacked network against Eq. 1 written out in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dkae.networks import ACTIVATIONS, Autoencoder, Layer, LinearPath, StackedNetwork


def build(sizes=(6, 5, 4, 3), *, seed=0, **params) -> Autoencoder:
    defaults = {
        "activation": "relu",
        "code_activation": "identity",
        "output_activation": "sigmoid",
    }
    generator = torch.Generator().manual_seed(seed)
    d, *hidden, width = sizes
    return StackedNetwork(hidden, **(defaults | params))((d,), width, generator)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("tied", [True, False])
def test_layer_is_equation_1(tied):
    layer = Layer(4, 3, activation="sigmoid", output_activation="sigmoid", tied=tied)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    x = torch.randn(2, 4)
    W, b, c = (p.detach().numpy() for p in (layer.weight, layer.bias, layer.decoder_bias))
    V = W.T if tied else layer.decoder_weight.detach().numpy()
    h = sigmoid(x.numpy() @ W.T + b)
    np.testing.assert_allclose(layer.encode(x).detach(), h, atol=1e-6)
    back = layer.decode(layer.encode(x)).detach()
    np.testing.assert_allclose(back, sigmoid(h @ V.T + c), atol=1e-6)


def test_stack_composes_encoders_and_reversed_decoders():
    network = build()
    x = torch.rand(2, 6)
    first, second, third = network.layers
    codes = third.encode(second.encode(first.encode(x)))
    assert torch.equal(network.encode(x), codes)
    assert torch.equal(network.decode(codes), first.decode(second.decode(third.decode(codes))))
    assert all(map(torch.equal, network(x), (codes, network.decode(codes))))


def test_decoder_of_a_layer_uses_the_activation_of_the_layer_below():
    network = build(activation="tanh", code_activation="relu", output_activation="sigmoid")
    assert [layer.activation for layer in network.layers] == ["tanh", "tanh", "relu"]
    assert [layer.output_activation for layer in network.layers] == ["sigmoid", "tanh", "tanh"]


def test_tied_weights_are_one_tensor_and_biases_are_separate():
    names = [name for name, _ in build().named_parameters()]
    assert not [name for name in names if "decoder_weight" in name]
    assert len([name for name in names if name.endswith("decoder_bias")]) == 3
    assert len(names) == 3 * 3


@pytest.mark.parametrize("sizes", [(6, 5, 4, 3), (1, 4, 1)])
def test_untied_weights_start_as_tied_ones_and_are_separate(sizes):
    network = build(sizes, tied=False)
    x = torch.rand(7, sizes[0])
    torch.testing.assert_close(network(x), build(sizes)(x))
    assert len(list(network.parameters())) == (len(sizes) - 1) * 4
    for layer in network.layers:
        before = layer.weight.detach().clone()
        with torch.no_grad():
            layer.decoder_weight += 1
        assert torch.equal(layer.weight, before)


def test_gradients_of_tied_weights_are_added_in_place():
    """And not into another array of the size of the weights, at every step."""
    network = build((6, 5, 4, 3))
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
    layer = build((300, 200), tied=tied).layers[0]
    bound = np.sqrt(6 / (300 + 200))
    weights = [layer.weight] if tied else [layer.weight, layer.decoder_weight]
    for weight in weights:
        assert weight.abs().max() <= bound
        assert weight.std().item() == pytest.approx(bound / np.sqrt(3), rel=0.02)
    assert not layer.bias.any()
    assert not layer.decoder_bias.any()


def test_lower_layers_start_the_same_whatever_the_code_size():
    narrow, wide = build((6, 5, 2)), build((6, 5, 9))
    assert torch.equal(narrow.layers[0].weight, wide.layers[0].weight)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("sizes", [(6, 3), (6, 5, 3), (6, 5, 4, 3)])
class TestEveryActivation:
    """What every stack must do; tests/laws has what every network must do."""

    @pytest.fixture
    def network(self, activation, tied, sizes):
        return build(sizes, tied=tied, activation=activation, code_activation=activation)

    def test_gradients_reach_every_parameter(self, network):
        codes, back = network(torch.rand(40, 6))
        (codes.square().sum() + back.square().sum()).backward()
        assert all(p.grad is not None and p.grad.any() for p in network.parameters())

    def test_state_dict_and_configs_rebuild_it(self, network):
        other = Autoencoder(Layer(**layer.config) for layer in network.layers)
        other.load_state_dict(network.state_dict())
        x = torch.rand(3, 6)
        assert torch.equal(network.encode(x), other.encode(x))

    def test_it_names_its_sizes(self, network, sizes):
        assert network.n_components == 3
        assert f"n_in={sizes[-2]}, n_out=3" in repr(network)


# --- what goes beyond the paper ------------------------------------------------------------------


def test_layer_norm_stands_before_the_activation_of_hidden_layers_alone():
    """By hand: (a - mean) / √(variance + 1e-5) over the units of a row."""
    generator = torch.Generator().manual_seed(0)
    network = StackedNetwork((7, 6), layer_norm=True, activation="tanh")((5,), 3, generator)
    assert [layer.norm for layer in network.layers] == [True, True, False]
    x = torch.randn(9, 5, generator=generator)
    h = x.double()
    for layer in network.layers:
        with torch.no_grad():
            layer.bias.uniform_(-1, 1, generator=generator)
        a = h @ layer.weight.detach().double().T + layer.bias.detach().double()
        if layer.norm:
            centred = a - a.mean(dim=1, keepdim=True)
            a = centred / (centred.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
            h = torch.tanh(a)
        else:
            h = a
    torch.testing.assert_close(network.encode(x), h.float(), rtol=1e-4, atol=1e-5)
    # On the way down there is none.
    for layer in reversed(network.layers):
        a = h @ layer.weight.detach().double() + layer.decoder_bias.detach().double()
        h = a if layer is network.layers[0] else torch.tanh(a)
    torch.testing.assert_close(network.decode(network.encode(x)), h.float(), rtol=1e-4, atol=1e-5)


def test_the_linear_path_adds_to_codes_and_rows():
    generator = torch.Generator().manual_seed(0)
    plain = StackedNetwork((6,))((5,), 3, torch.Generator().manual_seed(1))
    network = StackedNetwork((6,), linear_path=0.25)((5,), 3, torch.Generator().manual_seed(1))
    directions = torch.linalg.qr(torch.randn(5, 3, generator=generator))[0].T
    mean = torch.randn(5, generator=generator)
    network.linear_path = LinearPath(directions, mean, 0.25)
    x, codes = (torch.randn(4, n, generator=generator) for n in (5, 3))
    torch.testing.assert_close(
        network.encode(x), plain.encode(x) + 0.25 * (x - mean) @ directions.T
    )
    torch.testing.assert_close(
        network.decode(codes), plain.decode(codes) + mean + codes @ directions / 0.25
    )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"linear_path": -1}, r"linear_path=-1 must be a number in \[0, inf\)"),
        ({"layer_norm": "yes"}, "layer_norm='yes' must be True or False"),
    ],
)
def test_wrong_options_are_refused(params, message, digits, tiny):
    with pytest.raises(ValueError, match=message):
        tiny(**params).fit(digits)


@pytest.mark.parametrize("params", [{"layer_norm": True}, {"linear_path": 0.3}])
def test_options_change_the_model_and_it_learns(params, digits, tiny):
    plain, mine = tiny(max_iter=4).fit(digits), tiny(max_iter=4, **params).fit(digits)
    assert not np.allclose(plain.transform(digits), mine.transform(digits))
    losses = [record["loss"] for record in mine.history_]
    assert losses[-1] < losses[0]
