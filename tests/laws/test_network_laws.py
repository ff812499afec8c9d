"""One list of networks, ours and a user's, and every law over it."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import pytest
import torch

from dkae.kernels.formulas import FormulaRows
from dkae.networks import (
    ConvolutionalAutoencoder,
    KernelLayer,
    ResidualAutoencoder,
    RidgeDecoder,
    Scaling,
    StackedNetwork,
    decode_rows,
    encode_rows,
    seeded,
)
from tests.nets import Recurrent

N_COMPONENTS = 3


def kernel_layer(shape, n_components, generator, n_linear=1, output_activation="identity"):
    """Return a kernel layer with random weights; in `fit` they are computed."""

    def draw(*size):
        return torch.rand(*size, generator=generator)

    rows, scaling = draw(6, *shape), Scaling(draw(*shape), 0.5 + draw(*shape))
    with seeded(generator.initial_seed()):
        decoder = RidgeDecoder(n_components, *shape, (7, 5), scaling, output_activation)
    torch.nn.init.uniform_(decoder.last.weight, generator=generator)  # at 0 nothing passes
    return KernelLayer(
        FormulaRows("rbf", {"gamma": 0.5}, rows),
        draw(len(rows), n_components - n_linear),
        draw(*shape, n_linear),
        draw(*shape),
        decoder,
    )


#: A factory and the shape of its rows.
NETWORKS = {
    "stacked": (StackedNetwork((7, 6)), (9,)),
    "stacked, untied": (StackedNetwork((7,), tied=False), (9,)),
    "stacked, no hidden layer": (StackedNetwork(()), (9,)),
    "stacked, normalised": (StackedNetwork((7, 6), layer_norm=True), (9,)),
    "stacked, linear path": (StackedNetwork((7,), linear_path=0.3), (9,)),
    "kernel layer": (kernel_layer, (9,)),
    "kernel layer, no linear path": (partial(kernel_layer, n_linear=0), (9,)),
    "kernel layer, sigmoid": (partial(kernel_layer, output_activation="sigmoid"), (9,)),
    "convolutional": (ConvolutionalAutoencoder, (1, 8, 8)),
    "convolutional, deep": (partial(ConvolutionalAutoencoder, channels=(4, 5, 6)), (2, 12, 10)),
    **{
        f"convolutional, {h} x {w}": (
            partial(ConvolutionalAutoencoder, channels=(3, 4)),
            (1, h, w),
        )
        for h, w in [(7, 7), (5, 8), (1, 1), (3, 17), (2, 1)]
    },
    "residual": (partial(ResidualAutoencoder, width=16), (9,)),
    "residual of images": (partial(ResidualAutoencoder, width=16), (2, 3, 4)),
    "residual without blocks": (partial(ResidualAutoencoder, width=16, n_blocks=0), (9,)),
    "a user's": (Recurrent, (6, 2)),
}


def build(name, seed=0):
    factory, shape = NETWORKS[name]
    torch.manual_seed(seed)  # the user's draws its weights as torch does
    return factory(shape, N_COMPONENTS, torch.Generator().manual_seed(seed))


def rows_of(name, n=8):
    return torch.rand(n, *NETWORKS[name][1], generator=torch.Generator().manual_seed(1))


every_network = pytest.mark.parametrize("name", NETWORKS)


@every_network
def test_shapes(name):
    network, x = build(name), rows_of(name)
    codes = network.encode(x)
    assert codes.shape == (len(x), N_COMPONENTS)
    assert network.decode(codes).shape == x.shape


@every_network
def test_gradients_reach_every_parameter(name):
    network, x = build(name), rows_of(name)
    codes = network.encode(x)
    (codes.square().sum() + (network.decode(codes) - x).square().sum()).backward()
    parameters = {k: p for k, p in network.named_parameters() if p.numel()}
    missed = [k for k, p in parameters.items() if p.grad is None or not p.grad.any()]
    assert missed == []


@every_network
def test_same_seed_same_weights_other_seed_others(name):
    first, same, other = (build(name, seed).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(first[k], same[k]) for k in first)
    assert any(not torch.equal(first[k], other[k]) for k in first)


@pytest.mark.parametrize("name", [name for name in NETWORKS if name != "a user's"])
def test_torch_s_own_random_numbers_stay_as_they_were(name):
    factory, shape = NETWORKS[name]
    before = torch.random.get_rng_state()
    factory(shape, N_COMPONENTS, torch.Generator().manual_seed(0))
    assert torch.equal(torch.random.get_rng_state(), before)


@every_network
def test_a_row_s_code_does_not_depend_on_the_others(name):
    network, x = build(name).eval(), rows_of(name)
    torch.testing.assert_close(network.encode(x)[2:5], network.encode(x[2:5]), rtol=1e-4, atol=1e-5)


@every_network
def test_encoder_and_decoder_have_parameters_of_their_own_and_these_are_all(name):
    network, x = build(name), rows_of(name)
    before = network.decode(network.encode(x))
    decoder = list(network.decoder_parameters())  # unties
    encoder = list(network.encoder_parameters())
    assert not {id(p) for p in encoder} & {id(p) for p in decoder}
    assert {id(p) for p in network.parameters()} == {id(p) for p in encoder + decoder}
    torch.testing.assert_close(network.decode(network.encode(x)), before)


@every_network
def test_the_decoder_alone_leaves_the_codes_alone(name):
    network, x = build(name), rows_of(name)
    codes, decoder = network.encode(x), list(network.decoder_parameters())
    back = network.decode(codes).detach()
    with torch.no_grad():
        for parameter in decoder:
            parameter.add_(0.1)
    assert torch.equal(network.encode(x), codes)
    assert not torch.equal(network.decode(codes), back)


@every_network
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda network: pickle.loads(pickle.dumps(network))]
)
def test_copies_are_the_same_and_independent(name, copied):
    network, x = build(name), rows_of(name)
    twin = copied(network)
    assert torch.equal(twin.encode(x), network.encode(x))
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.add_(1)
    assert not torch.equal(twin.encode(x), network.encode(x))


@every_network
def test_a_state_dict_makes_another_the_same(name):
    network, other, x = build(name), build(name, seed=5), rows_of(name)
    assert not torch.equal(other.encode(x), network.encode(x))
    other.load_state_dict(network.state_dict())
    codes = network.encode(x)
    assert torch.equal(other.encode(x), codes)
    assert torch.equal(other.decode(codes), network.decode(codes))


@every_network
def test_repr_is_the_same_for_the_same_network(name):
    """A checkpoint tells networks apart by it."""
    assert repr(build(name)) == repr(build(name, seed=1))
    assert " at 0x" not in repr(build(name))


@every_network
def test_arrays_go_through_in_chunks(name, monkeypatch):
    network, x = build(name).eval(), rows_of(name).numpy()
    codes = encode_rows(network, x)
    monkeypatch.setattr("dkae.networks.rows.N_CHUNK_ROWS", 3)
    torch.testing.assert_close(
        torch.from_numpy(encode_rows(network, x)), torch.from_numpy(codes), rtol=1e-4, atol=1e-5
    )
    assert decode_rows(network, codes).shape == x.shape


@pytest.mark.parametrize("name", ["convolutional, 7 x 7", "residual of images", "a user's"])
def test_it_can_learn_a_few_rows_by_heart(name):
    network, x = build(name), rows_of(name, n=3)
    optimizer = torch.optim.Adam(network.parameters(), 0.01)

    def step():
        optimizer.zero_grad()
        loss = (network.decode(network.encode(x)) - x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    first = step()
    assert min(step() for _ in range(200)) < first / 10
