"""The loop: a step is Eq. 8 and the optimizer, in float32, and a failure changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, load, save
from dkae.alignment import frobenius
from dkae.decoders import MLPDecoder
from dkae.kernels import PairwiseKernel
from dkae.networks import Autoencoder, Layer
from dkae.training import (
    FINE_TUNING,
    Batch,
    BatchSource,
    History,
    Optimization,
    Phase,
    Trainer,
)
from tests.nets import Noisy
from tests.training.helpers import assert_same, initial

CPU = torch.device("cpu")
CONSTANT = {"optimization__learning_rate": "constant"}


def weights(model):
    return list(model.network_.parameters())


# --- what a fit does ------------------------------------------------------------------------------


def test_losses_fall_and_the_history_is_plain_data_with_both_terms(digits, tiny):
    model = tiny(max_iter=10, steps_per_epoch=20, validation_fraction=0.2)
    history = model.set_params(optimization__learning_rate_init=0.01).fit(digits).history_
    terms = ["loss", "reconstruction_loss", "alignment_loss"]
    assert model.n_iter_ == 10
    assert [record["epoch"] for record in history] == list(range(1, 11))
    for record in history:
        assert list(record) == ["phase", "epoch", *terms, *(f"validation_{t}" for t in terms)]
        assert all(type(record[t]) is float for t in terms)
        total = 0.9 * record["reconstruction_loss"] + 0.1 * record["alignment_loss"]
        assert record["loss"] == pytest.approx(total, rel=1e-5)
    assert all(history[-1][term] < 0.7 * history[0][term] for term in terms)


@pytest.mark.parametrize("weight", [0.0, 0.1, 1.0])
def test_one_step_is_one_step_of_adam_on_equation_8(digits, tiny, weight):
    """An independent step, written out with torch's reference Adam and the formulas."""
    model = tiny(batch_size=300, max_iter=1, steps_per_epoch=1, alignment_weight=weight)
    model.set_params(**CONSTANT, network__tied_weights=False)
    network = initial(model, digits)
    x = torch.from_numpy(digits)
    adam = torch.optim.Adam(network.parameters(), lr=2e-3, foreach=False, fused=False)
    codes, back = network(x)
    model.fit(digits)
    C, P = codes @ codes.T, torch.from_numpy(model.kernel_.gram(digits))
    alignment = (C / C.norm() - P / P.norm()).norm()
    ((1 - weight) * ((x - back) ** 2).sum() / x.numel() + weight * alignment).backward()
    adam.step()
    for ours, theirs in zip(model.network_.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=0)
        assert ours.grad is None  # gradients take as much memory as weights


def test_noise_trains_a_denoiser(digits, tiny):
    noisy = digits + np.random.default_rng(0).normal(0, 0.3, digits.shape).astype(np.float32)

    def error(input_noise):
        model = tiny(
            n_components=20, network__hidden_layer_sizes=(64,), input_noise=input_noise,
            max_iter=6, steps_per_epoch=40, optimization__learning_rate_init=0.01,
            alignment_weight=0.01,
        ).fit(digits)  # fmt: skip
        return np.mean((model.inverse_transform(model.transform(noisy)) - digits) ** 2)

    assert error(input_noise=0.5) < 0.9 * error(input_noise=0.0)


@pytest.mark.parametrize(
    "params", [{}, {"network": Noisy}], ids=["stack", "a network with dropout"]
)
def test_fits_in_threads_are_those_of_one(params, rows, tiny):
    before = torch.random.get_rng_state()
    models = [[tiny(**params, random_state=i) for i in range(2)] for _ in range(2)]
    alone = [model.fit(rows) for model in models[0]]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda model: model.fit(rows), models[1]))
    for a, b in zip(alone, together, strict=True):
        assert_same(a, b)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_lazy_layers_have_weights_of_their_own(rows, tiny):
    class Lazy(nn.Module):
        def __init__(self, shape, n_components, generator):
            super().__init__()
            self.encode = nn.Linear(*shape, n_components)
            self.decode = nn.Sequential(nn.LazyLinear(64))

    network = initial(tiny(network=Lazy, n_components=64), rows)
    eager, lazy = network.encode.weight.flatten(), network.decode[0].weight.flatten()
    assert abs(torch.corrcoef(torch.stack([eager, lazy]))[0, 1]) < 0.1


@pytest.mark.parametrize("setting", ["float64", "autocast"])
def test_results_are_the_same_whatever_the_caller_has_set(setting, rows, tiny, tmp_path):
    def results():
        found = []
        for model in (
            tiny(decoder_max_iter=1),
            InvertibleNystroem(5, decoder=MLPDecoder(max_iter=1), random_state=0),
        ):
            model.fit(rows)
            save(model, tmp_path / "model")
            again = load(tmp_path / "model")
            codes = again.transform(rows)
            found += [model.transform(rows), codes, again.inverse_transform(codes)]
        decoder = MLPDecoder(max_iter=1, random_state=0).fit(rows[:, :9], rows)
        towards = PairwiseKernel("rbf").fit(rows).towards(rows)
        return [*found, decoder.predict(rows[:, :9]), towards(rows)]

    expected = results()
    torch.set_default_dtype(torch.float64 if setting == "float64" else torch.float32)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=setting == "autocast"):
            found = results()
    finally:
        torch.set_default_dtype(torch.float32)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == np.float32


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"optimization__learning_rate_init": 1e30}, r"loss became (nan|inf).*lower learning_rate"),
        (
            {"optimization__learning_rate_init": 1e39, "max_iter": 1, "steps_per_epoch": 1},
            "a weight became infinite at the last step",
        ),
    ],
    ids=["in an epoch", "at the last step"],
)
def test_divergence_is_a_clear_error_and_leaves_the_former_fit(params, message, digits, tiny):
    model = tiny().fit(digits)
    codes = model.transform(digits)
    model.set_params(**CONSTANT | params)
    with pytest.raises(FloatingPointError, match=message):
        model.fit(digits[:, :30])
    assert model.n_features_in_ == 64
    np.testing.assert_array_equal(model.transform(digits), codes)


def test_ctrl_c_keeps_the_steps_that_were_taken_and_points_at_the_caller(digits, tiny, break_at):
    full = tiny(max_iter=2, **CONSTANT).fit(digits)
    break_at(10, "train_step", KeyboardInterrupt)
    model = tiny(max_iter=50, **CONSTANT)
    with (
        pytest.warns(ConvergenceWarning, match=r"after 2 finished epochs.*usable") as caught,
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(digits)
    assert caught[0].filename == __file__
    assert all(map(torch.equal, weights(model), weights(full)))


def test_ctrl_c_stays_ctrl_c_where_weights_are_not_finite(rows, tiny):
    class Breaks:
        def on_step_end(self, trainer, phase):
            with torch.no_grad():
                next(trainer.network.parameters()).fill_(torch.nan)
            raise KeyboardInterrupt

    model = tiny(callbacks=[Breaks()])
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows)
    assert not hasattr(model, "network_")


# --- a trainer of public parts and custom ones ----------------------------------------------------


def network():
    torch.manual_seed(0)
    return Autoencoder([Layer(64, 5, activation="tanh", output_activation="identity")])


@pytest.fixture
def train(rows):
    """Return a function that trains a network with custom parts, and returns the history."""

    def run(net, source=None):
        history, everyone = History(), np.arange(len(rows))
        source = source or BatchSource(
            rows, PairwiseKernel().fit(rows).on(rows), everyone, everyone[:0],
            20, 5, np.random.default_rng(0), CPU,
        )  # fmt: skip
        optimization = Optimization(learning_rate="constant", learning_rate_init=0.01)
        trainer = Trainer(net, frobenius, source, [history], optimization, CPU)
        trainer.run([Phase(FINE_TUNING, net, net.parameters, 3, alignment_weight=0.3)])
        return history.records

    return run


def test_a_custom_source(train):
    class Stream:
        """Rows that never come twice."""

        n_steps, n_drawn = 4, 0

        def draw(self, with_prior, input_noise):
            self.n_drawn += 1
            x = torch.rand(10, 64, generator=torch.Generator().manual_seed(self.n_drawn))
            return Batch(x, x, x @ x.T)

        def held_out(self, with_prior):
            return iter([self.draw(True, 0.0)])

        def state_dict(self):
            return {"n_drawn": self.n_drawn}

        def load_state_dict(self, state):
            self.n_drawn = state["n_drawn"]

    records = train(network(), source=Stream())
    assert [r["validation_loss"] > 0 for r in records] == [True] * 3


def test_the_estimator_trains_in_this_way(rows, train):
    """With the same batches and start, the weights are the same."""
    net = network()
    model = DeepKernelizedAutoencoder(
        5, network=net, alignment="frobenius", alignment_weight=0.3, batch_size=20,
        steps_per_epoch=5, max_iter=3, decoder_max_iter=0, random_state=0,
        optimization=Optimization(learning_rate="constant", learning_rate_init=0.01),
    ).fit(rows)  # fmt: skip
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    everyone = np.arange(len(rows))
    source = BatchSource(
        rows, model.kernel_.on(rows), everyone, everyone[:0],
        20, 5, np.random.default_rng(seed), CPU,
    )  # fmt: skip
    assert train(net, source=source) == model.history_
    assert all(map(torch.equal, net.parameters(), model.network_.parameters()))
