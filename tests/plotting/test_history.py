"""Tests of HistoryDisplay against the history of a model."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dkae import DeepKernelizedAutoencoder
from dkae.plotting import HistoryDisplay


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
    display = HistoryDisplay.from_estimator(model)
    key = term if part == "training" else f"validation_{term}"
    expected = [(5 * i, r[key]) for i, r in enumerate(model.history_, 1) if key in r]
    np.testing.assert_allclose(curves_of(display.ax_[panel], part), expected)


def test_phases_are_parted_and_named(model):
    # One epoch for each of two layers, two of fine-tuning, two of the decoder; five steps each.
    for ax in HistoryDisplay.from_estimator(model).ax_:
        assert turns_of(ax) == [7.5, 12.5, 22.5]
        assert phase_names(ax) == ["layer 1", "layer 2", "fine-tuning", "decoder"]
        assert ax.get_xlim() == (2.5, 32.5)


def test_curves_do_not_run_on_into_the_next_phase(model):
    lines = HistoryDisplay.from_estimator(model).ax_[0].lines
    assert [len(line.get_xdata()) for line in lines if line.get_color() == "#0072b2"] == [
        1,
        1,
        2,
        2,
    ]


def test_single_phase_has_no_name(tiny, digits):
    display = HistoryDisplay.from_estimator(tiny().fit(digits))
    for ax in display.ax_:
        assert (turns_of(ax), phase_names(ax), ax.get_legend()) == ([], [], None)


def test_legend_has_each_part_once(model):
    legend = HistoryDisplay.from_estimator(model).ax_[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["training", "validation"]


def test_epochs_are_counted_where_steps_follow_from_the_data(tiny, digits):
    display = HistoryDisplay.from_estimator(tiny(steps_per_epoch="samples").fit(digits))
    assert list(curves_of(display.ax_[0], "training")[:, 0]) == [1, 2]
    assert [ax.get_xlabel() for ax in display.ax_] == ["epoch", "epoch"]


def test_plain_autoencoder_has_no_alignment_loss(tiny, digits):
    display = HistoryDisplay.from_estimator(tiny(alignment_weight=0).fit(digits))
    assert len(curves_of(display.ax_[0], "training")) == 2
    assert not display.ax_[1].lines
    assert [text.get_text() for text in display.ax_[1].texts] == ["not in the history"]


def test_axis_is_logarithmic_unless_a_loss_is_negative():
    history = [{"phase": "a", "reconstruction_loss": 0.5, "alignment_loss": -v} for v in (0.1, 0.2)]
    assert [ax.get_yscale() for ax in HistoryDisplay(history).plot().ax_] == ["log", "linear"]


def test_many_epochs_have_no_markers():
    history = [{"phase": "a", "reconstruction_loss": 1 / (i + 1)} for i in range(100)]
    history.append({"phase": "b", "reconstruction_loss": 0.01})
    long, single, _ = HistoryDisplay(history).plot().ax_[0].lines
    assert (long.get_markersize(), single.get_markersize()) == (0, 3)


def test_names_that_do_not_fit_stand_upright():
    phases = ["layer 1"] * 2 + ["fine-tuning"] * 60
    history = [{"phase": phase, "reconstruction_loss": 0.1} for phase in phases]
    (names,) = HistoryDisplay(history).plot().ax_[0].child_axes
    assert [label.get_rotation() for label in names.get_xticklabels()] == [90, 0]


def test_kwargs_go_to_the_lines(model):
    lines = HistoryDisplay.from_estimator(model, alpha=0.3).ax_[0].lines
    assert lines[0].get_alpha() == 0.3


def test_unfitted_model():
    with pytest.raises(NotFittedError, match="DeepKernelizedAutoencoder instance is not fitted"):
        HistoryDisplay.from_estimator(DeepKernelizedAutoencoder())


def test_empty_history():
    with pytest.raises(ValueError, match="history is empty: there is no finished epoch"):
        HistoryDisplay([])
