"""What verbose shows where there is no terminal: lines, now and then, through logging."""

import io
import logging
import re

import pytest

from dkae.training import LogProgress, ProgressBar, progress
from dkae.training.progress import show_progress


class Clock:
    """Advances by a fixed time at each look."""

    def __init__(self, step):
        self.time, self.step = 0.0, step

    def monotonic(self):
        self.time += self.step
        return self.time


@pytest.fixture
def rows(digits):
    return digits[:100]


@pytest.fixture
def fit_logged(rows, tiny, caplog, monkeypatch):
    """Return a function that fits a model and returns the lines that it logs."""
    caplog.set_level(logging.INFO, logger="dkae")

    def fit(step=0.0, every_seconds=30.0, **params):
        monkeypatch.setattr(progress, "time", Clock(step))
        model = tiny(callbacks=[LogProgress(every_seconds)], **params).fit(rows)
        assert {record.name for record in caplog.records} == {"dkae"}
        plan, *lines = caplog.messages
        assert plan.startswith("DeepKernelizedAutoencoder: 64-16-5, output sigmoid, kernel 'rbf', ")
        return lines, model

    return fit


def test_a_line_when_a_phase_begins_and_one_when_it_ends(fit_logged):
    lines, model = fit_logged(pretrain_max_iter=1, max_iter=2, decoder_max_iter=1)
    assert [line.partition(":")[0] for line in lines] == [
        phase
        for phase in ("layer 1", "layer 2", "fine-tuning", "decoder")
        for _ in ("begin", "end")
    ]
    assert lines[4] == "fine-tuning: epochs to train: 2, of 5 steps each"
    last = next(r for r in reversed(model.history_) if r["phase"] == "fine-tuning")
    assert lines[5] == (
        f"fine-tuning: 2 of 2 epochs done in 0 s  L_r {last['reconstruction_loss']:.4f}"
        f"  L_c {last['alignment_loss']:.3f}"
    )


@pytest.mark.parametrize(("step", "n_between"), [(1, 0), (10, 6), (30, 19)])
def test_lines_within_a_phase_have_a_least_distance(step, n_between, fit_logged):
    """A step takes `step` seconds, and the last of 20 is logged as the end of the phase."""
    lines, _ = fit_logged(step=step, max_iter=4)
    assert len(lines) == 2 + n_between


def test_a_line_says_how_far_the_training_is(fit_logged):
    lines, _ = fit_logged(step=30, max_iter=4)
    assert lines[1] == "fine-tuning: epoch 1 of 4, 5% done, 10 min left"
    assert re.fullmatch(
        r"fine-tuning: epoch 4 of 4, 95% done, 30 s left  L_r \d\.\d{4}  L_c \d\.\d{3}", lines[-2]
    )


def test_a_phase_that_is_stopped_says_how_far_it_came(rows, tiny, caplog):
    class Stop:
        def on_epoch_end(self, trainer, phase, record):
            trainer.stop = True

    caplog.set_level(logging.INFO, logger="dkae")
    tiny(callbacks=[Stop(), LogProgress()], max_iter=4).fit(rows)
    assert caplog.messages[-1].startswith("fine-tuning: 1 of 4 epochs done in 0 s  L_r ")


def test_verbose_goes_to_a_logger_that_listens(rows, tiny, caplog, capsys):
    caplog.set_level(logging.INFO, logger="dkae")
    tiny(verbose=1).fit(rows)
    assert "fine-tuning: epochs to train: 2" in caplog.text
    assert capsys.readouterr() == ("", "")


def test_verbose_goes_to_standard_error_where_nobody_listens(rows, tiny, caplog, capsys):
    caplog.set_level(logging.WARNING, logger="dkae")
    tiny(verbose=1).fit(rows)
    out, err = capsys.readouterr()
    assert (out, caplog.text) == ("", "")
    assert err.splitlines()[0] == "fine-tuning: epochs to train: 2, of 5 steps each"


def test_a_handler_that_does_nothing_does_not_listen(rows, tiny, monkeypatch, caplog, capsys):
    logger = logging.getLogger("dkae")
    assert any(isinstance(handler, logging.NullHandler) for handler in logger.handlers)
    monkeypatch.setattr(logger, "propagate", False)
    caplog.set_level(logging.INFO, logger="dkae")
    tiny(verbose=1).fit(rows)
    assert "fine-tuning" in capsys.readouterr().err


def test_a_bar_on_a_terminal_and_lines_elsewhere(monkeypatch):
    assert isinstance(show_progress(), LogProgress)
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr("sys.stderr", terminal)
    assert isinstance(show_progress(), ProgressBar)
