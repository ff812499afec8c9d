"""What signals leave of a training that has a checkpoint."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dkae.training import Callback, checkpoint, has_checkpoint
from tests.training.helpers import assert_same

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")

PARAMS = {"max_iter": 2, "pretrain_max_iter": 1, "decoder_max_iter": 2, "input_noise": 0.1}


class Raise(Callback):
    """Sends this process a signal in the midst of a step."""

    def __init__(self, number, step):
        self.number, self.step, self.n_steps = number, step, 0

    def on_step_end(self, trainer, phase):
        self.n_steps += 1
        if self.n_steps == self.step:
            signal.raise_signal(self.number)


@pytest.fixture
def handlers():
    """The handlers of this process, which must be there again afterwards."""
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    assert {n: signal.getsignal(n) for n in before} == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_fit_resumes_from_the_step_of_a_signal(number, rows, tiny, tmp_path, handlers, capsys):
    """No write was due: the phase has only the state that the signal asked for."""
    unbroken = tiny(**PARAMS).fit(rows)
    n_steps = len(unbroken.history_) * tiny().steps_per_epoch
    for step in range(1, n_steps + 1, 3):
        file = tmp_path / str(step)
        with pytest.raises(SystemExit) as ended:
            tiny(**PARAMS, callbacks=[Raise(number, step)]).fit(rows, checkpoint=file)
        assert ended.value.code == 128 + number
        assert f"ended by {number.name}; the state of the training is in" in capsys.readouterr().err
        assert_same(tiny(**PARAMS).fit(rows, checkpoint=file), unbroken)


def test_ctrl_c_finishes_the_step(rows, tiny, tmp_path, handlers):
    model = tiny(**PARAMS, callbacks=[Raise(signal.SIGINT, 7)])
    with (
        pytest.warns(ConvergenceWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        model.fit(rows, checkpoint=tmp_path / "c")
    assert model.transform(rows).shape == (80, 5)  # it keeps what it has learnt
    assert_same(tiny(**PARAMS).fit(rows, checkpoint=tmp_path / "c"), tiny(**PARAMS).fit(rows))


def test_a_second_ctrl_c_does_not_wait(rows, tiny, tmp_path, handlers):
    class Twice(Callback):
        def on_step_end(self, trainer, phase):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            pytest.fail("still here")

    with (
        pytest.warns(ConvergenceWarning, match="interrupted"),
        pytest.raises(KeyboardInterrupt),
    ):
        tiny(**PARAMS, callbacks=[Twice()]).fit(rows, checkpoint=tmp_path / "c")


def test_one_that_comes_after_the_last_step_is_obeyed(rows, tiny, tmp_path, handlers):
    class Late(Callback):
        def on_train_end(self, trainer):
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit):
        tiny(callbacks=[Late()]).fit(rows, checkpoint=tmp_path / "c")


def test_a_handler_of_the_user_s_is_called_when_the_state_is_written(rows, tiny, tmp_path):
    seen = []
    former = signal.signal(signal.SIGTERM, lambda *_: seen.append(has_checkpoint(tmp_path / "c")))
    try:
        model = tiny(callbacks=[Raise(signal.SIGTERM, 2)]).fit(rows, checkpoint=tmp_path / "c")
    finally:
        signal.signal(signal.SIGTERM, former)
    assert seen == [True]
    assert_same(model, tiny().fit(rows))  # it said nothing of an end


def test_one_that_is_ignored_stays_ignored(rows, tiny, tmp_path):
    former = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        model = tiny(callbacks=[Raise(signal.SIGHUP, 2)]).fit(rows, checkpoint=tmp_path / "c")
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, former)
    assert_same(model, tiny().fit(rows))


def test_fits_in_threads_leave_signals_alone(rows, tiny, tmp_path, handlers):
    fitted = []
    thread = threading.Thread(
        target=lambda: fitted.append(tiny().fit(rows, checkpoint=tmp_path / "c"))
    )
    thread.start()
    thread.join()
    assert_same(fitted[0], tiny().fit(rows))


SCRIPT = """
import os, pickle, signal, sys
import numpy as np, torch
from dkae.training import Callback, checkpoint

torch.set_num_threads(1)
if sys.argv[1] == "9":
    checkpoint.EVERY_SECONDS = 0

class Send(Callback):
    steps = 0

    def on_step_end(self, trainer, phase):
        self.steps += 1
        if self.steps == 10:
            os.kill(os.getpid(), int(sys.argv[1]))

model = pickle.load(open("model", "rb")).set_params(callbacks=[Send()])
model.fit(np.load("X.npy"), checkpoint="c")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGKILL, -signal.SIGKILL),
        (signal.SIGTERM, 143),
        (signal.SIGHUP, 129),
        (signal.SIGINT, -signal.SIGINT),
    ],
)
def test_processes_that_are_ended(number, code, rows, tiny, tmp_path):
    model = tiny(**PARAMS)
    (tmp_path / "model").write_bytes(pickle.dumps(model))
    np.save(tmp_path / "X.npy", rows)
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(int(number))]
    ended = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True)
    assert ended.returncode == code
    state = checkpoint._read(tmp_path / "c")
    assert state["step"] + state["epoch"] > 0
    assert_same(model.fit(rows, checkpoint=tmp_path / "c"), tiny(**PARAMS).fit(rows))
