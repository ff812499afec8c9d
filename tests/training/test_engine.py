"""A trainer that is put together of public parts and custom ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import PairwiseKernel
from dkae.networks import Autoencoder, Layer
from dkae.training import (
    FINE_TUNING,
    Batch,
    BatchSource,
    Callback,
    Engine,
    History,
    Losses,
    Optimization,
    Phase,
    Trainer,
    dkae_loss,
)

CPU = torch.device("cpu")


def network():
    torch.manual_seed(0)
    return Autoencoder([Layer(64, 5, activation="tanh", output_activation="identity")])


@pytest.fixture
def train(rows):
    """Return a function that trains a network with custom parts."""

    def run(net, engine=None, loss=dkae_loss, source=None, callbacks=(), n_epochs=3):
        history, everyone = History(), np.arange(len(rows))
        source = source or BatchSource(
            rows, PairwiseKernel().fit(rows).on(rows), everyone, everyone[:0],
            20, 5, np.random.default_rng(0), CPU,
        )  # fmt: skip
        optimization = Optimization(learning_rate="constant", learning_rate_init=0.01)
        listeners = [history, *callbacks]
        engine = engine or Engine(CPU)
        trainer = Trainer(net, loss, source, listeners, engine, optimization)
        with engine.running():
            trainer.run([Phase(FINE_TUNING, net, net.parameters, n_epochs, alignment_weight=0.3)])
        return history.records

    return run


def test_the_parts_fit_together(train):
    records = train(network())
    assert [record["epoch"] for record in records] == [1, 2, 3]
    assert records[-1]["loss"] < records[0]["loss"]


def test_an_engine_that_joins_two_halves_of_each_batch(train):
    """The codes are gathered, because the Gram matrix is that of all rows."""

    class Halves(Engine):
        n_updates = 0

        def forward(self, network, inputs, is_encoder_fixed):
            parts = [super(Halves, self).forward(network, x, is_encoder_fixed)
                     for x in inputs.chunk(2)]  # fmt: skip
            return tuple(map(torch.cat, zip(*parts, strict=True)))

        def update(self, loss, parameters, optimizer):
            self.n_updates += 1
            super().update(loss, parameters, optimizer)

    whole, halves, engine = network(), network(), Halves(CPU)
    expected, records = train(whole), train(halves, engine)
    assert engine.n_updates == 15
    for ours, theirs in zip(halves.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
    assert records[-1]["loss"] == pytest.approx(expected[-1]["loss"], rel=1e-3)


@pytest.mark.parametrize("setting", ["float64", "autocast"])
def test_steps_are_in_float32_whatever_the_caller_has_set(train, setting):
    net, expected = network(), train(network())
    torch.set_default_dtype(torch.float64 if setting == "float64" else torch.float32)
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=setting == "autocast"):
            records = train(net)
    finally:
        torch.set_default_dtype(torch.float32)
    assert records == expected


def test_an_update_is_as_long_as_the_clipped_gradient():
    moves = []
    for max_grad_norm in (None, 1e6, 0.01):
        weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
        optimizer = torch.optim.SGD([weight], lr=1.0)
        Engine(CPU, max_grad_norm).update(weight.square().sum() / 2, [weight], optimizer)
        moves.append(float((weight.detach() - torch.tensor([3.0, 4.0])).norm()))
    assert moves == pytest.approx([5.0, 5.0, 0.01], rel=1e-4)


def test_a_custom_loss(train):
    def absolute(targets, codes, reconstructions, prior_gram, alignment_weight):
        error = (targets - reconstructions).abs().mean()
        return Losses(error, error, None)

    records = train(network(), loss=absolute)
    assert records[-1]["loss"] < records[0]["loss"]
    assert "alignment_loss" not in records[0]


def test_a_custom_source(train):
    class Stream:
        """Rows that never come twice."""

        n_steps, n_drawn = 4, 0

        def draw(self, with_prior, input_noise):
            self.n_drawn += 1
            x = torch.rand(10, 64, generator=torch.Generator().manual_seed(self.n_drawn))
            return Batch(x, x, x @ x.T)

        def held_out(self):
            return iter([self.draw(True, 0.0)])

        def state_dict(self):
            return {"n_drawn": self.n_drawn}

        def load_state_dict(self, state):
            self.n_drawn = state["n_drawn"]

    records = train(network(), source=Stream())
    assert [r["validation_loss"] > 0 for r in records] == [True] * 3


def test_callbacks_see_the_trainer(train):
    class Look(Callback):
        def on_train_begin(self, trainer):
            self.seen = (trainer.n_steps, trainer.epoch, trainer.stop)

    look = Look()
    train(network(), callbacks=[look], n_epochs=1)
    assert look.seen == (5, 0, False)


def test_the_estimator_trains_in_this_way(rows, train):
    """With the same batches and start, the weights are the same."""
    net = network()
    model = DeepKernelizedAutoencoder(
        5, network=net, alignment="frobenius", alignment_weight=0.3,
        standardize=False, batch_size=20, steps_per_epoch=5, max_iter=3,
        decoder_max_iter=0, learning_rate="constant", learning_rate_init=0.01, random_state=0,
    ).fit(rows)  # fmt: skip
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    everyone = np.arange(len(rows))
    source = BatchSource(
        rows, model.kernel_.on(rows), everyone, everyone[:0],
        20, 5, np.random.default_rng(seed), CPU,
    )  # fmt: skip
    assert train(net, source=source) == model.history_
    for ours, theirs in zip(net.parameters(), model.network_.parameters(), strict=True):
        assert torch.equal(ours, theirs)
