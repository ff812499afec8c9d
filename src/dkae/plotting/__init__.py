"""Displays of a fitted model, in scikit-learn's convention, and the house style of figures.

``from_estimator`` computes and draws; the constructor takes existing data, such as a history from a
file, and ``plot`` draws it. Without `ax` a display opens a pyplot figure in the house style; given
Axes keep their own style. Needs matplotlib: ``pip install 'dkae[plot]'``.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dkae.plotting needs matplotlib, which is not installed: pip install 'dkae[plot]'"
    ) from error

from dkae.plotting.codes import CodeSpaceDisplay
from dkae.plotting.display import (
    BLUE,
    GREEN,
    INK,
    LINE,
    PURPLE,
    SOFT,
    STYLE,
    VERMILLION,
    plain_log_ticks,
)
from dkae.plotting.grams import GramDisplay
from dkae.plotting.history import HistoryDisplay
from dkae.plotting.reconstructions import ReconstructionDisplay

__all__ = [
    "BLUE",
    "GREEN",
    "INK",
    "LINE",
    "PURPLE",
    "SOFT",
    "STYLE",
    "VERMILLION",
    "CodeSpaceDisplay",
    "GramDisplay",
    "HistoryDisplay",
    "ReconstructionDisplay",
    "plain_log_ticks",
]
