"""Code and data that no file can hold: a warning names them, and they are attached after `load`."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.kernel_approximation import RBFSampler
from sklearn.neighbors import KNeighborsRegressor

from dkae import load, save
from dkae.kernels import Precomputed, ProbabilisticClusterKernel, TransformerKernel
from dkae.networks import ConvolutionalAutoencoder
from dkae.persistence import ModelFileError
from dkae.training import Optimization
from tests.nets import Linear, Noisy
from tests.persistence.helpers import (
    X,
    assert_same_maps,
    cube_of_inner_products,
    kpca,
    make,
    nystroem,
    save_and_load,
)

indefinite_is_fine = pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
left_out_is_fine = pytest.mark.filterwarnings("ignore:.* does not hold ")


# --- kernels -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [make, nystroem, kpca])
def test_a_kernel_that_is_code_comes_back(kind, tmp_path):
    model = kind(kernel=cube_of_inner_products).fit(X)
    with pytest.warns(UserWarning, match=r"does not hold kernel cube_of.*FunctionKernel.*attach"):
        loaded = save_and_load(model, tmp_path)
    assert loaded.kernel_ is None
    with pytest.raises(ValueError, match="is not the kernel of the fit: on 8 rows its values"):
        loaded.attach_kernel(lambda A, B: A @ B.T)
    save(loaded, tmp_path / "again")  # it still has the values
    loaded = load(tmp_path / "again").attach_kernel(cube_of_inner_products)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))


@indefinite_is_fine
def test_a_gram_that_was_given_is_not_in_a_file(tmp_path):
    model = make().fit(X, gram=X @ X.T)
    with pytest.warns(UserWarning, match="does not hold a kernel, because the model was fitted"):
        loaded = save_and_load(model, tmp_path)
    assert_same_maps(loaded, model)


@left_out_is_fine
def test_a_kernel_of_known_rows_is_left_out(tmp_path):
    model = make(kernel=Precomputed(X @ X.T, rows=X)).fit(X)
    assert_same_maps(save_and_load(model, tmp_path), model)


def test_a_file_without_its_kernel_is_smaller(tmp_path):
    pck = ProbabilisticClusterKernel(4, 3, random_state=0, reg_covar=1e-2)
    model = make(kernel=pck).fit(X)
    save(model, tmp_path / "with")
    save(model, tmp_path / "without", kernel=False)
    sizes = [(tmp_path / name).stat().st_size for name in ("without", "with")]
    assert sizes[0] < sizes[1]
    loaded = load(tmp_path / "without")
    assert loaded.kernel_ is None
    loaded.attach_kernel(model.kernel_)
    np.testing.assert_array_equal(loaded.kernel_.gram(X), model.kernel_.gram(X))


def test_a_fitted_kernel_that_was_passed_can_be_left_out(tmp_path):
    pck = ProbabilisticClusterKernel(4, 3, random_state=0, reg_covar=1e-2).fit(X)
    model = nystroem(kernel=pck).fit(X)
    save(model, tmp_path / "m", kernel=False)
    loaded = load(tmp_path / "m").attach_kernel(pck)
    assert_same_maps(loaded, model)


def test_a_kernel_of_another_transformer_is_left_out(tmp_path):
    kernel = TransformerKernel(RBFSampler(n_components=6, random_state=0).fit(X))
    model = nystroem(kernel=kernel).fit(X)
    with pytest.warns(UserWarning, match=r"which is code or data \(.*RBFSampler\): after load"):
        loaded = save_and_load(model, tmp_path)
    assert_same_maps(loaded.attach_kernel(kernel), model)


def test_another_regressor_cannot_be_written(tmp_path):
    model = nystroem(decoder=KNeighborsRegressor()).fit(X)
    with pytest.raises(ValueError, match=r"cannot be written \(.*KNeighborsRegressor\): use what"):
        save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


@left_out_is_fine
def test_functions_are_left_out_by_name(tmp_path):
    def mine(C, P):
        return (C - P).square().sum()

    def slow(parameters, lr):
        return torch.optim.SGD(parameters, lr=lr)

    def shaken(rows, rng):
        return rows + rng.normal(size=rows.shape)

    model = make(alignment=mine, optimization=Optimization(slow), augment=shaken).fit(X)
    with pytest.warns(UserWarning, match="does not hold") as warned:
        loaded = save_and_load(model, tmp_path)
    said = " ".join(str(w.message) for w in warned)
    for name in ("alignment", "optimizer", "augment"):
        assert f"set {name}= before you call fit again" in said
    assert_same_maps(loaded, model)
    with pytest.raises(ValueError, match="alignment='your alignment' is not known"):
        loaded.fit(X)


def test_settings_of_the_machine_are_never_in_a_file(tmp_path):
    """F10."""
    model = make(verbose=0, cache_bytes=1000, device="cpu", random_state=np.random.RandomState(0))
    loaded = save_and_load(model.fit(X), tmp_path)
    assert (loaded.cache_bytes, loaded.random_state) == (None, None)


# --- networks ------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", [Linear((5,), 3), lambda *args: Noisy((5,), 3)])
def test_a_custom_network_needs_its_code(network, tmp_path):
    model = make(network=network).fit(X)
    name = type(model.network_).__name__
    save(model, tmp_path / "m")
    with pytest.raises(
        ModelFileError, match=rf"custom network, '{name}', .* pass load\(path, netw"
    ):
        load(tmp_path / "m")
    loaded = load(tmp_path / "m", network=network)
    assert_same_maps(loaded, model)
    assert loaded.network is network
    assert_same_maps(loaded.fit(X), make(network=network).fit(X))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (Noisy((5,), 3), "gives a Noisy, but the file has the weights of a 'Linear'"),
        (Linear((5,), 4), "gives a Linear of other sizes"),
        (torch.nn.Linear(5, 3), "gives a Linear without encode and decode"),
        ("linear", "neither a torch module nor a factory"),
    ],
)
def test_another_network_is_refused(network, message, tmp_path):
    save(make(network=Linear((5,), 3)).fit(X), tmp_path / "m")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "m", network=network)


def test_a_network_that_is_not_needed_is_refused(tmp_path):
    save(make().fit(X), tmp_path / "m")
    with pytest.raises(ValueError, match="has no custom network: leave network= out"):
        load(tmp_path / "m", network=Linear((5,), 3))


@left_out_is_fine
def test_a_convolutional_network_needs_no_code(tmp_path):
    rows = np.random.default_rng(0).random((20, 1, 6, 5), dtype=np.float32)

    def flat(A, B):
        return A.reshape(len(A), -1) @ B.reshape(len(B), -1).T

    network = partial(ConvolutionalAutoencoder, channels=(4,))
    model = make(network=network, kernel=flat).fit(rows)
    loaded = save_and_load(model, tmp_path)
    assert_same_maps(loaded, model, rows)
    again = loaded.set_params(kernel=flat).fit(rows)
    assert_same_maps(again, make(network=network, kernel=flat).fit(rows), rows)
