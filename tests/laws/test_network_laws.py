"""One list of networks, ours and a custom one, and every law over it."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import pytest
import torch

from dkae.networks import (
    ConvolutionalAutoencoder,
    Stack,
    build_network,
    decode_rows,
    encode_rows,
)
from dkae.statistics import Statistics
from tests.nets import Recurrent, Residual

N_COMPONENTS = 3

#: What a user passes as network=, and the shape of its rows.
NETWORKS = {
    "stack": (Stack(), (9,)),
    "stack, untied": (Stack((7, 6), tied_weights=False), (9,)),
    "stack, no hidden layer": (Stack(()), (9,)),
    "stack, plain": (Stack((7,), layer_norm=False, input_scaling=False), (9,)),
    "convolutional": (ConvolutionalAutoencoder, (1, 8, 8)),
    "convolutional, deep": (partial(ConvolutionalAutoencoder, channels=(4, 5, 6)), (2, 7, 10)),
    "residual": (Residual, (2, 3, 4)),
    "recurrent": (Recurrent, (6, 2)),
}


def build(name, seed=0):
    network, shape = NETWORKS[name]
    known = Statistics.of(
        torch.rand(50, *shape, generator=torch.Generator().manual_seed(2)).numpy()
    )
    return build_network(network, known, N_COMPONENTS, torch.Generator().manual_seed(seed))


def rows_of(name, n=8):
    return torch.rand(n, *NETWORKS[name][1], generator=torch.Generator().manual_seed(1))


every_network = pytest.mark.parametrize("name", NETWORKS)


@every_network
def test_shapes_also_of_arrays(name):
    network, x = build(name).eval(), rows_of(name)
    codes = network.encode(x)
    assert codes.shape == (len(x), N_COMPONENTS)
    back = network.decode(codes)
    assert back.shape == x.shape
    rounds = encode_rows(network, x.numpy()), decode_rows(network, codes.detach().numpy())
    for array, expected in zip(rounds, (codes, back), strict=True):
        torch.testing.assert_close(torch.from_numpy(array), expected.detach())


@pytest.mark.parametrize("size", [(7, 7), (5, 8), (1, 1), (3, 17), (2, 1)])
def test_images_of_any_size_keep_it(size):
    network = ConvolutionalAutoencoder((1, *size), 2, channels=(3, 4))
    assert network.decode(network.encode(torch.rand(4, 1, *size))).shape == (4, 1, *size)


@every_network
def test_gradients_reach_every_parameter(name):
    network, x = build(name), rows_of(name)
    codes = network.encode(x)
    (codes.square().sum() + (network.decode(codes) - x).square().sum()).backward()
    parameters = {k: p for k, p in network.named_parameters() if p.numel()}
    missed = [k for k, p in parameters.items() if p.grad is None or not p.grad.any()]
    assert missed == []


@every_network
def test_same_seed_same_weights_and_torch_s_own_random_numbers_stay_as_they_were(name):
    before = torch.random.get_rng_state()
    first, same, other = (build(name, seed).state_dict() for seed in (0, 0, 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(first[k], same[k]) for k in first)
    assert any(not torch.equal(first[k], other[k]) for k in first)


@every_network
def test_a_row_s_code_does_not_depend_on_the_others(name):
    network, x = build(name).eval(), rows_of(name)
    torch.testing.assert_close(network.encode(x)[2:5], network.encode(x[2:5]), rtol=1e-4, atol=1e-5)


@every_network
def test_the_decoder_has_parameters_of_its_own_which_leave_the_codes_alone(name):
    network, x = build(name), rows_of(name)
    codes = network.encode(x)
    back = network.decode(codes)
    decoder = list(network.decoder_parameters())  # unties
    torch.testing.assert_close(network.decode(network.encode(x)), back)
    mine = {id(p) for p in decoder}
    others = [p for p in network.parameters() if id(p) not in mine]
    found = torch.autograd.grad(
        network.encode(x).square().sum(), [*decoder, *others], allow_unused=True
    )
    assert [gradient is None for gradient in found] == [True] * len(mine) + [False] * len(others)
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


@pytest.mark.parametrize("name", ["convolutional", "residual", "recurrent"])
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
