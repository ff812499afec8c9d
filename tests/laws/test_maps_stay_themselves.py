"""No value turns one map into another: Eq. 8 is always learned, Nyström codes always computed."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import rbf_kernel

from dkae.decoders import DECODERS
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    normalize,
)
from dkae.kernels.pairwise import pairwise_names
from dkae.networks import Autoencoder
from tests.ids import plain_id
from tests.laws.maps import WIDTH, Y, make
from tests.laws.maps import X as SIGNED

pytestmark = pytest.mark.filterwarnings("ignore")

X = SIGNED - SIGNED.min()  # for the kernels of histograms
P = rbf_kernel(X, gamma=0.05)
#: A kernel of every kind, and names.
EVALUABLE = [
    *pairwise_names(),
    PairwiseKernel("rbf", gamma=0.05),
    0.5 * PairwiseKernel("rbf") + PairwiseKernel("linear"),
    normalize(PairwiseKernel("poly")),
    RBF(),
    rbf_kernel,
    ForestKernel(n_estimators=3, random_state=0),
    ProbabilisticClusterKernel(3, 2, random_state=0),
    PairwiseKernel("rbf").fit(X),
]
KERNELS = [*EVALUABLE, "forest", Precomputed(P, rows=X)]


def assert_learned_by_eq_8(fit) -> None:
    """Every choice of the loss and of the network changes the encoder, which was trained."""
    models = [
        fit(),
        fit(alignment="frobenius"),
        fit(alignment_weight=0.5),
        fit(network__activation="tanh"),
        fit(decoder_max_iter=0),
    ]
    for model in models:
        assert isinstance(model.network_, Autoencoder)
        assert model.n_iter_ == 2
        weight = model.alignment_weight
        for record in model.history_[:2]:
            loss = (1 - weight) * record["reconstruction_loss"] + weight * record["alignment_loss"]
            assert record["loss"] == pytest.approx(loss, rel=1e-5)
    codes = [model.transform(X) for model in models]
    for other in codes[1:4]:
        assert not np.array_equal(codes[0], other)
    np.testing.assert_array_equal(codes[0], codes[4])  # the decoder's own phase is not the map's


@pytest.mark.parametrize("kernel", KERNELS, ids=plain_id)
def test_the_autoencoder_learns_both_directions_from_any_kernel(kernel):
    assert_learned_by_eq_8(lambda **params: make("autoencoder", kernel=kernel, **params).fit(X, Y))


def test_the_autoencoder_learns_both_directions_from_a_gram_matrix():
    assert_learned_by_eq_8(lambda **params: make("autoencoder", **params).fit(X, gram=P))


@pytest.mark.parametrize("kernel", EVALUABLE, ids=plain_id)
@pytest.mark.parametrize("n_linear", [None, 1])
def test_nystroem_codes_are_computed_from_kernel_values(kernel, n_linear):
    model = make("nystroem, ridge", kernel=kernel, n_linear=n_linear).fit(X, Y)
    values = model.kernel_.values(X, model.landmarks_)
    path = (X - model.linear_center_) @ model.linear_path_
    expected = np.hstack([values @ model.projection_, path])
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-3, atol=1e-4)
    assert expected.shape[1] == WIDTH
    assert not hasattr(model, "network_")


@pytest.mark.parametrize("decoder", [*DECODERS, "auto"])
def test_no_decoder_changes_the_codes_of_nystroem(decoder):
    expected = make("nystroem, ridge", kernel="rbf").fit(X).transform(X)
    model = make("nystroem, ridge", kernel="rbf", decoder=decoder).fit(X)
    if decoder == "mlp":  # it holds rows out, which the map does not see
        model.set_params(decoder__validation_fraction=0.0).fit(X)
    np.testing.assert_array_equal(model.transform(X), expected)


def test_nystroem_refuses_what_it_cannot_evaluate():
    for fit in (
        lambda: make("nystroem, ridge").fit(X, gram=P),
        lambda: make("nystroem, ridge", kernel=Precomputed(P, rows=X)).fit(X),
    ):
        with pytest.raises(
            ValueError, match=r"new rows need a kernel that can be evaluated, .*Deep"
        ):
            fit()
