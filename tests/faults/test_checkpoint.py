"""Fits that are broken off and resumed end at the model of an unbroken one, to the bit."""

from __future__ import annotations

import numpy as np
import pytest

from dkae import InvertibleNystroem
from dkae.decoders import MLPDecoder
from dkae.training import DECODER, FINE_TUNING, EarlyStopping, Trainer, checkpoint
from tests.training.helpers import Killed, assert_same

# The rate is so high that the loss rises now and then, and the best weights are not the last.
STOPPING = {
    "optimization__learning_rate_init": 0.2, "alignment_weight": 0.9, "validation_fraction": 0.1,
}  # fmt: skip
#: Recipes that between them use every part of a state.
RECIPES = {
    "all phases": {
        "max_iter": 2, "pretrain_max_iter": 1, "decoder_max_iter": 2, "input_noise": 0.1,
    },
    "constant": {
        "max_iter": 3, "network__tied_weights": False, "validation_fraction": 0.2,
        "optimization__learning_rate": "constant", "optimization__max_grad_norm": 0.1,
    },
    "views": {"max_iter": 2, "decoder_max_iter": 2, "augment": "jitter", "input_noise": 0.1},
    "pretraining": {"max_iter": 0, "pretrain_max_iter": 2},
    "stopping": {
        **STOPPING, "max_iter": 8, "pretrain_max_iter": 2, "decoder_max_iter": 3,
        "optimization__learning_rate": "constant", "optimization__learning_rate_init": 1.0,
    },
    "stopping, onecycle": {**STOPPING, "max_iter": 6},
}  # fmt: skip


@pytest.fixture
def small(tiny, monkeypatch):
    """Return a factory of models for `rows` that are trained as a recipe says."""
    monkeypatch.setattr("dkae.training.views.N_PASSES", 0.3)  # a pool every few batches

    def make(recipe):
        size = {"network__hidden_layer_sizes": (7,), "n_components": 3, "kernel": "linear"}
        callbacks = [EarlyStopping(1)] if "stopping" in recipe else None
        schedule = {"steps_per_epoch": 3, "batch_size": 20, "callbacks": callbacks}
        return tiny(**size, **schedule, **RECIPES[recipe])

    return make


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_fit_resumes_from_any_epoch_of_any_phase(recipe, rows, small, tmp_path, always, break_at):
    unbroken = small(recipe).fit(rows)
    n_epochs = len(unbroken.history_)
    assert n_epochs > 1
    for i in range(n_epochs):
        file = tmp_path / str(i)
        break_at(i)
        with pytest.raises(Killed):
            small(recipe).fit(rows, checkpoint=file)
        break_at(None)
        for _ in range(2):  # the file stays, and a finished fit comes to the same end
            assert_same(small(recipe).fit(rows, checkpoint=file), unbroken)


@pytest.mark.parametrize("recipe", ["all phases", "stopping, onecycle", "views"])
def test_a_fit_resumes_from_any_step(recipe, rows, small, tmp_path, always, break_at):
    unbroken = small(recipe).fit(rows)
    for i in range(3 * len(unbroken.history_)):
        break_at(i, "train_step")
        with pytest.raises(Killed):
            small(recipe).fit(rows, checkpoint=tmp_path / str(i))
        break_at(None, "train_step")
        assert_same(small(recipe).fit(rows, checkpoint=tmp_path / str(i)), unbroken)


@pytest.mark.parametrize("recipe", ["stopping", "stopping, onecycle"])
def test_these_recipes_stop_early_with_weights_other_than_the_last(recipe, rows, small):
    history = small(recipe).fit(rows).history_
    losses = [r["validation_loss"] for r in history if r["phase"] == FINE_TUNING]
    assert len(losses) < RECIPES[recipe]["max_iter"]
    assert np.argmin(losses) < len(losses) - 1


def test_a_fit_resumes_after_its_last_epoch(rows, small, tmp_path, always, monkeypatch):
    unbroken = small("stopping").fit(rows)
    with monkeypatch.context() as patch:
        patch.setattr("dkae.kernel_map.Quality.of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            small("stopping").fit(rows, checkpoint=tmp_path / "c")
    monkeypatch.setattr(Trainer, "run_epoch", lambda *_: pytest.fail("nothing is left"))
    assert_same(small("stopping").fit(rows, checkpoint=tmp_path / "c"), unbroken)


def test_the_state_before_the_newest_is_of_the_phase_before(rows, small, tmp_path, break_at):
    unbroken = small("all phases").fit(rows)
    break_at(3)
    with pytest.raises(Killed):
        small("all phases").fit(rows, checkpoint=tmp_path / "c")
    (tmp_path / "c.previous").replace(tmp_path / "c")
    state = checkpoint._read(tmp_path / "c")
    assert (state["phase"], state["epoch"], state["step"]) == ("layer 2", 0, 0)
    break_at(None)
    assert_same(small("all phases").fit(rows, checkpoint=tmp_path / "c"), unbroken)


def test_a_state_is_written_when_a_phase_begins(rows, small, tmp_path, monkeypatch):
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
    assert written == [(name, 0, 0) for name in ("layer 1", "layer 2", FINE_TUNING, DECODER)]


@pytest.mark.parametrize(
    ("n_epochs", "longer"),
    [(1, {"max_iter": 4}), (1, {"decoder_max_iter": 4}), (3, {"decoder_max_iter": 3})],
)
def test_a_run_may_become_longer(n_epochs, longer, rows, tiny, tmp_path, always, break_at):
    """Also where a parameter is a number of NumPy's."""
    params = {"max_iter": np.int64(2), "decoder_max_iter": 2}
    params |= {"optimization__learning_rate": "constant"}
    break_at(n_epochs)
    with pytest.raises(Killed):
        tiny(**params).fit(rows, checkpoint=tmp_path / "c")
    break_at(None)
    unbroken = tiny(**(params | longer)).fit(rows)
    assert_same(tiny(**(params | longer)).fit(rows, checkpoint=tmp_path / "c"), unbroken)


def test_the_decoder_of_another_map_resumes_too(rows, tmp_path, always, break_at):
    def model():
        decoder = MLPDecoder((7,), max_iter=4, steps_per_epoch=3)
        return InvertibleNystroem(5, decoder=decoder, random_state=0)

    unbroken = model().fit(rows)
    break_at(2)
    with pytest.raises(Killed):
        model().fit(rows, checkpoint=tmp_path / "c")
    break_at(None)
    resumed = model().fit(rows, checkpoint=tmp_path / "c")
    codes = unbroken.transform(rows)
    np.testing.assert_array_equal(resumed.transform(rows), codes)
    np.testing.assert_array_equal(
        resumed.inverse_transform(codes), unbroken.inverse_transform(codes)
    )


def test_a_link_stays_a_link(rows, tiny, tmp_path, always):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    tiny().fit(rows, checkpoint=tmp_path / "link")
    assert {path.name for path in tmp_path.iterdir()} == {"file", "file.previous", "link"}
    assert (tmp_path / "link").is_symlink()
