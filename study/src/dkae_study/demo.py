"""The demo: the paper's model and the three maps on real digits, and a page of them."""

from __future__ import annotations

import base64
import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, metrics, recipes
from dkae.grams import Gram
from dkae.kernels import ProbabilisticClusterKernel
from dkae.networks import Stack
from dkae.persistence import replacing
from dkae.plotting import (
    STYLE,
    GramDisplay,
    HistoryDisplay,
    ReconstructionDisplay,
    new_figure,
)
from dkae_study.engine.provenance import versions
from dkae_study.experiments.tradeoff import rows_by_class
from dkae_study.mnist import MNIST
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.report.pages import render

RESULTS_FILE = "results.json"
ARRAYS_FILE = "arrays.npz"
PAGE_FILE = "index.html"
#: The page of the study's results, which the demo's page links if it is in the same folder.
STUDY_FILE = "study.html"
FIGURES = ("digits", "grams", "losses", "demo")
#: All that the demo writes.
FILES = (RESULTS_FILE, ARRAYS_FILE, PAGE_FILE, *(f"{name}.png" for name in FIGURES))

#: The first rows of the training part, few enough for exact kernel PCA in a second.
N_ROWS = 5000
N_COMPONENTS = 128
HIDDEN_LAYER_SIZES = (500, 500)
BATCH_SIZE = 100
N_EPOCHS = 20
N_GRAM_ROWS_A_CLASS = 30

PAPER, LEARNED = "DeepKernelizedAutoencoder, the paper", "DeepKernelizedAutoencoder, defaults"
NYSTROEM, EXACT = "InvertibleNystroem", "KernelPCA"
#: Names below the figures, where there is less room.
SHORT = {PAPER: "the paper", LEARNED: "learned", NYSTROEM: "Nyström", EXACT: "kernel PCA"}


class Method(NamedTuple):
    """A fitted map, or a yardstick."""

    name: str
    #: The rows that it keeps.
    holds: int
    seconds: float
    codes: NDArray[Any]
    decoded: NDArray[Any]
    model: Any = None


def is_demo(folder: Path) -> bool:
    """Return whether an earlier demo wrote to a folder: its results come first of all files."""
    try:
        results = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
        return "dkae" in results["versions"] and "maps" in results
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return False


def run_demo(out: Path, *, n_steps: int, seed: int, verbose: bool) -> dict[str, Any]:
    """Fit the maps to training digits, measure them on the test digits, write both to `out`.

    Returns
    -------
    dict
        The content of the file `RESULTS_FILE`: settings, versions, a record for each map, and the
        history of the paper's model. The images and matrices to be drawn are in `ARRAYS_FILE`.
    """
    out.mkdir(parents=True, exist_ok=True)
    parts = MNIST.load()
    X, (X_test, y_test) = parts["train"].X[:N_ROWS], parts["test"]
    kernel = ProbabilisticClusterKernel(random_state=seed).fit(X)
    prior = kernel.on(X_test)
    methods = list(_fit_all(X, X_test, kernel, n_steps, seed, verbose))
    results = {
        "n_rows": {"training": len(X), "test": len(X_test)},
        "n_mixtures": kernel.n_mixtures_,
        "layers": [X.shape[1], *HIDDEN_LAYER_SIZES, N_COMPONENTS],
        "batch_size": BATCH_SIZE,
        "n_steps": N_EPOCHS * (n_steps // N_EPOCHS),
        "seed": seed,
        "versions": versions(),
        "maps": [_record(method, X_test, prior) for method in methods],
        "history": methods[0].model.history_,
        "steps_per_epoch": n_steps // N_EPOCHS,
    }
    models = {SHORT[m.name]: m.model for m in methods if m.model is not None}
    _write_text(out / RESULTS_FILE, json.dumps(results, indent=1) + "\n")
    with replacing(out / ARRAYS_FILE) as temporary:
        np.savez_compressed(temporary, **_pictures(models, kernel, X_test, y_test))
    return results


def _fit_all(
    X: NDArray[Any], X_test: NDArray[Any], kernel: Any, n_steps: int, seed: int, verbose: bool
) -> Iterator[Method]:
    """Yield the paper's model, the three maps with their defaults, and two yardsticks."""
    schedule: dict[str, Any] = {
        "steps_per_epoch": n_steps // N_EPOCHS,
        "batch_size": BATCH_SIZE,
        "random_state": seed,
        "verbose": verbose,
    }
    paper = recipes.paper(n_components=N_COMPONENTS, kernel=kernel, **schedule)
    paper.set_params(
        network__hidden_layer_sizes=HIDDEN_LAYER_SIZES,
        pretrain_max_iter=N_EPOCHS // 4,
        max_iter=N_EPOCHS,
    )
    learned = DeepKernelizedAutoencoder(
        N_COMPONENTS,
        kernel=kernel,
        network=Stack(HIDDEN_LAYER_SIZES),
        max_iter=N_EPOCHS,
        decoder_max_iter=N_EPOCHS // 4,
        **schedule,
    )
    nystroem = InvertibleNystroem(N_COMPONENTS, kernel=kernel, random_state=seed)
    exact = KernelPCA(N_COMPONENTS, kernel=kernel, center=False, random_state=seed)
    for name, model in {PAPER: paper, LEARNED: learned, NYSTROEM: nystroem, EXACT: exact}.items():
        start = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - start
        holds = {NYSTROEM: len(getattr(model, "landmarks_", ())), EXACT: len(X)}.get(name, 0)
        codes = model.transform(X_test)
        yield Method(name, holds, seconds, codes, model.inverse_transform(codes), model)
    start = time.perf_counter()
    pca = PCA(N_COMPONENTS, random_state=seed).fit(X)
    seconds, codes = time.perf_counter() - start, pca.transform(X_test)
    yield Method("linear PCA", 0, seconds, codes, pca.inverse_transform(codes))
    constant, mean = np.ones((len(X_test), 1)), np.broadcast_to(X.mean(axis=0), X_test.shape)
    yield Method("one code for all digits", 0, 0.0, constant, mean)


def _record(method: Method, X: NDArray[Any], prior: Gram) -> dict[str, Any]:
    gram = metrics.code_gram(method.codes)
    return {
        "name": method.name,
        "is_map": method.model is not None,
        "holds": method.holds,
        "seconds": round(method.seconds, 2),
        "alignment_loss": metrics.alignment_loss(gram, prior),
        "centered_alignment": max(0.0, metrics.centered_alignment(gram, prior)),
        "mse": metrics.reconstruction_error(X, method.decoded),
    }


def _pictures(
    models: dict[str, Any], kernel: Any, X: NDArray[Any], y: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """Return one digit of each class with its reconstructions, and Gram matrices by class."""
    digits, rows = X[rows_by_class(y, 1)], rows_by_class(y, N_GRAM_ROWS_A_CLASS)
    pictures = {"digits original": digits, "gram the kernel": kernel.gram(X[rows])}
    for name, model in models.items():
        pictures[f"digits {name}"] = model.inverse_transform(model.transform(digits))
        pictures[f"gram {name}"] = model.gram(X[rows])
    return pictures | {"classes": y[rows]}


# --- the page, from these files alone -------------------------------------------------------------


def write_demo_page(folder: Path) -> Path:
    """Draw the demo's results in `folder`; return the page, which has all its pictures inside.

    The figures are also written as PNG files.
    """
    results = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS_FILE, allow_pickle=False) as archive:
        figures = _draw(results, dict(archive))
    images = {}
    for name, figure in figures.items():
        png = _png(figure)
        (folder / f"{name}.png").write_bytes(png)
        images[name] = "data:image/png;base64," + base64.b64encode(png).decode()
    study = STUDY_FILE if (folder / STUDY_FILE).exists() else None
    page = folder / PAGE_FILE
    _write_text(page, render("demo.html", results=results, images=images, study=study))
    return page


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _draw(results: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Figure]:
    digits, grams = (
        {key.removeprefix(what): arrays[key] for key in arrays if key.startswith(what)}
        for what in ("digits ", "gram ")
    )
    return {
        "digits": draw_image_rows(digits, MNIST.row_shape),
        "grams": draw_gram_matrices(
            {name: grams[name] for name in ("the kernel", *SHORT.values())}, arrays["classes"]
        ),
        "losses": draw_losses(results["history"], results["steps_per_epoch"]),
        "demo": draw_both(digits, grams, arrays["classes"]),
    }


@mpl.rc_context(STYLE)
def draw_losses(history: list[dict[str, Any]], steps_per_epoch: int) -> Figure:
    """Draw both losses of the paper's model over its training."""
    figure = new_figure(*HistoryDisplay.figure_size)
    HistoryDisplay(history, steps_per_epoch=steps_per_epoch).plot(ax=figure.subplots(1, 2))
    return figure


@mpl.rc_context(STYLE)
def draw_both(digits: dict[str, Any], grams: dict[str, Any], classes: NDArray[Any]) -> Figure:
    """Draw digits, there and back by each map, above the kernel and the codes that learned it."""
    versions = {name: rows for name, rows in digits.items() if name != SHORT[PAPER]}
    matrices = {
        "the kernel": grams["the kernel"],
        "learned codes: their inner products": grams[SHORT[LEARNED]],
    }
    above = ReconstructionDisplay(versions, MNIST.row_shape)
    below = GramDisplay(matrices, classes, class_name="digit")
    heights = above.figure_size[1], below.figure_size[1]
    figure = new_figure(above.figure_size[0], sum(heights))
    top, bottom = figure.subfigures(2, 1, height_ratios=heights)
    above.plot(ax=top.subplots(), vmin=0, vmax=1)
    below.plot(ax=bottom.subplots(1, 2))
    return figure


def _png(figure: Figure) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=200)
    return buffer.getvalue()
