"""Figures that are images: rows of images and Gram matrices, every pixel crisp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dkae_study.report.style import STYLE, new_figure

__all__ = ["draw_gram_matrices", "draw_image_rows"]

#: In an SVG the pixels stay as they are and the viewer enlarges them; a PNG takes the nearest.
_PIXELS = {"interpolation": "none"}

_BARE = STYLE | {"axes.grid": False}
_TIGHT = {"figure.constrained_layout.h_pad": 0.02, "figure.constrained_layout.hspace": 0}


@mpl.rc_context(_BARE | _TIGHT)
def draw_image_rows(
    rows: Mapping[str, NDArray[Any]], shape: tuple[int, int], *, scale: str = ""
) -> Figure:
    """Draw rows of images, each row with its name."""
    n_columns = max(len(images) for images in rows.values())
    # As wide as the page, whatever the number of images and the length of the names.
    side = min(0.8, (7.5 - 0.073 * max(len(name) for name in rows)) / n_columns)
    figure = new_figure(7.6, (side + 0.05) * len(rows) + 0.2, scale)
    axes = figure.subplots(len(rows), 1, squeeze=False)[:, 0]
    for ax, (name, images) in zip(axes, rows.items(), strict=True):
        # One picture for the whole row: no gaps of uneven width from rounding.
        strip = np.hstack([_framed(image.reshape(shape)) for image in images])
        ax.imshow(strip, cmap="gray", vmin=0, vmax=1, **_PIXELS)
        ax.set_ylabel(name, rotation=0, ha="right", va="center")
        ax.set(xticks=[], yticks=[], anchor="W")
        ax.spines[:].set_visible(False)
    return figure


def _framed(image: NDArray[Any]) -> NDArray[Any]:
    """Return the image in a frame of one pixel that is left blank."""
    return np.ma.masked_invalid(np.pad(image.astype(float), 1, constant_values=np.nan))


@mpl.rc_context(_BARE)
def draw_gram_matrices(
    grams: Mapping[str, NDArray[Any]],
    classes: NDArray[Any],
    *,
    label: str = "kernel value",
    scale: str = "",
) -> Figure:
    """Draw Gram matrices of rows that are sorted by class, side by side on one colour scale."""
    starts = np.flatnonzero(np.diff(classes, prepend=-1))
    centres = (starts + np.append(starts[1:], len(classes))) / 2 - 0.5
    low = min(float(gram.min()) for gram in grams.values())
    high = max(float(gram.max()) for gram in grams.values())
    figure = new_figure(7.6, 6.5 / len(grams) + 0.75, scale)
    axes = figure.subplots(1, len(grams), squeeze=False)[0]
    for ax, (name, gram) in zip(axes, grams.items(), strict=True):
        image = ax.imshow(gram, vmin=low, vmax=high, **_PIXELS)
        ax.set(title=name, xlabel="digit", xticks=centres, yticks=centres)
        ax.set_xticklabels(classes[starts])
        ax.set_yticklabels(classes[starts])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    axes[0].set_ylabel("digit")
    figure.colorbar(image, ax=axes, label=label, shrink=0.8, aspect=18)
    return figure
