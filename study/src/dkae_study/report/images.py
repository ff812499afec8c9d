"""Figures that are images: rows of images and Gram matrices, every pixel crisp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dkae.plotting import STYLE, GramDisplay, ReconstructionDisplay
from dkae_study.report.charts import new_figure

#: Inches that a note takes.
_NOTE = 0.15


@mpl.rc_context(STYLE)
def draw_image_rows(
    rows: Mapping[str, NDArray[Any]], shape: tuple[int, int], *, note: str = ""
) -> Figure:
    """Draw rows of images, each row with its name."""
    display = ReconstructionDisplay(rows, shape)
    figure = _figure_for(display, note)
    # The noise is not clipped: black and white are those of the clean images.
    display.plot(ax=figure.subplots(), vmin=0, vmax=1)
    return figure


@mpl.rc_context(STYLE)
def draw_gram_matrices(
    grams: Mapping[str, NDArray[Any]],
    classes: NDArray[Any],
    *,
    label: str = "kernel value",
    note: str = "",
) -> Figure:
    """Draw Gram matrices of rows that are sorted by class, side by side on one colour scale."""
    display = GramDisplay(grams, classes, label=label, class_name="digit")
    figure = _figure_for(display, note)
    display.plot(ax=figure.subplots(1, len(grams)))
    return figure


def _figure_for(display: GramDisplay | ReconstructionDisplay, note: str) -> Figure:
    width, height = display.figure_size
    return new_figure(width, height + _NOTE * bool(note), note)
