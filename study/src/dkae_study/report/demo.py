"""The page of the demo, from the files that its run wrote and from nothing else."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from dkae_study.demo import ARRAYS_FILE, RESULTS_FILE
from dkae_study.report.curves import draw_losses
from dkae_study.report.images import draw_digit_rows, draw_gram_matrices
from dkae_study.report.pages import render

__all__ = ["write_demo_page"]


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
        "reconstructions": draw_digit_rows(
            {"original": arrays["originals"], "decoded": arrays["reconstructions"]}, (28, 28)
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


def _inline_png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
