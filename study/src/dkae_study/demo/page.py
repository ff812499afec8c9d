"""The page of the demo, from the files that its run wrote and from nothing else."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from dkae.plotting import STYLE, HistoryDisplay, new_figure
from dkae_study.demo.training import ARRAYS_FILE, RESULTS_FILE
from dkae_study.mnist import MNIST
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.report.pages import render

__all__ = ["draw_losses", "write_demo_page"]


def write_demo_page(folder: Path) -> Path:
    """Draw the demo's results in `folder`; return the page, which has all its pictures inside.

    The figures are also written as PNG files of their own.
    """
    results = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS_FILE, allow_pickle=False) as archive:
        figures = _draw(results, dict(archive))
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=200)
    page = folder / "index.html"
    images = {name: _inline_png(figure) for name, figure in figures.items()}
    page.write_text(render("demo.html", results=results, images=images), encoding="utf-8")
    return page


def _draw(results: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Figure]:
    return {
        "reconstructions": draw_image_rows(
            {"original": arrays["originals"], "decoded": arrays["reconstructions"]},
            MNIST.row_shape,
        ),
        "gram": draw_gram_matrices(
            {
                "prior: the RBF kernel": arrays["prior_gram"],
                "learned: inner products of codes": arrays["code_gram"],
            },
            arrays["gram_classes"],
        ),
        "losses": draw_losses(results["history"], results["config"]["steps_per_epoch"]),
    }


@mpl.rc_context(STYLE)
def draw_losses(history: Sequence[Mapping[str, Any]], steps_per_epoch: int) -> Figure:
    """Draw both terms of the loss over the training, one panel each; a line parts two phases."""
    figure = new_figure(7.6, 2.9)
    left, right = figure.subplots(1, 2)
    HistoryDisplay(history, steps_per_epoch=steps_per_epoch).plot(ax=(left, right))
    left.set_title("Reconstruction loss $L_r$ / $kd$")
    right.set_title("Alignment loss $L_c$")
    return figure


def _inline_png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
