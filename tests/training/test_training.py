"""The loop, pretraining, early stopping, interruption."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from dkae.training.building import build
from sklearn.exceptions import ConvergenceWarning

from dkae import recipes
from dkae.kernels import kernel_of
from dkae.networks import Autoencoder
from dkae.training import Callback, EarlyStopping, Trainer
from dkae.training.optimization import LEARNING_RATES
from dkae.training.sources import split_rows
from tests.conftest import PLAIN


def weights(model) -> list[np.ndarray]:
    return [p.detach().numpy() for p in model.network_.parameters()]


def seed_of(random_state: int) -> int:
    """The seed of weights and batches that `fit` draws."""
    return np.random.RandomState(random_state).randint(np.iinfo(np.int32).max)


def test_loss_falls(digits, tiny):
    history = tiny(max_iter=10, steps_per_epoch=20, learning_rate_init=0.01).fit(digits).history_
    for term in ("loss", "reconstruction_loss", "alignment_loss"):
        assert history[-1][term] < 0.7 * history[0][term]


def test_history_is_plain_data_with_both_terms(digits, tiny):
    model = tiny(validation_fraction=0.2, max_iter=3).fit(digits)
    terms = ["loss", "reconstruction_loss", "alignment_loss"]
    assert [record["epoch"] for record in model.history_] == [1, 2, 3]
    for record in model.history_:
        assert list(record) == ["phase", "epoch", *terms, *(f"validation_{t}" for t in terms)]
        assert all(type(record[t]) is float for t in terms)
        assert record["loss"] == pytest.approx(
            0.9 * record["reconstruction_loss"] + 0.1 * record["alignment_loss"], rel=1e-5
        )
    assert model.n_iter_ == 3


def test_plain_autoencoder_does_not_depend_on_the_kernel(digits, tiny):
    a, b = (tiny(alignment_weight=0, kernel=kernel).fit(digits) for kernel in ("rbf", "linear"))
    for x, y in zip(weights(a), weights(b), strict=True):
        np.testing.assert_array_equal(x, y)


def test_pure_alignment_leaves_the_decoder_alone(digits, tiny):
    model = tiny(alignment_weight=1, tied_weights=False).fit(digits)
    start = build(tiny(tied_weights=False), digits, None, seed_of(0)).network
    for layer, fresh in zip(model.network_.layers, start.layers, strict=True):
        assert not layer.decoder_bias.any()
        assert torch.equal(layer.decoder_weight, fresh.decoder_weight)
    assert model.network_.layers[0].bias.any()


def test_one_step_is_one_step_of_adam_on_equation_8(digits):
    """An independent step, written out with torch's reference Adam and the formulas."""
    model = recipes.default(n_components=3, hidden_layer_sizes=(4,), random_state=0, **PLAIN)
    model.set_params(batch_size=300, max_iter=1, steps_per_epoch=1, learning_rate="constant")
    model.set_params(decoder_max_iter=0)
    network = build(model, digits, None, seed_of(0)).network
    x = torch.from_numpy(digits)
    P = torch.from_numpy(kernel_of(model, digits, None).gram(digits))
    adam = torch.optim.Adam(network.parameters(), lr=2e-3, foreach=False, fused=False)
    codes, back = network(x)
    C = codes @ codes.T
    loss = 0.9 * ((x - back) ** 2).sum() / x.numel() + 0.1 * (C / C.norm() - P / P.norm()).norm()
    loss.backward()
    adam.step()
    model.fit(digits)
    for ours, theirs in zip(model.network_.parameters(), network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=0)


class TestPretraining:
    @pytest.fixture
    def sizes(self):
        return {"hidden_layer_sizes": (12, 10), "pretrain_max_iter": 3}

    def test_every_layer_is_trained_in_turn_and_then_the_whole(self, digits, tiny, sizes):
        phases = [r["phase"] for r in tiny(**sizes, max_iter=2).fit(digits).history_]
        assert phases == ["layer 1"] * 3 + ["layer 2"] * 3 + ["layer 3"] * 3 + ["fine-tuning"] * 2

    def test_only_the_code_layer_sees_the_alignment(self, digits, tiny, sizes):
        history = tiny(**sizes, alignment_weight=0.5).fit(digits).history_
        for record in history:
            is_aligned = record["loss"] != pytest.approx(record["reconstruction_loss"], rel=1e-6)
            assert is_aligned == (record["phase"] in ("layer 3", "fine-tuning"))

    def test_lower_layers_depend_on_neither_the_weight_nor_the_code_size(self, digits, tiny, sizes):
        first_epochs = [
            [r for r in tiny(**sizes, **other).fit(digits).history_ if r["phase"] < "layer 3"]
            for other in ({}, {"alignment_weight": 0.9}, {"n_components": 2})
        ]
        first, *others = [
            [r["reconstruction_loss"] for r in records if r["phase"].startswith("layer")]
            for records in first_epochs
        ]
        assert first
        assert all(other == first for other in others)

    def test_a_layer_learns_on_the_activations_below_and_leaves_them_alone(
        self, digits, tiny, sizes
    ):
        class Watching(Callback):
            def __init__(self):
                self.seen = []

            def on_phase_begin(self, trainer, phase):
                layers = copy.deepcopy([layer.state_dict() for layer in trainer.network.layers])
                self.seen.append((phase, layers))

        watching = Watching()
        tiny(**sizes, callbacks=[watching]).fit(digits)
        *seen, (last, _) = watching.seen
        assert [phase.name for phase, _ in seen] == ["layer 1", "layer 2", "layer 3"]
        x = torch.from_numpy(digits)
        assert [phase.lift(x).shape[1] for phase, _ in seen] == [64, 12, 10]
        assert all(len(phase.network.layers) == 1 for phase, _ in seen)
        assert last.lift is None
        # While layer 2 learnt, layer 1 stayed as it was.
        assert torch.equal(seen[1][1][0]["weight"], seen[2][1][0]["weight"])
        assert not torch.equal(seen[1][1][1]["weight"], seen[2][1][1]["weight"])

    def test_unfolding_is_free_because_layers_are_shared(self, digits, tiny, sizes):
        network = build(tiny(**sizes), digits, None, 0).network
        alone = Autoencoder([network.layers[1]])
        with torch.no_grad():
            alone.layers[0].weight.fill_(7)
        assert (network.layers[1].weight == 7).all()

    def test_pretraining_helps_a_deep_sigmoid_network(self, digits):
        def loss(pretrain_max_iter):
            model = recipes.paper(
                n_components=10, hidden_layer_sizes=(40, 30, 20), steps_per_epoch=20, max_iter=10,
                pretrain_max_iter=pretrain_max_iter, random_state=0, learning_rate_init=0.01,
            )  # fmt: skip
            return model.fit(digits).history_[-1]["reconstruction_loss"]

        assert loss(pretrain_max_iter=10) < loss(pretrain_max_iter=0)


class TestEarlyStopping:
    def test_it_stops_and_keeps_the_best_weights(self, digits, tiny):
        model = tiny(
            early_stopping=True, n_iter_no_change=3, max_iter=200, learning_rate="constant",
            learning_rate_init=0.05, steps_per_epoch=5, alignment_weight=1.0,
        ).fit(digits)  # fmt: skip
        losses = [record["validation_loss"] for record in model.history_]
        assert len(losses) < 200
        assert int(np.argmin(losses)) < len(losses) - 1
        rng = np.random.default_rng(seed_of(0))
        _, held_out = split_rows(len(digits), 0.1, rng)
        assert model.score(digits[held_out]) == pytest.approx(1 - min(losses) ** 2 / 2, abs=1e-5)

    def test_gains_below_the_tolerance_do_not_count(self, digits, tiny):
        class Phase:
            network = build(tiny(), digits, None, 0).network
            is_encoder_fixed = False

        class Trained:
            stop = False

        stopping, stopped = EarlyStopping(patience=2, tol=0.1), []
        stopping.on_phase_setup(Trained, Phase)
        for loss in (1.0, 0.8, 0.75, 0.72):
            stopping.on_epoch_end(Trained, Phase, {"validation_loss": loss})
            stopped.append(Trained.stop)
        assert stopped == [False] * 3 + [True]

    def test_one_held_out_row_would_be_aligned_with_anything(self):
        train, held_out = split_rows(10, 0.1, np.random.default_rng(0))
        assert (len(train), len(held_out)) == (8, 2)

    def test_held_out_rows_are_not_trained_on(self, digits, tiny):
        rng = np.random.default_rng(0)
        train, held_out = split_rows(100, 0.25, rng)
        assert len(held_out) == 25
        assert not set(train) & set(held_out)
        assert set(train) | set(held_out) == set(range(100))

    def test_it_needs_a_validation_part(self, digits, tiny):
        with pytest.raises(ValueError, match="validation_fraction=0 holds none"):
            tiny(early_stopping=True, validation_fraction=0).fit(digits)

    def test_two_rows_cannot_be_split(self, digits, tiny):
        with pytest.raises(ValueError, match=r"of 2 rows leaves fewer than 2 rows to train"):
            tiny(early_stopping=True).fit(digits[:2])


class TestInterruption:
    """The model keeps what it has learnt; tests/training/test_callbacks.py has the rest."""

    @pytest.fixture
    def interrupt(self, break_at):
        def fit(model, X, step, n_epochs):
            break_at(step, "train_step", KeyboardInterrupt)
            message = rf"after {n_epochs} finished epochs.*usable"
            with (
                pytest.warns(ConvergenceWarning, match=message) as caught,
                pytest.raises(KeyboardInterrupt),
            ):
                model.fit(X)
            assert caught[0].filename == __file__
            return model

        return fit

    def test_what_was_learnt_is_that_of_the_steps_that_were_taken(self, digits, tiny, interrupt):
        full = tiny(max_iter=2, learning_rate="constant").fit(digits)
        model = interrupt(tiny(max_iter=50, learning_rate="constant"), digits, 10, 2)
        for a, b in zip(weights(model), weights(full), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_early_stopping_does_not_go_back_to_the_start(self, digits, tiny, interrupt):
        """There is no best epoch yet: what the first one had learnt is kept."""
        params = {"learning_rate": "constant", "early_stopping": True}
        steps = tiny(max_iter=1, steps_per_epoch=4, **params).fit(digits)
        model = interrupt(tiny(max_iter=1, steps_per_epoch=50, **params), digits, 4, 0)
        for a, b in zip(weights(model), weights(steps), strict=True):
            np.testing.assert_array_equal(a, b)

    def test_in_pretraining_too(self, digits, tiny, interrupt):
        model = interrupt(tiny(pretrain_max_iter=2), digits, 3, 0)
        assert model.n_iter_ == 0
        assert np.isfinite(model.transform(digits)).all()


@pytest.mark.parametrize("name", LEARNING_RATES)
@pytest.mark.parametrize("n_steps", [1, 2, 3, 10, 57])
def test_schedules_never_exceed_the_peak_and_work_for_any_budget(name, n_steps):
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(1))], 0.1)
    schedule = LEARNING_RATES[name](optimizer, n_steps, True)
    rates = []
    for _ in range(n_steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert 0 < max(rates) <= 0.1 + 1e-12
    if name == "constant":
        assert rates == [0.1] * n_steps
    elif n_steps == 57 and name != "endless":  # which knows no end to come to
        assert rates[-1] < 0.001


def test_onecycle_rises_and_falls(digits, tiny, monkeypatch):
    rates = []
    original = Trainer.train_step

    def train_step(trainer, phase, batch):
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        return original(trainer, phase, batch)

    monkeypatch.setattr(Trainer, "train_step", train_step)
    tiny(learning_rate="onecycle", max_iter=10, steps_per_epoch=5, learning_rate_init=0.01).fit(
        digits
    )
    top = int(np.argmax(rates))
    assert 10 < top < 20
    assert rates[top] == pytest.approx(0.01)
    assert rates[0] < 0.001
    assert rates[-1] < 0.0001


def test_clipping_bounds_the_gradient(digits, tiny, monkeypatch):
    norms = []
    original = torch.optim.Adam.step

    def step(self, *args, **kwargs):
        grads = [p.grad for group in self.param_groups for p in group["params"]]
        norms.append(torch.stack([g.norm() for g in grads]).norm().item())
        return original(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    tiny(max_grad_norm=1e-3).fit(digits)
    assert max(norms) <= 1e-3 * 1.001


def test_divergence_is_a_clear_error(digits, tiny):
    with pytest.raises(
        FloatingPointError, match=r"loss became (nan|inf).*lower learning_rate_init"
    ):
        tiny(learning_rate_init=1e30, learning_rate="constant").fit(digits)


def test_divergence_in_the_very_last_step_is_found_too(digits, tiny):
    with pytest.raises(FloatingPointError, match="a weight became infinite"):
        tiny(max_iter=1, steps_per_epoch=1, learning_rate_init=1e39, learning_rate="constant").fit(
            digits
        )


def test_failed_refit_leaves_the_fitted_model_as_it_was(digits, tiny):
    model = tiny().fit(digits)
    codes = model.transform(digits)
    model.set_params(learning_rate_init=1e30, learning_rate="constant")
    with pytest.raises(FloatingPointError):
        model.fit(digits[:, :30])
    with pytest.raises(ValueError, match="zero everywhere"):
        model.fit(digits[:, :30], gram=np.zeros((300, 300)))
    assert model.n_features_in_ == 64
    np.testing.assert_array_equal(model.transform(digits), codes)


def test_gradients_are_not_kept(digits, tiny):
    assert all(p.grad is None for p in tiny().fit(digits).network_.parameters())


def test_noise_trains_a_denoiser(digits, tiny):
    noisy = digits + np.random.default_rng(0).normal(0, 0.3, digits.shape).astype(np.float32)

    def error(input_noise):
        model = tiny(
            n_components=20, hidden_layer_sizes=(64,), input_noise=input_noise, max_iter=10,
            steps_per_epoch=60, learning_rate_init=0.005, alignment_weight=0.01,
        ).fit(digits)  # fmt: skip
        return np.mean((model.inverse_transform(model.transform(noisy)) - digits) ** 2)

    assert error(input_noise=0.5) < 0.9 * error(input_noise=0.0)


def test_silent_without_verbose_and_a_bar_with_it(digits, tiny, capsys):
    tiny(verbose=0).fit(digits)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "")
    tiny(verbose=1, pretrain_max_iter=1).fit(digits)
    out, err = capsys.readouterr()
    assert out == ""
    assert "layer 1" in err
    assert "fine-tuning" in err
