"""Networks of the user's: their weights and their name are in the file, their code is not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from dkae import load, save
from dkae.networks import ConvolutionalAutoencoder, ResidualAutoencoder
from dkae.persistence import ModelFileError
from dkae.spectral import KernelPCA
from tests.persistence.helpers import X, assert_same_maps, make, read, rewrite, state_of


class Linear(nn.Module):
    def __init__(self, shape, n_components, generator=None, width=4):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(*shape, width), nn.Tanh(), nn.Linear(width, n_components)
        )
        self.decode = nn.Linear(n_components, *shape)
        self.register_buffer("n_seen", torch.zeros((), dtype=torch.int64))


class Other(Linear):
    pass


def own(network=Linear, **params):
    return make(network=network, decoder_max_iter=0, **params)


@pytest.fixture(scope="module")
def model():
    return own().fit(X)


@pytest.fixture
def path(model, tmp_path):
    save(model, tmp_path / "m")
    return tmp_path / "m"


def test_without_code_it_says_what_it_needs(path):
    message = (
        r"weights of a network of yours, 'Linear', and a file holds no code: pass load\(path, net"
    )
    with pytest.raises(ModelFileError, match=message):
        load(path)


@pytest.mark.parametrize(
    "network",
    [Linear, lambda *args: Linear(*args), Linear((5,), 3), partial(Linear, width=4)],
    ids=["class", "function", "module", "partial"],
)
def test_with_code_it_is_the_same(network, model, path, tmp_path):
    before = torch.get_rng_state()
    loaded = load(path, network=network)
    assert torch.equal(torch.get_rng_state(), before)
    assert_same_maps(loaded, model)
    assert loaded.score(X) == model.score(X)
    save(loaded, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_module_that_is_passed_stays_as_it_was(path):
    module = Linear((5,), 3)
    before = {name: t.clone() for name, t in module.state_dict().items()}
    assert load(path, network=module).network_ is not module
    assert all(torch.equal(before[name], t) for name, t in module.state_dict().items())


def test_it_can_be_fitted_again(model, path):
    np.testing.assert_array_equal(
        load(path, network=Linear).fit(X).transform(X), model.transform(X)
    )


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Other, "network= gives a Other, but the file has the weights of a 'Linear': pass"),
        (Other((5,), 3), "network= gives a Other"),
        (partial(Linear, width=5), "network= gives a Linear of other sizes than the file has"),
        (Linear((5,), 4), "of other sizes than the file has weights for"),
        (Linear((6,), 3), "of other sizes than the file has weights for"),
        (nn.Linear(5, 3), "without encode and decode"),
        ("stacked", "neither a torch module nor a factory"),
    ],
    ids=range(7),
)
def test_another_network_is_refused_and_the_file_is_not_blamed(network, message, path):
    with pytest.raises(ValueError, match=message) as caught:
        load(path, network=network)
    assert not isinstance(caught.value, ModelFileError)


def test_a_factory_that_fails_is_the_users(path):
    def factory():
        return Linear((5,), 3)

    with pytest.raises(TypeError, match="failed as a factory"):
        load(path, network=factory)


def test_code_that_is_not_needed_is_refused(tmp_path):
    save(make().fit(X), tmp_path / "m")
    with pytest.raises(ValueError, match="has a Autoencoder, which needs no code of yours: leave"):
        load(tmp_path / "m", network=Linear)
    save(KernelPCA(2).fit(X), tmp_path / "k")
    with pytest.raises(ValueError, match="has a KernelPCA, no network: leave network= out"):
        load(tmp_path / "k", network=Linear)


def test_in_a_pipeline(tmp_path):
    fitted = make_pipeline(StandardScaler(), own()).fit(X)
    save(fitted, tmp_path / "m")
    loaded = load(tmp_path / "m", network=Linear)
    np.testing.assert_array_equal(loaded.transform(X), fitted.transform(X))


@pytest.mark.parametrize(
    ("network", "rows"),
    [
        (ConvolutionalAutoencoder, np.random.default_rng(0).random((20, 1, 6, 5))),
        (partial(ConvolutionalAutoencoder, channels=(3,)), X[:, :4].reshape(30, 1, 2, 2)),
        (partial(ResidualAutoencoder, width=8, n_blocks=1), X),
        (partial(ResidualAutoencoder, width=8, n_blocks=0), X),
    ],
    ids=range(4),
)  # fmt: skip
def test_networks_of_this_package_need_no_code(network, rows, tmp_path):
    rows = rows.astype(np.float32)
    model = make(
        network=network, kernel=lambda A, B: A.reshape(len(A), -1) @ B.reshape(len(B), -1).T
    )
    model.fit(rows)
    with pytest.warns(UserWarning, match="does not hold kernel <lambda>"):
        save(model, tmp_path / "m")
    loaded = load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.transform(rows), model.transform(rows))
    codes = model.transform(rows)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))


# --- damage --------------------------------------------------------------------------------------


def test_weights_that_are_none_are_refused(path):
    tensors = read(path)[1]
    name = "model.learnt.network_.weights.decode.weight"
    rewrite(path, tensors=tensors | {name: tensors[name] * torch.nan})
    with pytest.raises(ModelFileError, match="NaN or infinite"):
        load(path, network=Linear)


@pytest.mark.parametrize("name", [3, None, [], "x" * 10_000], ids=range(4))
def test_a_name_that_is_none_is_refused(name, path):
    def change(described):
        state_of(described, "learnt", "network_")["name"] = name

    rewrite(path, change=change)
    with pytest.raises(ValueError, match=r"damaged or not from dkae|weights of a 'xxx"):
        load(path, network=Linear)
