"""HistoryDisplay against the history of a model."""

import numpy as np
import pytest

from dkae.plotting import HistoryDisplay
from tests.plotting.conftest import Model


def curves_of(ax, name):
    """Return the points of the curves of "training" or "validation", all phases in one."""
    color = {"training": "#0072b2", "validation": "#d55e00"}[name]
    lines = [line for line in ax.lines if line.get_color() == color]
    return np.concatenate([line.get_xydata() for line in lines]) if lines else np.empty((0, 2))


def turns_of(ax):
    return [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]


def phase_names(ax):
    return [label.get_text() for child in ax.child_axes for label in child.get_xticklabels()]


@pytest.mark.parametrize("part", ["training", "validation"])
@pytest.mark.parametrize(("panel", "term"), [(0, "reconstruction_loss"), (1, "alignment_loss")])
def test_curves_are_the_history(model, part, panel, term):
    display = HistoryDisplay.from_estimator(model, alpha=0.3)
    key = term if part == "training" else f"validation_{term}"
    expected = [(5 * i, r[key]) for i, r in enumerate(model.history_, 1) if key in r]
    np.testing.assert_allclose(curves_of(display.ax_[panel], part), np.reshape(expected, (-1, 2)))
    assert display.ax_[0].lines[0].get_alpha() == 0.3


def test_phases_are_parted_and_named(model):
    # One epoch for each of two layers, two of fine-tuning, two of the decoder; five steps each.
    display = HistoryDisplay.from_estimator(model)
    for ax in display.ax_:
        assert turns_of(ax) == [7.5, 12.5, 22.5]
        assert phase_names(ax) == ["layer 1", "layer 2", "fine-tuning", "decoder"]
        assert ax.get_xlim() == (2.5, 32.5)
    lines = [line for line in display.ax_[0].lines if line.get_color() == "#0072b2"]
    assert [len(line.get_xdata()) for line in lines] == [1, 1, 2, 2]  # not connected
    legend = display.ax_[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["training", "validation"]


def test_one_phase_and_one_term():
    history = [{"phase": "a", "reconstruction_loss": 0.1}] * 3
    display = HistoryDisplay(history).plot()
    for ax in display.ax_:
        assert (turns_of(ax), phase_names(ax), ax.get_legend()) == ([], [], None)
    assert not display.ax_[1].lines
    assert [text.get_text() for text in display.ax_[1].texts] == ["not in the history"]


def test_epochs_are_counted_if_steps_follow_from_the_data(digits):
    display = HistoryDisplay.from_estimator(Model().fit(digits))
    assert list(curves_of(display.ax_[0], "training")[:, 0]) == [1, 2, 3, 4, 5, 6]
    assert [ax.get_xlabel() for ax in display.ax_] == ["epoch", "epoch"]


def test_a_negative_loss_has_a_linear_axis():
    history = [{"phase": "a", "reconstruction_loss": 0.1, "alignment_loss": -0.5}] * 3
    left, right = HistoryDisplay(history).plot().ax_
    assert (left.get_yscale(), right.get_yscale()) == ("log", "linear")


def test_long_phases_have_no_markers_and_narrow_names_stand_upright():
    history = [{"phase": "layer 1", "reconstruction_loss": 0.1}]
    history += [{"phase": "fine-tuning", "reconstruction_loss": 1 / (i + 1)} for i in range(100)]
    ax = HistoryDisplay(history).plot().ax_[0]
    single, long, _ = ax.lines
    assert (single.get_markersize(), long.get_markersize()) == (3, 0)
    (names,) = ax.child_axes
    assert [label.get_rotation() for label in names.get_xticklabels()] == [90, 0]


def test_empty_history():
    with pytest.raises(ValueError, match="history is empty: there is no finished epoch"):
        HistoryDisplay([])
