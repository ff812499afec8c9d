"""Callbacks from outside: which events they see, what they may do, and what ends a fit."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from dkae.training import Callback, EarlyStopping
from dkae.training.callbacks import EVENTS
from tests.training.helpers import Killed, assert_same


class Log(Callback):
    """Writes down every event but the steps."""

    def __init__(self):
        self.events = []

    def on_train_begin(self, trainer):
        self.events.append("train")

    def on_phase_begin(self, trainer, phase):
        self.events.append(f"{phase.name}, {trainer.epoch} of {phase.n_epochs}")

    def on_epoch_begin(self, trainer, phase):
        self.events.append(f"epoch {trainer.epoch}")

    def on_epoch_end(self, trainer, phase, record):
        self.events.append(f"epoch {trainer.epoch} done")

    def on_phase_end(self, trainer, phase):
        self.events.append(f"{phase.name} done")

    def on_train_end(self, trainer):
        self.events.append("train done")


class Stop:
    """No Callback by class: ends each phase at an event."""

    def __init__(self, event, at=None, phase_name=None):
        def stop(trainer, phase, record=None):
            if at in (None, trainer.epoch) and phase_name in (None, phase.name):
                trainer.stop = True

        setattr(self, event, stop)


class Count:
    """Counts epochs, and has its number kept in checkpoints."""

    def __init__(self, by=1):
        self.n_epochs, self.by = 0, by

    def on_epoch_end(self, trainer, phase, record):
        self.n_epochs += self.by

    def state_dict(self):
        return {"n_epochs": self.n_epochs}

    def load_state_dict(self, state):
        self.n_epochs = state["n_epochs"]


class Raise(Callback):
    """Raises an error at an event."""

    def __init__(self, event, error=Killed):
        def fail(*args):
            raise error

        setattr(self, event, fail)


class TestEvents:
    def test_in_their_order_and_in_that_of_the_list(self, rows, tiny):
        first, second = Log(), Log()
        second.events = first.events
        tiny(max_iter=2, decoder_max_iter=1, callbacks=(first, second)).fit(rows)
        assert first.events[::2] == first.events[1::2] == [
            "train",
            "fine-tuning, 0 of 2",
            "epoch 0", "epoch 1 done", "epoch 1", "epoch 2 done",
            "fine-tuning done",
            "decoder, 0 of 1",
            "epoch 0", "epoch 1 done",
            "decoder done",
            "train done",
        ]  # fmt: skip


class TestStop:
    @pytest.mark.parametrize(
        ("event", "at", "n_epochs"),
        [
            ("on_epoch_end", 2, 2),
            ("on_step_end", 1, 2),
            ("on_epoch_begin", 0, 0),
            ("on_phase_setup", None, 0),
        ],
    )
    def test_ends_the_phase_and_no_other(self, event, at, n_epochs, rows, tiny):
        model = tiny(max_iter=4, decoder_max_iter=4, callbacks=[Stop(event, at)]).fit(rows)
        phases = [record["phase"] for record in model.history_]
        assert phases == ["fine-tuning"] * n_epochs + ["decoder"] * n_epochs
        assert model.transform(rows).shape == (80, 5)

    def test_it_is_not_forgotten_by_a_checkpoint(self, rows, tiny, tmp_path, always, break_at):
        def model():
            stop = Stop("on_epoch_end", None, "fine-tuning")
            return tiny(max_iter=4, decoder_max_iter=1, callbacks=[stop])

        unbroken = model().fit(rows)
        assert len(unbroken.history_) == 2
        break_at(1)  # before the epoch of the decoder
        with pytest.raises(Killed):
            model().fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        assert_same(model().fit(rows, checkpoint=tmp_path / "c"), unbroken)


class TestEarlyStopping:
    def test_it_stops_and_keeps_the_best_weights(self, digits, tiny):
        class Best(Callback):
            """Keeps the weights of the best epoch by itself."""

            loss = np.inf

            def on_epoch_end(self, trainer, phase, record):
                if record["validation_loss"] < self.loss:
                    self.loss = record["validation_loss"]
                    self.weights = [p.detach().clone() for p in trainer.network.parameters()]

        best = Best()
        model = tiny(
            callbacks=[best, EarlyStopping(3)], validation_fraction=0.1, max_iter=200,
            optimization__learning_rate="constant", optimization__learning_rate_init=0.05,
        ).fit(digits)  # fmt: skip
        losses = [record["validation_loss"] for record in model.history_]
        assert len(losses) < 200
        assert int(np.argmin(losses)) < len(losses) - 1
        assert all(map(torch.equal, model.network_.parameters(), best.weights))

    def test_gains_below_the_tolerance_do_not_count(self, rows, tiny):
        class Given(Callback):
            def on_epoch_end(self, trainer, phase, record):
                record["validation_loss"] = (1.0, 0.8, 0.75, 0.72, 0.1)[trainer.epoch - 1]

        model = tiny(callbacks=[Given(), EarlyStopping(2, tol=0.1)], max_iter=9).fit(rows)
        assert len(model.history_) == 4

    def test_a_decoder_is_never_left_worse_than_it_was(self, digits, tiny):
        """The rate is so high that every epoch is worse than none."""
        given = tiny(steps_per_epoch=50, decoder_max_iter=1).fit(digits)
        model = tiny(network=given.network_, max_iter=0, decoder_max_iter=3)
        model.set_params(callbacks=[EarlyStopping(2)], validation_fraction=0.1)
        model.set_params(optimization__learning_rate="constant")
        model.set_params(optimization__learning_rate_init=3.0).fit(digits)
        codes = given.transform(digits)
        np.testing.assert_array_equal(
            model.inverse_transform(codes), given.inverse_transform(codes)
        )
        assert [r["phase"] for r in model.history_] == ["decoder"] * 2

    def test_interrupted_before_any_best_epoch_it_keeps_what_was_learned(
        self, digits, tiny, break_at
    ):
        params = {"max_iter": 1, "optimization__learning_rate": "constant"}
        params |= {"callbacks": [EarlyStopping()], "validation_fraction": 0.1}
        expected = tiny(steps_per_epoch=4, **params).fit(digits)
        break_at(4, "train_step", KeyboardInterrupt)
        model = tiny(steps_per_epoch=50, **params)
        with pytest.warns(ConvergenceWarning), pytest.raises(KeyboardInterrupt):
            model.fit(digits)
        assert all(map(torch.equal, model.network_.parameters(), expected.network_.parameters()))

    def test_it_needs_rows_to_watch(self, rows, tiny):
        with pytest.raises(ValueError, match=r"EarlyStopping needs rows to watch.*validation_f"):
            tiny(callbacks=[EarlyStopping()]).fit(rows)


class TestErrors:
    @pytest.mark.parametrize("event", EVENTS)
    def test_leave_the_former_fit_and_others_may_tidy_up(self, event, rows, tiny):
        model = tiny().fit(rows)
        before, codes = dict(vars(model)), model.transform(rows)
        log = Log()
        model.set_params(callbacks=[Raise(event), log], random_state=1)
        with pytest.raises(Killed):
            model.fit(rows)
        assert all(vars(model)[name] is before[name] for name in before if name.endswith("_"))
        np.testing.assert_array_equal(model.transform(rows), codes)
        assert log.events[-1] == "train done"
        assert_same(model.set_params(callbacks=None).fit(rows), tiny(random_state=1).fit(rows))

    @pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
    def test_a_failing_callback_does_not_hide_the_first_error(self, error, rows, tiny, break_at):
        break_at(3, "train_step", error)
        model = tiny(callbacks=[Raise("on_phase_end", ValueError("in the callback"))])
        if error is KeyboardInterrupt:
            with pytest.warns(ConvergenceWarning), pytest.raises(error):
                model.fit(rows)
            assert hasattr(model, "network_")
        else:
            with pytest.raises(error) as caught:
                model.fit(rows)
            assert "in the callback" in caught.value.__notes__[0]

    def test_no_progress_bar_is_left_behind(self, rows, tiny):
        n_threads = threading.active_count()
        with pytest.raises(Killed):
            tiny(callbacks=[Raise("on_train_end")], verbose=1).fit(rows)
        assert threading.active_count() == n_threads


class TestInterruption:
    """Ctrl-C is KeyboardInterrupt, and the model keeps what it learned: in any company."""

    @pytest.mark.parametrize(
        ("event", "n_epochs", "checkpoint", "others"),
        [
            ("on_step_end", 0, None, [Log(), Count()]),
            ("on_step_end", 0, "c", []),
            ("on_epoch_end", 1, "c", [Log(), Count()]),
            ("on_phase_begin", 0, None, [Log()]),
        ],
    )
    def test_anywhere(self, event, n_epochs, checkpoint, others, rows, tiny, tmp_path):
        model = tiny(callbacks=[*others, Raise(event, KeyboardInterrupt)])
        with (
            pytest.warns(ConvergenceWarning, match=f"after {n_epochs} finished epochs.*usable"),
            pytest.raises(KeyboardInterrupt),
        ):
            model.fit(rows, checkpoint=checkpoint and tmp_path / checkpoint)
        assert len(model.history_) == model.n_iter_ == n_epochs
        assert model.inverse_transform(model.transform(rows)).shape == rows.shape
        assert 0 < model.score(rows) <= 1
        assert all(p.requires_grad and p.grad is None for p in model.network_.parameters())
        assert not model.network_.training


class TestCheckpoints:
    @pytest.mark.parametrize("broken_at", [1, 3])
    def test_each_state_is_kept(self, broken_at, rows, tiny, tmp_path, always, break_at):
        params = {"max_iter": 2, "decoder_max_iter": 2}
        break_at(broken_at)
        with pytest.raises(Killed):
            tiny(**params, callbacks=[Count(), Count(0.5)]).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        counts = [Count(), Count(0.5)]  # two of a kind
        resumed = tiny(**params, callbacks=counts).fit(rows, checkpoint=tmp_path / "c")
        assert [count.n_epochs for count in counts] == [4, 2.0]
        assert_same(resumed, tiny(**params).fit(rows))

    def test_an_epoch_that_had_begun_does_not_begin_again(self, rows, tiny, tmp_path, always):
        with pytest.raises(Killed):
            tiny(max_iter=3, callbacks=[Raise("on_epoch_end")]).fit(rows, checkpoint=tmp_path / "c")
        log = Log()
        model = tiny(max_iter=3, callbacks=[log]).fit(rows, checkpoint=tmp_path / "c")
        assert log.events[:3] == ["train", "fine-tuning, 0 of 3", "epoch 1 done"]
        assert_same(model, tiny(max_iter=3).fit(rows))

    @pytest.mark.parametrize(("first", "then"), [([Count()], []), ([], [Count()])])
    def test_other_callbacks_with_a_state_are_named(
        self, first, then, rows, tiny, tmp_path, always, break_at
    ):
        break_at(1)
        with pytest.raises(Killed):
            tiny(callbacks=first).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        message = r"it has the state of History 1.*, but this run has .*: pass the same callbacks"
        with pytest.raises(ValueError, match=message):
            tiny(callbacks=then).fit(rows, checkpoint=tmp_path / "c")

    def test_a_state_that_no_file_can_hold_is_found_at_once(self, rows, tiny, tmp_path):
        class Strange(Count):
            def state_dict(self):
                return {"n_epochs": {self.n_epochs}}

        message = r"the state of a callback or optimizer \(.*Strange 1.n_epochs.*set\): let state_d"
        with pytest.raises(ValueError, match=message):
            tiny(callbacks=[Strange()]).fit(rows, checkpoint=tmp_path / "c")
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([object()], r"callbacks\[0\] is a object with no method that training calls: give it one"),
        ([Log(), 3], r"callbacks\[1\] is a int with no method .*: give it one of on_train_begin, "),
        ([Log], r"callbacks\[0\] is the class Log: pass an object of it, Log\(\)"),
        (Log(), r"callbacks=<.*Log .* is not a list: pass a list of callbacks"),
    ],
)
def test_what_is_no_callback(callbacks, message, rows, tiny):
    with pytest.raises(ValueError, match=message):
        tiny(callbacks=callbacks).fit(rows)
