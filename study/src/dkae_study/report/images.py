"""Figures that are images: rows of digits and Gram matrices, every pixel crisp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dkae.plotting import STYLE, GramDisplay, ReconstructionDisplay
from dkae_study.report.style import new_figure

__all__ = ["draw_digit_rows", "draw_gram_matrices"]

#: Inches that the line with the scale takes.
_SCALE_LINE = 0.15


@mpl.rc_context(STYLE)
def draw_digit_rows(
    rows: Mapping[str, NDArray[Any]], shape: tuple[int, int], *, scale: str = ""
) -> Figure:
    """Draw rows of images, each row with its name."""
    display = ReconstructionDisplay(rows, shape)
    width, height = display.figure_size
    figure = new_figure(width, height + _SCALE_LINE * bool(scale), scale)
    # The noise is not clipped: black and white are those of the clean images.
    display.plot(ax=figure.subplots(), vmin=0, vmax=1)
    return figure


@mpl.rc_context(STYLE)
def draw_gram_matrices(
    grams: Mapping[str, NDArray[Any]],
    classes: NDArray[Any],
    *,
    label: str = "kernel value",
    scale: str = "",
) -> Figure:
    """Draw Gram matrices of rows that are sorted by class, side by side on one colour scale."""
    display = GramDisplay(grams, classes, label=label, class_name="digit")
    width, height = display.figure_size
    figure = new_figure(width, height + _SCALE_LINE * bool(scale), scale)
    display.plot(ax=figure.subplots(1, len(grams)))
    return figure
