"""Displays of a fitted model, in scikit-learn's convention, and the house style of figures.

``from_estimator`` computes and draws; the constructor takes data that is already there, such as a
history from a file, and ``plot`` draws it. Without `ax` a display opens a figure of pyplot in the
house style; Axes that are given keep the style of their owner. Needs matplotlib:
``pip install 'dkae[plot]'``.
"""

from __future__ import annotations

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "dkae.plotting needs matplotlib, which is not installed: pip install 'dkae[plot]'"
    ) from error

from dkae.plotting.codes import CodeSpaceDisplay
from dkae.plotting.grams import GramDisplay
from dkae.plotting.history import HistoryDisplay
from dkae.plotting.reconstructions import ReconstructionDisplay
from dkae.plotting.style import (
    BLUE,
    GREEN,
    INK,
    LINE,
    PAPER,
    PURPLE,
    SOFT,
    STYLE,
    VERMILLION,
    new_figure,
    plain_log_ticks,
)

__all__ = [
    "BLUE",
    "GREEN",
    "INK",
    "LINE",
    "PAPER",
    "PURPLE",
    "SOFT",
    "STYLE",
    "VERMILLION",
    "CodeSpaceDisplay",
    "GramDisplay",
    "HistoryDisplay",
    "ReconstructionDisplay",
    "new_figure",
    "plain_log_ticks",
]
