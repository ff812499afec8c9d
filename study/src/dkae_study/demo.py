"""The demo: the library's default model on real digits, trained in a minute, and a page of it."""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.baselines import compare_with_baselines
from dkae.kernels import PairwiseKernel
from dkae.persistence import replacing
from dkae.plotting import BLUE, STYLE, VERMILLION, new_figure, plain_log_ticks
from dkae_study.engine.provenance import versions
from dkae_study.experiments.tradeoff import rows_by_class
from dkae_study.mnist import MNIST
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.report.pages import render

RESULTS_FILE = "results.json"
ARRAYS_FILE = "arrays.npz"
PAGE_FILE = "index.html"
FIGURES = ("reconstructions", "gram", "losses")
#: All that the demo writes.
FILES = (RESULTS_FILE, ARRAYS_FILE, PAGE_FILE, *(f"{name}.png" for name in FIGURES))

N_COMPONENTS = 256
N_EPOCHS = 20
N_HELD_OUT = 1400
N_GRAM_ROWS_A_CLASS = 50
#: Rows that kernel PCA and Nyström features learn from: seconds, not half a minute.
N_BASELINE_ROWS = 2000


def is_demo(folder: Path) -> bool:
    """Say whether an earlier demo wrote to a folder: its results come first of all files."""
    try:
        results = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
        return "dkae" in results["versions"] and "scores" in results
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def run_demo(out: Path, *, n_steps: int, seed: int, verbose: bool) -> dict[str, Any]:
    """Train on the 14,000 training rows, measure on the 3,000 test rows, write both to `out`.

    Returns
    -------
    dict
        What stands in the file `RESULTS_FILE`: configuration, versions, scores, yardsticks and
        history. The images and matrices to be drawn are in `ARRAYS_FILE`.
    """
    out.mkdir(parents=True, exist_ok=True)
    parts = MNIST.load()
    X_train, (X_test, y_test) = parts["train"].X, parts["test"]
    kernel = PairwiseKernel("rbf", gamma="median").fit(X_train)
    model = DeepKernelizedAutoencoder(
        N_COMPONENTS,
        kernel=kernel.metric,
        gamma=kernel.gamma,
        decoder_max_iter=N_EPOCHS,
        steps_per_epoch=math.ceil(n_steps / N_EPOCHS),
        validation_fraction=N_HELD_OUT / len(X_train),
        n_iter_no_change=N_EPOCHS,  # all of them, for the figure; the best weights are kept
        random_state=seed,
        verbose=verbose,
    ).fit(X_train)
    results = {
        "title": "Demo: the library's defaults, with a narrower code",
        "layers": _layers(model.network_),
        "n_rows": {"training": len(X_train), "held out": N_HELD_OUT, "test": len(X_test)},
        "n_steps": len(model.history_) * int(model.steps_per_epoch),
        "config": {k: v for k, v in model.get_params().items() if k not in ("epoch", "verbose")},
        "gamma": kernel.gamma_,
        "versions": versions(),
        "scores": _scores(model, kernel, X_test),
        "yardsticks": [
            row._asdict()
            for row in compare_with_baselines(model, X_test, X_train, max_rows=N_BASELINE_ROWS)
        ],
        "history": model.history_,
    }
    pictures: dict[str, Any] = _pictures(model, kernel, X_test, y_test)
    _write_text(out / RESULTS_FILE, json.dumps(results, indent=1) + "\n")
    with replacing(out / ARRAYS_FILE) as temporary:
        np.savez_compressed(temporary, **pictures)
    return results


def _layers(network: Any) -> list[str]:
    """Return the widths of a kernel layer and its decoder, there and back."""
    decoder = network.decoder
    n_landmarks = f"{len(network.weight):,} landmarks"
    hidden = [layer.out_features for layer in decoder.hidden]
    n_features, n_components = decoder.linear.weight.shape
    widths = [n_features, n_landmarks, n_components, *hidden, n_features]
    return [w if isinstance(w, str) else f"{w:,}" for w in widths]


def _scores(
    model: DeepKernelizedAutoencoder, kernel: PairwiseKernel, X: NDArray[Any]
) -> dict[str, float]:
    codes = model.transform(X)
    grams = metrics.code_gram(codes), kernel.on(X)
    return {
        "test alignment A(C, P)": metrics.alignment(*grams),
        "test alignment loss L_c": metrics.alignment_loss(*grams),
        "test reconstruction MSE": float(np.mean((model.inverse_transform(codes) - X) ** 2)),
        "MSE of the mean image": float(X.var(axis=0).mean()),
    }


def _pictures(
    model: DeepKernelizedAutoencoder, kernel: PairwiseKernel, X: NDArray[Any], y: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return one digit of each class with its reconstruction, and Gram matrices by class."""
    digits, rows = X[rows_by_class(y, 1)], rows_by_class(y, N_GRAM_ROWS_A_CLASS)
    return {
        "originals": digits,
        "reconstructions": model.inverse_transform(model.transform(digits)),
        "prior_gram": kernel.gram(X[rows]),
        "code_gram": model.gram(X[rows]),
        "gram_classes": y[rows],
    }


# --- the page, from these files alone -------------------------------------------------------------


def write_demo_page(folder: Path) -> Path:
    """Draw the demo's results in `folder`; return the page, which has all its pictures inside.

    The figures are also written as PNG files of their own.
    """
    results = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS_FILE, allow_pickle=False) as archive:
        figures = _draw(results, dict(archive))
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=200)
    page = folder / PAGE_FILE
    images = {name: _inline_png(figure) for name, figure in figures.items()}
    _write_text(page, render("demo.html", results=results, images=images))
    return page


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _draw(results: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Figure]:
    return {
        "reconstructions": draw_image_rows(
            {"original": arrays["originals"], "decoded": arrays["reconstructions"]}, MNIST.row_shape
        ),
        "gram": draw_gram_matrices(
            {
                "the RBF kernel": arrays["prior_gram"],
                "codes: their inner products": arrays["code_gram"],
            },
            arrays["gram_classes"],
        ),
        "losses": draw_losses(results["history"], results["config"]["steps_per_epoch"]),
    }


@mpl.rc_context(STYLE)
def draw_losses(history: Sequence[Mapping[str, Any]], steps_per_epoch: int) -> Figure:
    """Draw the reconstruction loss over the training of the decoder."""
    figure = new_figure(5.0, 2.9)
    ax = figure.subplots()
    steps = [steps_per_epoch * i for i in range(1, len(history) + 1)]
    for part, label, color, marker in (
        ("", "training", BLUE, "o"),
        ("validation_", "validation", VERMILLION, "s"),
    ):
        losses = [record[f"{part}reconstruction_loss"] for record in history]
        ax.plot(steps, losses, label=label, color=color, marker=marker, markersize=3)
    plain_log_ticks(ax)
    ax.set(title="Reconstruction loss $L_r$", xlabel="training steps of the decoder")
    ax.legend()
    return figure


def _inline_png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
