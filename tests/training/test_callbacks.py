"""Callbacks from outside: what they are told, what they may do, and what ends a fit."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dkae.training import Callback, losses_of
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

    def __init__(self, event, at=None):
        def stop(trainer, phase, record=None):
            if at is None or trainer.epoch == at:
                trainer.stop = True

        setattr(self, event, stop)


class Count:
    """Counts epochs, and has its number kept in checkpoints."""

    n_epochs = 0

    def on_epoch_end(self, trainer, phase, record):
        self.n_epochs += 1

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


EVENTS = [name for name in vars(Callback) if name.startswith("on_")]


class TestEvents:
    def test_in_their_order(self, rows, tiny):
        log = Log()
        tiny(max_iter=2, decoder_max_iter=1, callbacks=[log]).fit(rows)
        assert log.events == [
            "train",
            "fine-tuning, 0 of 2",
            "epoch 0", "epoch 1 done", "epoch 1", "epoch 2 done",
            "fine-tuning done",
            "decoder, 0 of 1",
            "epoch 0", "epoch 1 done",
            "decoder done",
            "train done",
        ]  # fmt: skip

    def test_every_step(self, rows, tiny):
        class Steps:
            seen = ()

            def on_step_end(self, trainer, phase):
                self.seen = (*self.seen, (trainer.n_steps, trainer.epoch))

        steps = Steps()
        tiny(callbacks=[steps]).fit(rows)
        assert steps.seen == ((5, 0),) * 5 + ((5, 1),) * 5

    def test_several_are_told_in_the_order_of_the_list(self, rows, tiny):
        told = []

        class Teller:
            def __init__(self, name):
                self.name = name

            def on_train_begin(self, trainer):
                told.append(self.name)

        tiny(callbacks=(Teller("a"), Teller("b"), Teller("c"))).fit(rows)
        assert told == ["a", "b", "c"]

    def test_they_do_not_change_the_result(self, rows, tiny):
        assert_same(tiny(callbacks=[Log(), Count()]).fit(rows), tiny().fit(rows))

    def test_the_record_is_that_of_the_history(self, rows, tiny):
        class Own:
            def on_epoch_end(self, trainer, phase, record):
                record["rate"] = trainer.optimizer.param_groups[0]["lr"]

        history = tiny(callbacks=[Own()]).fit(rows).history_
        assert [record["rate"] > 0 for record in history] == [True, True]

    def test_a_method_may_be_switched_off(self, rows, tiny):
        class Quiet(Log):
            on_epoch_begin = None

        log = Quiet()
        tiny(max_iter=1, callbacks=[log]).fit(rows)
        assert "epoch 0" not in log.events
        assert "epoch 1 done" in log.events

    def test_the_losses_in_words(self):
        assert losses_of({"reconstruction_loss": 0.5}) == "L_r 0.5000"
        assert losses_of({"reconstruction_loss": 0.5, "alignment_loss": 1}) == (
            "L_r 0.5000  L_c 1.000"
        )


class TestStop:
    @pytest.mark.parametrize(
        ("event", "at", "n_epochs"),
        [
            ("on_epoch_end", 2, 2),
            ("on_step_end", 1, 2),
            ("on_epoch_begin", 2, 2),
            ("on_epoch_begin", 0, 0),
            ("on_phase_begin", None, 0),
            ("on_phase_setup", None, 0),
        ],
    )
    def test_ends_the_phase_and_no_other(self, event, at, n_epochs, rows, tiny):
        model = tiny(max_iter=4, decoder_max_iter=4, callbacks=[Stop(event, at)]).fit(rows)
        phases = [record["phase"] for record in model.history_]
        assert phases == ["fine-tuning"] * n_epochs + ["decoder"] * n_epochs
        assert model.transform(rows).shape == (80, 5)

    def test_what_was_learnt_is_that_of_the_epochs_before(self, rows, tiny):
        params = {"learning_rate": "constant"}
        stopped = tiny(max_iter=9, callbacks=[Stop("on_epoch_end", 2)], **params).fit(rows)
        assert_same(stopped, tiny(max_iter=2, **params).fit(rows))


class TestErrors:
    @pytest.mark.parametrize("event", EVENTS)
    def test_leave_the_former_fit(self, event, rows, tiny):
        model = tiny().fit(rows)
        before = {name: value for name, value in vars(model).items() if name.endswith("_")}
        codes = model.transform(rows)
        model.set_params(callbacks=[Raise(event)], random_state=1)
        with pytest.raises(Killed):
            model.fit(rows)
        assert all(getattr(model, name) is value for name, value in before.items())
        np.testing.assert_array_equal(model.transform(rows), codes)
        assert_same(model.set_params(callbacks=None).fit(rows), tiny(random_state=1).fit(rows))

    @pytest.mark.parametrize("event", EVENTS)
    def test_leave_a_new_model_unfitted(self, event, rows, tiny):
        model = tiny(callbacks=[Raise(event)])
        params = set(vars(model))
        with pytest.raises(Killed):
            model.fit(rows)
        assert set(vars(model)) == params

    @pytest.mark.parametrize("event", ["on_epoch_begin", "on_step_end", "on_epoch_end"])
    def test_others_may_tidy_up(self, event, rows, tiny):
        log = Log()
        with pytest.raises(Killed):
            tiny(callbacks=[log, Raise(event)]).fit(rows)
        assert log.events[-2:] == ["fine-tuning done", "train done"]

    @pytest.mark.parametrize("event", ["on_phase_end", "on_train_end"])
    def test_others_finish_where_one_fails_to(self, event, rows, tiny):
        log = Log()
        with pytest.raises(Killed):
            tiny(callbacks=[Raise(event), log]).fit(rows)
        assert log.events[-2:] == ["fine-tuning done", "train done"]

    def test_no_progress_bar_is_left_behind(self, rows, tiny):
        n_threads = threading.active_count()
        with pytest.raises(Killed):
            tiny(callbacks=[Raise("on_train_end")], verbose=1).fit(rows)
        assert threading.active_count() == n_threads

    def test_the_checkpoint_stays_and_the_next_fit_goes_on(self, rows, tiny, tmp_path, always):
        class Once:
            def on_epoch_end(self, trainer, phase, record):
                if trainer.epoch == 2:
                    raise Killed

        with pytest.raises(Killed):
            tiny(max_iter=3, callbacks=[Once()]).fit(rows, checkpoint=tmp_path / "c")
        log = Log()
        model = tiny(max_iter=3, callbacks=[log]).fit(rows, checkpoint=tmp_path / "c")
        # In the midst of an epoch: its beginning is not told again.
        assert log.events[:2] == ["train", "fine-tuning, 1 of 3"]
        assert log.events[2] != "epoch 1"
        assert_same(model, tiny(max_iter=3).fit(rows))


class TestInterruption:
    """Ctrl-C is KeyboardInterrupt, and the model keeps what it learnt: in any company."""

    @pytest.mark.parametrize("checkpoint", [None, "c"])
    @pytest.mark.parametrize("callbacks", [[], [Log(), Count()]], ids=["alone", "with others"])
    @pytest.mark.parametrize(
        ("event", "n_epochs"),
        [("on_step_end", 0), ("on_epoch_begin", 0), ("on_epoch_end", 1), ("on_phase_begin", 0)],
    )
    def test_anywhere(self, event, n_epochs, callbacks, checkpoint, rows, tiny, tmp_path):
        path = checkpoint and tmp_path / checkpoint
        model = tiny(callbacks=[*callbacks, Raise(event, KeyboardInterrupt)])
        with (
            pytest.warns(ConvergenceWarning, match=f"after {n_epochs} finished epochs.*usable"),
            pytest.raises(KeyboardInterrupt),
        ):
            model.fit(rows, checkpoint=path)
        assert len(model.history_) == model.n_iter_ == n_epochs
        assert model.inverse_transform(model.transform(rows)).shape == rows.shape
        assert 0 < model.score(rows) <= 1
        assert all(p.requires_grad and p.grad is None for p in model.network_.parameters())
        assert not model.network_.training

    @pytest.mark.filterwarnings("error")
    def test_where_warnings_are_errors(self, rows, tiny):
        model = tiny(callbacks=[Raise("on_epoch_end", KeyboardInterrupt)])
        with pytest.raises(KeyboardInterrupt):
            model.fit(rows)
        assert model.transform(rows).shape == (80, 5)

    def test_before_training_it_leaves_the_former_fit(self, rows, tiny):
        def kernel(A, B):
            raise KeyboardInterrupt

        model = tiny().fit(rows)
        codes = model.transform(rows)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(kernel=kernel).fit(rows)
        np.testing.assert_array_equal(model.transform(rows), codes)


class TestCheckpoints:
    @pytest.mark.parametrize("broken_at", [1, 2, 3])
    def test_a_state_is_kept(self, broken_at, rows, tiny, tmp_path, always, break_at):
        params = {"max_iter": 2, "decoder_max_iter": 2}
        break_at(broken_at)
        with pytest.raises(Killed):
            tiny(**params, callbacks=[Count()]).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        count = Count()
        resumed = tiny(**params, callbacks=[count]).fit(rows, checkpoint=tmp_path / "c")
        assert count.n_epochs == 4
        assert_same(resumed, tiny(**params).fit(rows))

    def test_two_of_a_kind_keep_a_state_each(self, rows, tiny, tmp_path, always, break_at):
        class Half(Count):
            def on_epoch_end(self, trainer, phase, record):
                self.n_epochs += 0.5

        Half.__name__ = "Count"
        break_at(1)
        with pytest.raises(Killed):
            tiny(callbacks=[Count(), Half()]).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        counts = [Count(), Half()]
        tiny(callbacks=counts).fit(rows, checkpoint=tmp_path / "c")
        assert [count.n_epochs for count in counts] == [2, 1.0]

    @pytest.mark.parametrize(("first", "then"), [([Count()], []), ([], [Count()])])
    def test_other_callbacks_with_a_state_are_named(
        self, first, then, rows, tiny, tmp_path, always, break_at
    ):
        break_at(1)
        with pytest.raises(Killed):
            tiny(callbacks=first).fit(rows, checkpoint=tmp_path / "c")
        break_at(None)
        with pytest.raises(ValueError, match=r"has the state of .*Count 1.*|.*this run.*Count 1"):
            tiny(callbacks=then).fit(rows, checkpoint=tmp_path / "c")

    def test_a_state_that_no_file_gives_back_is_found_at_once(self, rows, tiny, tmp_path, always):
        class Strange(Count):
            def state_dict(self):
                return {"n_epochs": {self.n_epochs}}

        message = r"state of one of .*Strange 1 \(.*n_epochs is a set\): let state_dict return num"
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
        ("bar", "callbacks='bar' is not a list"),
        ({"log": Log()}, "callbacks={.*} is not a list"),
    ],
)
def test_what_is_no_callback(callbacks, message, rows, tiny):
    model = tiny().fit(rows)
    network = model.network_
    with pytest.raises(ValueError, match=message):
        model.set_params(callbacks=callbacks).fit(rows)
    assert model.network_ is network
