"""Figures: plain functions from arrays to matplotlib figures, in one style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from numpy.typing import NDArray

__all__ = ["draw_digit_rows", "draw_gram_matrices", "draw_losses"]

#: Okabe and Ito's palette, which colour-blind readers can tell apart.
BLUE, ORANGE = "#0072B2", "#D55E00"

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "svg.fonttype": "none",
}


def draw_digit_rows(rows: Mapping[str, NDArray[Any]], shape: tuple[int, int]) -> Figure:
    """Draw rows of images, each row with its name, pixels crisp."""
    n_columns = len(next(iter(rows.values())))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(0.85 * n_columns + 0.9, 0.9 * len(rows)), layout="constrained")
        axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
        for ax, (name, images) in zip(axes, rows.items(), strict=True):
            # One picture for the whole row: no gaps of uneven width from rounding.
            strip = np.hstack([np.pad(image.reshape(shape), 1) for image in images])
            ax.imshow(strip, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax.set_ylabel(name, rotation=0, ha="right", va="center")
            ax.set(xticks=[], yticks=[])
            ax.grid(False)
            ax.spines[:].set_visible(False)
    return figure


def draw_gram_matrices(grams: Mapping[str, NDArray[Any]], classes: NDArray[Any]) -> Figure:
    """Draw Gram matrices of rows that are sorted by class, side by side on one colour scale."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    centres = (starts + np.append(starts[1:], len(classes))) / 2 - 0.5
    low = min(float(gram.min()) for gram in grams.values())
    high = max(float(gram.max()) for gram in grams.values())
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(4.2 * len(grams) + 0.6, 4.4), layout="constrained")
        axes = figure.subplots(1, len(grams), squeeze=False)[0]
        for ax, (name, gram) in zip(axes, grams.items(), strict=True):
            image = ax.imshow(gram, vmin=low, vmax=high, interpolation="nearest")
            ax.set(title=name, xlabel="digit", xticks=centres, yticks=centres)
            ax.set_xticklabels(classes[starts])
            ax.set_yticklabels(classes[starts])
            ax.tick_params(length=0)
        figure.colorbar(image, ax=axes, label="kernel value", shrink=0.8)
    return figure


def draw_losses(history: Sequence[Mapping[str, Any]], steps_an_epoch: int) -> Figure:
    """Draw both terms of the loss over the training, one panel each."""
    steps = [steps_an_epoch * record["epoch"] for record in history]
    panels = {
        "reconstruction_loss": "Reconstruction loss $L_r$ / $kd$",
        "alignment_loss": "Alignment loss $L_c$",
    }
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9, 3.2), layout="constrained")
        for ax, (term, title) in zip(figure.subplots(1, 2), panels.items(), strict=True):
            ax.set(title=title, xlabel="training steps", yscale="log")
            _draw_curves(ax, steps, history, term)
            ax.legend()
    return figure


def _draw_curves(
    ax: Axes, steps: Sequence[int], history: Sequence[Mapping[str, Any]], term: str
) -> None:
    ax.plot(steps, [record[term] for record in history], "o-", ms=3, color=BLUE, label="training")
    if f"validation_{term}" in history[0]:
        values = [record[f"validation_{term}"] for record in history]
        ax.plot(steps, values, "s--", ms=3, color=ORANGE, label="validation")
    # Numbers in full, at 1, 2 and 5 of each decade: 2 × 10⁻² is harder to read than 0.02.
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())
