"""Networks that `network=` takes, and the errors for anything else."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dkae.networks import ConvolutionalAutoencoder, seeded
from tests.nets import Linear, Noisy


class Wide(Linear):
    def encode(self, x):
        return self.up(x).repeat(1, 2)


class Vector(Linear):
    def encode(self, x):
        return self.up(x)[:, 0]


class Short(Linear):
    def decode(self, codes):
        return self.down(codes)[:, :-1]


class Broken(Linear):
    def encode(self, x):
        raise KeyError("no such weight")


class WithoutTensor(Linear):
    def encode(self, x):
        return self.up(x).numpy()


class Torn(Linear):
    def __init__(self, *args):
        super().__init__(*args)
        self.down = nn.Linear(5, 64, device="meta")


class Empty(nn.Module):
    def encode(self, x):
        return x[:, :5]

    def decode(self, codes):
        return codes.repeat(1, 13)[:, :64]


class NoWayBack(nn.Module):
    encode = Linear.encode


class Tied(Linear):
    def decoder_parameters(self):
        return [self.up.weight, self.down.bias]


class Frozen(Noisy):
    def __init__(self, *args):
        super().__init__(*args)
        self.decoder.requires_grad_(False)


DECODER = {"decoder_max_iter": 1}


@pytest.mark.parametrize(
    ("network", "params", "message"),
    [
        (Wide(), {}, r"network=Wide.encode returned shape \(2, 10\), expected \(2, 5\): set n_com"),
        (Linear(), {"n_components": 4}, r"Linear.encode .*\(2, 5\), expected \(2, 4\): set n_comp"),
        (Vector(), {}, r"network=Vector.encode returned shape \(2,\), expected \(2, 5\)"),
        (Short(), {}, r"network=Short.decode returned shape \(2, 63\), expected \(2, 64\): it m"),
        (Broken(), {}, r"Broken.encode failed on .* \(2, 64\) \(KeyError: 'no such weight'"),
        (Linear().double(), {}, "network=Linear.encode failed .*must have the same dtype"),
        (WithoutTensor(), {}, "network=WithoutTensor.encode returned a ndarray, expected a tensor"),
        (Torn(), {}, r"network=Torn has parameters on several devices \(cpu, meta\): leave it on"),
        (Empty(), {}, "network=Empty holds no parameters: there is nothing to train"),
        (lambda *_: 3, {}, "network gives a int without encode and decode: expected a torch"),
        (NoWayBack(), {}, "network gives a NoWayBack without decode: expected a torch.nn.Module"),
        (lambda *_: NoWayBack(), {}, "network gives a NoWayBack without decode"),
        (object(), {}, "network=<object .* is neither a torch module nor a factory: pass a Stack"),
        ("conv", {}, "network='conv' is neither a torch module nor a factory: pass a Stack"),
        (Linear(), DECODER, r"Linear has no decoder_parameters\(\) that could learn: return those"),
        (Linear(), {"pretrain_max_iter": 2}, r"no stages\(\), which pretrain_max_iter=2 needs.*=0"),
        (Tied(), DECODER, r"Tied: the codes depend on 1 of decoder_parameters\(\), and would move"),
        (Frozen(), DECODER, r"Frozen has no decoder_parameters\(\) that could learn: return"),
        (lambda shape: Noisy(shape), {}, r"failed as a factory \(.*it is called with \(shape"),
        (Noisy, DECODER | {"max_iter": 0}, "max_iter=0 and pretrain_max_iter=0 leave the encoder"),
        (ConvolutionalAutoencoder, {}, r"maps images, but a row of X has the shape \(64,\): pa"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_is_no_network_is_refused_and_the_former_fit_stays(
    network, params, message, digits, tiny
):
    model = tiny().fit(digits)
    before = dict(vars(model))
    own = model.network
    model.set_params(network=network, **params)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(digits)
    fitted = {name for name in before if name.endswith("_")}
    assert all(getattr(model, name) is before[name] for name in fitted)
    assert model.set_params(network=own, n_components=5).transform(digits).shape == (300, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConvolutionalAutoencoder(64, 2), "shape=64 must be a sequence, such as a list"),
        (lambda: ConvolutionalAutoencoder((1, 4, -1), 2), "each of shape=-1 must be a whole numb"),
        (lambda: ConvolutionalAutoencoder((1, 8, 8), None), "n_components=None must be a whole"),
        (lambda: ConvolutionalAutoencoder((1, 8, 8), 0), "n_components=0 must be a whole number"),
        (lambda: ConvolutionalAutoencoder((1, 8, 8), 2**63), "n_components=.* must be at most"),
        (lambda: ConvolutionalAutoencoder((1, 8, 8), 2, channels=3), "channels=3 must be a seque"),
        (lambda: ConvolutionalAutoencoder((1, 8, 8), 2, channels=(4, 2.5)), "each of channels=2.5"),
    ],
)
def test_sizes_are_checked(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_module_that_cannot_be_copied_is_asked_for_as_a_factory(digits, tiny):
    network = Linear()
    network.last = network.up(torch.ones(1, 64))  # a result, which autograd does not let copy
    with pytest.raises(ValueError, match=r"network=Linear cannot be copied .*: pass a factory"):
        tiny(network=network).fit(digits)


def test_two_maps_are_enough(digits, tiny):
    model = tiny(network=Linear()).fit(digits)
    assert model.inverse_transform(model.transform(digits)).shape == digits.shape


@pytest.mark.parametrize("kind", ["module", "factory", "lazy"])
def test_a_given_seed_is_all_that_chance_depends_on(kind, digits, tiny):
    class Lazy(Linear):
        def __init__(self, *args):
            super().__init__(*args)
            self.up, self.down = nn.LazyLinear(5), nn.LazyLinear(64)

    network = {"module": Noisy(), "factory": Noisy, "lazy": Lazy}[kind]
    codes = []
    for seed in (3, 3, 4):
        torch.rand(7)  # what others draw
        before = torch.random.get_rng_state()
        codes.append(tiny(network=network, random_state=seed).fit(digits).transform(digits))
        assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])


def test_without_a_generator_random_numbers_are_torch_s_own():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with seeded(None):
        assert torch.equal(torch.rand(2), expected)
