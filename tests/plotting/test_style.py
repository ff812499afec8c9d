"""All displays: how they are imported, where they draw, of which models, and their style."""

import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from dkae import DeepKernelizedAutoencoder, plotting
from dkae.plotting import CodeSpaceDisplay, GramDisplay, HistoryDisplay, ReconstructionDisplay

HISTORY = [{"phase": "fine-tuning", "epoch": 1, "reconstruction_loss": 0.1, "alignment_loss": 0.2}]
DISPLAYS = [
    (HistoryDisplay(HISTORY), 2),
    (GramDisplay({"a": np.eye(4), "b": np.eye(4), "c": np.eye(4)}, [1, 1, 2, 2]), 3),
    (ReconstructionDisplay({"original": np.eye(64)[:3], "decoded": np.eye(64)[:3]}), 1),
    (ReconstructionDisplay({"original": np.eye(5), "decoded": np.eye(5)}), 1),
    (CodeSpaceDisplay(np.eye(4)[:, :2], [1, 1, 2, 2]), 1),
    (CodeSpaceDisplay(np.eye(30)[:, :2], range(30)), 1),
]
FROM_ESTIMATOR = [HistoryDisplay, GramDisplay, ReconstructionDisplay, CodeSpaceDisplay]
all_displays = pytest.mark.parametrize(("display", "n_panels"), DISPLAYS)


def test_without_matplotlib_the_error_names_the_remedy():
    code = "import sys; sys.modules['matplotlib'] = None; import dkae; dkae.plotting"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert process.returncode == 1
    assert "ImportError: dkae.plotting needs matplotlib" in process.stderr
    assert "pip install 'dkae[plot]'" in process.stderr


def test_pyplot_is_not_imported_before_it_is_needed():
    code = "import sys, dkae.plotting; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.fixture(scope="module")
def trained(digits):
    params = {"max_iter": 2, "steps_per_epoch": 5, "validation_fraction": 0.2, "random_state": 0}
    return DeepKernelizedAutoencoder(5, **params).fit(digits)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("display", FROM_ESTIMATOR)
def test_a_trained_map_has_every_display(display, trained, digits, labels):
    drawn = display.from_estimator(trained, digits, labels)
    drawn.figure_.draw_without_rendering()
    with pytest.raises(NotFittedError, match="not fitted"):
        display.from_estimator(DeepKernelizedAutoencoder(), digits)


@all_displays
def test_plot_opens_a_figure_of_pyplot(display, n_panels):
    assert display.plot() is display
    assert plt.figure(plt.get_fignums()[0]) is display.figure_
    assert np.size(display.ax_) == n_panels
    display.figure_.draw_without_rendering()


@all_displays
def test_plot_on_given_axes_opens_no_figure(display, n_panels):
    axes = Figure(layout="constrained").subplots(1, n_panels, squeeze=False)[0]
    display.plot(ax=list(axes) if n_panels > 1 else axes[0])
    assert list(np.ravel(display.ax_)) == list(axes)
    assert plt.get_fignums() == []
    display.figure_.draw_without_rendering()


@all_displays
def test_single_axes_are_divided(display, n_panels):
    figure = Figure()
    ax = figure.subplots(2, 2)[1, 0]
    place = ax.get_position()
    display.plot(ax=ax)
    for panel in np.ravel(display.ax_):
        box = panel.get_position(original=True)
        assert place.x0 - 1e-9 <= box.x0 < box.x1 <= place.x1 + 1e-9
        assert place.y0 - 1e-9 <= box.y0 < box.y1 <= place.y1 + 1e-9
    assert display.figure_ is figure


@all_displays
def test_house_style_is_for_new_figures_only(display, n_panels):
    edge = np.ravel(display.plot().ax_)[0].spines["left"].get_edgecolor()
    assert edge[:3] == pytest.approx(to_rgb(plotting.SOFT))
    with mpl.rc_context({"axes.edgecolor": "red"}):
        ax = Figure().subplots()
        assert np.ravel(display.plot(ax=ax).ax_)[0].spines["left"].get_edgecolor()[0] == 1


def test_house_style_is_legible_in_a_dark_session():
    with plt.style.context("dark_background"):
        display = HistoryDisplay(HISTORY).plot()
    assert display.figure_.get_facecolor() == (1, 1, 1, 1)


@pytest.mark.parametrize(
    ("display", "ax", "error", "message"),
    [
        (0, lambda: "left", TypeError, "ax is or contains a str: expected a matplotlib Axes"),
        (0, lambda: [1, 2], TypeError, "ax is or contains a int: expected a matplotlib Axes"),
        (0, lambda: Figure().subplots(1, 3), ValueError, "ax has 3 Axes for 2 panels: expected"),
        (4, lambda: Figure().subplots(1, 2), ValueError, "ax has 2 Axes for 1 panels: expected a"),
        (
            0,
            lambda: Figure().add_axes((0, 0, 1, 1)),
            ValueError,
            "not part of a grid.* pass 2 Axes, or one from",
        ),
    ],
)
def test_unusable_axes(display, ax, error, message):
    with pytest.raises(error, match=message):
        DISPLAYS[display][0].plot(ax=ax())


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: HistoryDisplay(3), ValueError, "history=3 must be a sequence, such as a list"),
        (lambda: GramDisplay(np.eye(3)), TypeError, "grams is a ndarray: pass a mapping of titles"),
        (lambda: ReconstructionDisplay(None), TypeError, "rows is a NoneType: pass a mapping of"),
    ],
)
def test_what_cannot_be_drawn(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize("values", [(0.100, 0.101), (0.1, 0.2), (0.1, 0.5), (0.1, 9), (1e-5, 1e3)])
def test_log_axis_has_plain_numbers(values):
    ax = Figure().subplots()
    ax.plot(values)
    plotting.plain_log_ticks(ax)
    low, high = ax.get_ylim()
    seen = [tick for tick in ax.get_yticks() if low <= tick <= high]
    assert len(seen) >= 2
    assert ax.get_yscale() == "log"
    assert ax.yaxis.get_major_formatter()(0.02) == "0.02"
