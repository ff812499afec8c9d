"""The losses during training."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from numbers import Integral
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from dkae._support.checks import check_sequence
from dkae.plotting.display import BLUE, SOFT, VERMILLION, Display, plain_log_ticks

_TERMS = {"reconstruction_loss": "Reconstruction loss", "alignment_loss": "Alignment loss"}
_PARTS: dict[str, dict[str, Any]] = {
    "": {"label": "training", "color": BLUE, "marker": "o", "linestyle": "-"},
    "validation_": {"label": "validation", "color": VERMILLION, "marker": "s", "linestyle": "--"},
}
#: Above this many epochs there are no markers: they would run together.
_MAX_MARKERS = 40
#: Inches that a letter of a phase's name needs, before the layout widens the panels.
_LETTER = 0.043


class HistoryDisplay(Display):
    """Both terms of the loss during training: reconstruction on the left, alignment on the right.

    The curves of two phases are not connected: the loss of a layer below the code is not that of
    the whole network. Epochs without an alignment loss are left blank.

    Parameters
    ----------
    history : sequence of mappings
        One record for each epoch, as in ``model.history_``.
    steps_per_epoch : int, optional
        With it the axis counts steps, without it epochs.
    """

    figure_size, n_panels = (7.6, 2.9), 2

    def __init__(
        self, history: Sequence[Mapping[str, Any]], *, steps_per_epoch: int | None = None
    ) -> None:
        self.history = check_sequence("history", history)
        if not self.history:
            raise ValueError("history is empty: there is no finished epoch of training to draw")
        self.steps_per_epoch = steps_per_epoch

    @classmethod
    def from_estimator(
        cls, model: Any, X: object = None, y: object = None, *, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the history of a map that is trained; `X` and `y` are ignored.

        The axis counts steps if `steps_per_epoch` of the model is a number, else epochs.
        """
        check_is_fitted(model, "history_")
        n = getattr(model, "steps_per_epoch", None)
        steps = int(n) if isinstance(n, Integral) else None
        return cls(model.history_, steps_per_epoch=steps).plot(ax=ax, **kwargs)

    def _draw(self, kwargs: dict[str, Any]) -> None:
        for panel, term in zip(self.ax_, _TERMS, strict=True):
            self._draw_term(panel, term, kwargs)

    def _draw_term(self, ax: Axes, term: str, kwargs: dict[str, Any]) -> None:
        unit, n = self.steps_per_epoch or 1, len(self.history)
        epochs = enumerate(self.history, 1)
        phases = [list(phase) for _, phase in groupby(epochs, lambda pair: pair[1]["phase"])]
        drawn: list[float] = []
        for part, look in _PARTS.items():
            for phase in phases:
                known = {i * unit: r[part + term] for i, r in phase if part + term in r}
                if known:
                    size = {"markersize": 3 if n <= _MAX_MARKERS or len(known) == 1 else 0}
                    ax.plot(list(known), list(known.values()), **(look | size | kwargs))
                    look = look | {"label": "_"}  # one entry in the legend for all phases
                    drawn += known.values()
        ax.set(title=_TERMS[term], xlabel="training steps" if self.steps_per_epoch else "epoch")
        ax.set_xlim(0.5 * unit, (n + 0.5) * unit)
        ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        if not drawn:
            ax.set_yticks([])
            ax.text(0.5, 0.5, "not in the history", transform=ax.transAxes, ha="center", color=SOFT)
        elif min(drawn) > 0:  # a measure of alignment may be negative
            plain_log_ticks(ax)
        if any("validation_" + term in record for record in self.history):
            ax.legend()
        if len(phases) > 1:
            spans = [((p[0][0] - 0.5) * unit, (p[-1][0] + 0.5) * unit) for p in phases]
            _name_phases(ax, [p[0][1]["phase"] for p in phases], spans)


def _name_phases(ax: Axes, names: Sequence[str], spans: Sequence[tuple[float, float]]) -> None:
    """Separate the phases by thin lines, and name them above the panel."""
    for start, _ in spans[1:]:
        ax.axvline(start, ymax=1.07, clip_on=False, color=SOFT, lw=0.8, ls=":")
    top = ax.secondary_xaxis("top")
    top.set_xticks([(start + end) / 2 for start, end in spans], names)
    top.tick_params(length=0, labelsize=7, labelcolor=SOFT, pad=1)
    top.spines[:].set_visible(False)
    low, high = ax.get_xlim()
    inches = ax.get_window_extent().width / ax.figure.dpi / (high - low)
    for label, name, (start, end) in zip(top.get_xticklabels(), names, spans, strict=True):
        if (end - start) * inches < _LETTER * len(name):
            label.set_rotation(90)
