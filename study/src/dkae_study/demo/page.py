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

from dkae_study.demo.training import ARRAYS_FILE, RESULTS_FILE
from dkae_study.mnist import MNIST
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.report.pages import render
from dkae_study.report.style import (
    BLUE,
    SOFT,
    STYLE,
    VERMILLION,
    new_figure,
    plain_log_ticks,
)

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
        "losses": draw_losses(results["history"], results["config"]["epoch"]),
    }


@mpl.rc_context(STYLE)
def draw_losses(history: Sequence[Mapping[str, Any]], steps_an_epoch: int) -> Figure:
    """Draw both terms of the loss over the training, one panel each; a line parts two phases."""
    steps = [steps_an_epoch * (i + 1) for i in range(len(history))]
    turns = [
        (steps[i] + steps[i + 1]) / 2
        for i in range(len(history) - 1)
        if history[i]["phase"] != history[i + 1]["phase"]
    ]
    panels = {
        "reconstruction_loss": "Reconstruction loss $L_r$ / $kd$",
        "alignment_loss": "Alignment loss $L_c$",
    }
    looks = {"": ("training", "o-", BLUE), "validation_": ("validation", "s--", VERMILLION)}
    figure = new_figure(7.6, 2.9)
    for ax, (term, title) in zip(figure.subplots(1, 2), panels.items(), strict=True):
        ax.set(title=title, xlabel="training steps")
        for part, (name, line, color) in looks.items():
            known = {
                s: r[part + term] for s, r in zip(steps, history, strict=True) if part + term in r
            }
            if known:
                ax.plot(list(known), list(known.values()), line, ms=3, color=color, label=name)
        for turn in turns:
            ax.axvline(turn, color=SOFT, lw=0.8, ls=":")
        plain_log_ticks(ax)
        ax.legend()
    return figure


def _inline_png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
