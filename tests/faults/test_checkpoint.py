"""Training that is broken off and goes on, and layers that are pretrained once for several fits."""

from __future__ import annotations

import numpy as np
import pytest

from dkae.training import DECODER, FINE_TUNING, Trainer, checkpoint
from tests.training.helpers import Killed, assert_same

#: Recipes, each with all that the state of a run may consist of somewhere.
RECIPES = {
    "onecycle": {"max_iter": 3},
    "constant": {"max_iter": 3, "learning_rate": "constant", "max_grad_norm": 0.1},
    "noise": {"max_iter": 3, "input_noise": 0.3, "learning_rate": "cosine"},
    "untied": {"max_iter": 2, "tied_weights": False, "validation_fraction": 0.2},
    "pretraining": {"max_iter": 2, "pretrain_max_iter": 2, "input_noise": 0.1},
    "pretraining only": {"max_iter": 0, "pretrain_max_iter": 2},
    "decoder": {"max_iter": 2, "decoder_max_iter": 2, "input_noise": 0.1},
    "all phases": {"max_iter": 1, "pretrain_max_iter": 1, "decoder_max_iter": 2},
    # The rate is so high that the loss rises now and then: see the test of these three below.
    "early stopping": {
        "max_iter": 8, "pretrain_max_iter": 6, "early_stopping": True, "n_iter_no_change": 2,
        "learning_rate": "constant", "learning_rate_init": 0.2, "alignment_weight": 0.9,
    },
    "early stopping, decoder": {
        "max_iter": 4, "decoder_max_iter": 9, "early_stopping": True, "n_iter_no_change": 1,
        "learning_rate": "constant", "learning_rate_init": 0.05, "alignment_weight": 0.9,
    },
    "early stopping, onecycle": {
        "max_iter": 6, "early_stopping": True, "n_iter_no_change": 1,
        "learning_rate_init": 0.2, "alignment_weight": 0.9,
    },
}  # fmt: skip


@pytest.fixture
def small(tiny):
    """Return a factory of models for `rows` that are trained as a recipe says."""

    def make(recipe):
        size = {"hidden_layer_sizes": (7,), "n_components": 3, "kernel": "linear"}
        return tiny(**size, steps_per_epoch=3, batch_size=20, **RECIPES[recipe])

    return make


class TestResuming:
    @pytest.mark.parametrize("recipe", RECIPES)
    def test_broken_before_any_epoch_of_any_phase(
        self, recipe, rows, small, tmp_path, always, break_at
    ):
        unbroken = small(recipe).fit(rows)
        n_epochs = len(unbroken.history_)
        assert n_epochs > 1
        for i in range(n_epochs):
            file = tmp_path / str(i)
            break_at(i)
            with pytest.raises(Killed):
                small(recipe).fit(rows, checkpoint=file)
            assert file.exists()
            break_at(None)
            for _ in range(2):  # the file stays, and a fit that is over goes on to the same end
                assert_same(small(recipe).fit(rows, checkpoint=file), unbroken)

    @pytest.mark.parametrize(
        ("recipe", "phase"),
        [
            ("early stopping", "layer 1"),
            ("early stopping", FINE_TUNING),
            ("early stopping, onecycle", FINE_TUNING),
            ("early stopping, decoder", DECODER),
        ],
    )
    def test_these_recipes_do_stop_early_with_weights_other_than_the_last(
        self, recipe, phase, rows, small
    ):
        history = small(recipe).fit(rows).history_
        losses = [r["validation_loss"] for r in history if r["phase"] == phase]
        name = {FINE_TUNING: "max_iter", DECODER: "decoder_max_iter"}.get(phase)
        assert len(losses) < RECIPES[recipe][name or "pretrain_max_iter"]
        assert np.argmin(losses) < len(losses) - 1

    @pytest.mark.parametrize("recipe", ["noise", "early stopping"])
    def test_broken_after_the_last_epoch_before_the_fit_was_over(
        self, recipe, rows, small, tmp_path, always, monkeypatch
    ):
        unbroken = small(recipe).fit(rows)
        with monkeypatch.context() as patch:
            patch.setattr("dkae.autoencoder.Quality.of", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                small(recipe).fit(rows, checkpoint=tmp_path / "c")
        monkeypatch.setattr(Trainer, "run_epoch", lambda *_: pytest.fail("nothing is left"))
        assert_same(small(recipe).fit(rows, checkpoint=tmp_path / "c"), unbroken)

    def test_broken_in_every_epoch_in_turn(self, rows, small, tmp_path, always, break_at):
        unbroken = small("pretraining").fit(rows)
        for _ in unbroken.history_[1:]:
            break_at(1)  # each call finishes one epoch
            with pytest.raises(Killed):
                small("pretraining").fit(rows, checkpoint=tmp_path / "c")
        break_at(1)
        assert_same(small("pretraining").fit(rows, checkpoint=tmp_path / "c"), unbroken)

    @pytest.mark.parametrize("recipe", ["all phases", "early stopping, decoder", "noise"])
    def test_broken_before_any_step(self, recipe, rows, small, tmp_path, always, break_at):
        unbroken = small(recipe).fit(rows)
        for i in range(3 * len(unbroken.history_)):
            break_at(i, "train_step")
            with pytest.raises(Killed):
                small(recipe).fit(rows, checkpoint=tmp_path / str(i))
            break_at(None, "train_step")
            assert_same(small(recipe).fit(rows, checkpoint=tmp_path / str(i)), unbroken)

    def test_an_old_state_goes_on_from_an_earlier_phase(self, rows, small, tmp_path, break_at):
        """As when the last write was less than a minute ago: there is that of the phase before."""
        unbroken = small("pretraining").fit(rows)
        break_at(5)
        with pytest.raises(Killed):
            small("pretraining").fit(rows, checkpoint=tmp_path / "c")
        (tmp_path / "c.previous").replace(tmp_path / "c")
        state = checkpoint._read(tmp_path / "c")
        assert (state["phase"], state["epoch"], state["step"]) == ("layer 2", 0, 0)
        break_at(None)
        assert_same(small("pretraining").fit(rows, checkpoint=tmp_path / "c"), unbroken)

    def test_every_phase_begins_with_one(self, rows, small, tmp_path, monkeypatch):
        written = []
        write = checkpoint.Checkpoint.write
        monkeypatch.setattr(
            checkpoint.Checkpoint,
            "write",
            lambda self, trainer, phase: (
                written.append((phase.name, trainer.epoch, trainer.step)),
                write(self, trainer, phase),
            ),
        )
        small("all phases").fit(rows, checkpoint=tmp_path / "c")
        names = ["layer 1", "layer 2", FINE_TUNING, DECODER]
        assert written == [(name, 0, 0) for name in names]

    @pytest.mark.parametrize(
        ("n_epochs", "params", "longer"),
        [
            (1, {"max_iter": 2, "decoder_max_iter": 2}, {"max_iter": 4}),
            (1, {"max_iter": 2, "decoder_max_iter": 2}, {"decoder_max_iter": 4}),
            (3, {"max_iter": 2, "decoder_max_iter": 2}, {"decoder_max_iter": 3}),
            (2, {"max_iter": 2, "pretrain_max_iter": 1}, {"max_iter": 3}),
        ],
    )
    def test_a_run_may_become_longer(
        self, n_epochs, params, longer, rows, tiny, tmp_path, always, break_at
    ):
        constant = {"learning_rate": "constant"} | params
        break_at(n_epochs)
        with pytest.raises(Killed):
            tiny(**constant).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        unbroken = tiny(**(constant | longer)).fit(rows)
        assert_same(tiny(**(constant | longer)).fit(rows, checkpoint=tmp_path / "c"), unbroken)

    def test_numbers_of_numpy_as_parameters(self, rows, tiny, tmp_path, always, break_at):
        def model():
            return tiny(max_iter=np.int64(3), learning_rate_init=np.float64(0.002))

        break_at(2)
        with pytest.raises(Killed):
            model().fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        assert_same(model().fit(rows, checkpoint=tmp_path / "c"), model().fit(rows))

    def test_a_link_stays_a_link(self, rows, tiny, tmp_path, always):
        (tmp_path / "link").symlink_to(tmp_path / "file")
        tiny().fit(rows, checkpoint=tmp_path / "link")
        assert {path.name for path in tmp_path.iterdir()} == {"file", "file.previous", "link"}
        assert (tmp_path / "link").is_symlink()
