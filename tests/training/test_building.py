"""Which network is built for which kernel and parameters."""

from __future__ import annotations

import numpy as np
import pytest
from dkae.training.building import is_own
from sklearn.gaussian_process.kernels import RBF

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel
from dkae.kernels.pairwise import pairwise_names
from dkae.networks import (
    Autoencoder,
    ConvolutionalAutoencoder,
    KernelLayer,
    KernelLayerNetwork,
    StackedNetwork,
)
from tests.ids import plain_id
from tests.nets import Linear, spread

X = np.random.default_rng(0).random((50, 6)).astype(np.float32)


def make(**params):
    defaults = {
        "n_components": 3,
        "hidden_layer_sizes": (6,),
        "max_iter": 1,
        "steps_per_epoch": 1,
        "random_state": 0,
    }
    return DeepKernelizedAutoencoder(**(defaults | params))


def network_of(model, **given):
    return type(model.fit(X, **given).network_)


PCK = {"kernel": "pck", "kernel_params": {"max_components": 3, "n_initializations": 2}}


@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
@pytest.mark.parametrize("name", pairwise_names())
def test_kernels_by_name_get_the_kernel_layer(name):
    assert network_of(make(kernel=name)) is KernelLayer


@pytest.mark.parametrize(
    "params",
    [
        {},
        PCK,
        {"network": None},
        {"kernel": PairwiseKernel("rbf", gamma=2.0)},
        {"alignment": "frobenius"},
        {"alignment_weight": 1.0},
        {"standardize": False},
        {"network": "kernel_layer", "kernel": "forest", "kernel_params": {"n_estimators": 5}},
        {"network": "kernel_layer", "kernel": lambda A, B: A @ B.T},
        {"network": "kernel_layer", "kernel": RBF()},
        {"network": "kernel_layer", "alignment": "centered"},
        {"network": KernelLayerNetwork(7)},
    ],
    ids=plain_id,
)
def test_the_kernel_layer_is_built(params):
    assert network_of(make(**params)) is KernelLayer


@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "forest", "kernel_params": {"n_estimators": 5}},
        {"kernel": lambda A, B: A @ B.T},
        {"kernel": RBF()},
        {"kernel": PairwiseKernel("rbf") + PairwiseKernel("linear")},
        {"kernel": Precomputed(X @ X.T)},
        {"kernel": ideal_kernel(np.arange(50) % 3)},
        {"alignment_weight": 0.0},
        {"input_noise": 0.1},
        {"pretrain_max_iter": 1},
        {"distillation": 1.0},
        {"alignment": "centered"},
        {"alignment": "bures"},
        {"alignment": spread},
        {"network": "stacked"},
    ],
    ids=plain_id,
)
def test_a_stack_is_built(params):
    assert network_of(make(**params)) is Autoencoder


def test_a_subclass_of_a_named_kernel_may_be_anything():
    class Mine(PairwiseKernel):
        pass

    assert network_of(make(kernel=Mine("rbf"))) is Autoencoder


def test_a_gram_matrix_alone_gets_a_stack_that_of_a_kernel_the_layer():
    kernel = PairwiseKernel("rbf").fit(X)
    assert network_of(make(), gram=kernel.gram(X)) is Autoencoder
    assert network_of(make(), gram=kernel.on(X)) is KernelLayer
    other = PairwiseKernel("rbf").fit(5 * X)
    assert network_of(make(), gram=other.on(5 * X)) is Autoencoder  # of other rows than these


@pytest.mark.parametrize("network", ["stack", "kernel-layer", ""])
def test_a_wrong_name_is_refused(network):
    message = (
        f"network='{network}' is not known: expected 'auto', 'kernel_layer', 'stacked', a torch "
        "module, or a factory of one"
    )
    with pytest.raises(ValueError, match=message):
        make(network=network).fit(X)


def test_whose_network_it_is():
    assert not any(map(is_own, [None, "auto", "stacked", KernelLayerNetwork()]))
    assert all(map(is_own, [Linear(), Linear, StackedNetwork(), ConvolutionalAutoencoder]))


def test_the_decoder_mirrors_the_widths():
    model = make(hidden_layer_sizes=(7, 5), decoder_max_iter=1).fit(X)
    assert [layer.out_features for layer in model.network_.decoder.hidden] == [5, 7]


def test_a_kernel_layer_needs_no_training_end_to_end_a_stack_does():
    make(max_iter=0, decoder_max_iter=1).fit(X)
    with pytest.raises(ValueError, match="max_iter=0 and pretrain_max_iter=0 leave the encoder"):
        make(max_iter=0, decoder_max_iter=1, network="stacked").fit(X)
