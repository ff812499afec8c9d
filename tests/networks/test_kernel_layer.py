"""The kernel layer in training: what learns, what stays, what is refused."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from dkae.training.building import build

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel, kernel_of
from dkae.networks import KernelLayer, KernelLayerNetwork, encode_rows
from dkae.training import building

PARAMS = {
    "n_components": 8,
    "network": "kernel_layer",
    "hidden_layer_sizes": (8,),
    "decoder_max_iter": 1,
    "steps_per_epoch": 5,
    "batch_size": 50,
    "early_stopping": False,
    "random_state": 0,
}


def make(**params):
    return DeepKernelizedAutoencoder(**(PARAMS | params))


@pytest.fixture
def rows(digits):
    return digits[:120]


def start_of(model, rows):
    """Return the network that `fit` of such a model starts from."""
    seed = np.random.RandomState(model.random_state).randint(np.iinfo(np.int32).max)
    return build(model, rows, kernel_of(model, rows, None), seed)


def changed(before, after):
    """Return the names of the tensors that differ."""
    a, b = before.state_dict(), after.state_dict()
    return {name for name in a if not torch.equal(a[name], b[name])}


# --- training ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "poly", "chi2"])
def test_training_of_the_decoder_leaves_the_codes_bit_identical(kernel, rows):
    model = make(kernel=kernel).fit(rows)
    start = start_of(model, rows)
    np.testing.assert_array_equal(model.transform(rows), encode_rows(start.maps, rows))
    learnt = changed(start.network, model.network_)
    assert learnt
    assert all(name.startswith("decoder.") for name in learnt)
    assert model.n_iter_ == 0


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "poly", "sigmoid", "cosine"])
@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
def test_all_parameters_learn_end_to_end(kernel, rows):
    params = {"max_iter": 1, "decoder_max_iter": 0, "network": KernelLayerNetwork(n_linear=3)}
    model = make(kernel=kernel, **params).fit(rows)
    names = {name for name, _ in model.network_.named_parameters()}
    assert {"weight", "directions"} <= names
    assert changed(start_of(model, rows).network, model.network_) == names


def test_training_end_to_end_keeps_what_the_start_had(rows):
    start = make().fit(rows)
    model = make(max_iter=10).fit(rows)
    assert changed(start.network_, model.network_) >= {"weight"}
    assert model.alignment_ > start.alignment_ - 0.001
    assert model.centered_alignment_ > start.centered_alignment_ - 0.02


def test_the_decoder_learns(rows):
    before, after = (make(decoder_max_iter=n, steps_per_epoch=20).fit(rows) for n in (1, 20))
    assert after.r2_ > before.r2_ + 0.01


def test_a_decoder_that_gets_worse_stays_ridge_regression(rows):
    """The learning rate is so high that every epoch is worse than none."""
    wild = {"early_stopping": "auto", "learning_rate": "constant", "learning_rate_init": 3.0}
    model = make(decoder_max_iter=3, **wild).fit(rows)
    assert changed(start_of(model, rows).network, model.network_) == set()
    assert [record["phase"] for record in model.history_] == ["decoder"] * 3


@pytest.mark.parametrize(("n_rows", "network", "watched"), [
    (39, "kernel_layer", False), (40, "kernel_layer", True), (120, "stacked", False),
])  # fmt: skip
def test_rows_are_held_out_for_kernel_layers_of_enough_rows(n_rows, network, watched, rows):
    model = make(network=network, early_stopping="auto", max_iter=1).fit(rows[:n_rows])
    assert ("validation_loss" in model.history_[-1]) == watched


def test_reading_kernel_values_trains_the_same_as_evaluating_them(rows, monkeypatch):
    model = make(kernel="chi2", max_iter=2, network=KernelLayerNetwork(30)).fit(rows)
    original = building.start_kernel_layer
    seen = []

    def without_landmarks(*args):
        layer, landmarks = original(*args)
        seen.append(landmarks)
        return layer, None

    monkeypatch.setattr(building, "start_kernel_layer", without_landmarks)
    evaluated = make(kernel="chi2", max_iter=2, network=KernelLayerNetwork(30)).fit(rows)
    assert len(seen[0]) == 30
    np.testing.assert_allclose(evaluated.transform(rows), model.transform(rows), atol=1e-4)
    for a, b in zip(evaluated.history_, model.history_, strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-4)


def test_kernels_without_a_formula_are_not_evaluated_in_training(rows):
    """Only the start and the quality at the end do; batches read the Gram matrix."""
    calls = []

    def spy(A, B):
        calls.append((len(A), len(B)))
        return np.minimum(A[:, None], B[None]).sum(axis=2)

    make(kernel=spy, network=KernelLayerNetwork(20), steps_per_epoch=3).fit(rows)
    few = len(calls)
    make(kernel=spy, network=KernelLayerNetwork(20), steps_per_epoch=23).fit(rows)
    # One call a step, for the values of the batch with the landmarks.
    assert len(calls) - 2 * few == 20


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_noise_reaches_a_kernel_whose_values_could_be_read(noise, rows):
    known = {row.tobytes() for row in rows}
    strangers = []

    def spy(A, B):
        strangers.extend(row for row in A if row.tobytes() not in known)
        return np.minimum(A[:, None], B[None]).sum(axis=2)

    make(kernel=spy, network=KernelLayerNetwork(20), input_noise=noise).fit(rows)
    assert len(strangers) == (0 if noise == 0 else 5 * 50)


def test_the_same_seed_gives_the_same_model_another_seed_another(rows):
    spec = KernelLayerNetwork(30)
    a, b, c = (make(network=spec, random_state=seed).fit(rows) for seed in (0, 0, 1))
    np.testing.assert_array_equal(a.transform(rows), b.transform(rows))
    assert not changed(a.network_, b.network_)
    assert "similarity.rows" in changed(a.network_, c.network_)


def test_bfloat16_and_early_stopping(rows):
    model = make(precision="bfloat16", early_stopping=True, max_iter=2).fit(rows)
    assert "validation_loss" in model.history_[0]
    assert model.alignment_ > 0.9


# --- copies --------------------------------------------------------------------------------------


class Uncopied(PairwiseKernel):
    """A fitted kernel that may be large."""

    def __deepcopy__(self, memo):
        raise AssertionError("a fitted kernel must not be copied")


def test_a_copy_of_the_network_does_not_copy_the_kernel(rows):
    model = make(kernel=Uncopied("chi2")).fit(rows)
    twin = copy.deepcopy(model.network_)
    assert twin.similarity.towards.kernel is model.kernel_
    with torch.no_grad():
        twin.weight.zero_()
    assert model.network_.weight.any()


def test_a_fitted_layer_is_a_network_to_start_from(rows):
    first = make().fit(rows)
    second = make(network=first.network_, decoder_max_iter=2).fit(rows)
    np.testing.assert_array_equal(second.transform(rows), first.transform(rows))
    assert second.r2_ > first.r2_ - 0.01
    # L_r is in the same unit.
    ratio = second.history_[0]["reconstruction_loss"] / first.history_[0]["reconstruction_loss"]
    assert 0.5 < ratio < 1.5


# --- refusals ------------------------------------------------------------------------------------

REFUSED = {
    "gram": "the Gram matrix of X alone",
    "Precomputed": "gram, of known rows alone",
    "ideal": "ideal kernel, of known rows alone",
}


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("network", ["kernel_layer", KernelLayerNetwork(5)])
def test_kernels_of_known_rows_are_refused(kind, network, rows):
    gram = rows @ rows.T
    labels = np.arange(len(rows)) % 3
    kernel = {"gram": "rbf", "Precomputed": Precomputed(gram), "ideal": ideal_kernel(labels)}[kind]
    given = {"gram": gram} if kind == "gram" else {}
    message = (
        r"network=.* needs a kernel that can be evaluated at new rows, got "
        f"{REFUSED[kind]}: pass a kernel, or network='stacked'"
    )
    with pytest.raises(ValueError, match=message):
        make(kernel=kernel, network=network).fit(rows, **given)


def test_a_gram_of_a_kernel_will_do(rows):
    kernel = PairwiseKernel("rbf").fit(rows)
    model = make().fit(rows, gram=kernel.on(rows))
    np.testing.assert_array_equal(model.transform(rows), make().fit(rows).transform(rows))


def test_pretraining_is_refused(rows):
    message = r"network=KernelLayer has no stages\(\), which pretrain_max_iter=1 needs"
    with pytest.raises(ValueError, match=message):
        make(pretrain_max_iter=1).fit(rows)


def test_images_are_refused(digits):
    with pytest.raises(ValueError, match=r"Found array with dim 3"):
        make().fit(digits.reshape(-1, 8, 8))


def test_the_attributes_are_those_of_a_kernel_layer(rows):
    model = make(network=KernelLayerNetwork(20, n_linear=3)).fit(rows)
    network = model.network_
    assert isinstance(network, KernelLayer)
    assert network.n_linear == 3
    assert network.sees_rows
    assert {id(p) for p in network.encoder_parameters()} == {
        id(network.weight),
        id(network.directions),
    }
    assert model.n_components_ == 8
