"""The demo: the paper's model and the three maps on real digits, and a page of them."""

from __future__ import annotations

import base64
import io
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, metrics, recipes
from dkae.files import replacing
from dkae.grams import Gram
from dkae.kernels import ProbabilisticClusterKernel
from dkae.plotting import STYLE, GramDisplay, HistoryDisplay, ReconstructionDisplay
from dkae_study.engine.provenance import versions
from dkae_study.experiments.tradeoff import rows_by_class
from dkae_study.mnist import MNIST
from dkae_study.report.charts import new_figure
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.report.pages import render

RESULTS_FILE = "results.json"
ARRAYS_FILE = "arrays.npz"
PAGE_FILE = "index.html"
#: The page of the study's results, which the demo's page links if it is in the same folder.
STUDY_FILE = "study.html"
README_FIGURE = "demo"
FIGURES = ("digits", "grams", "losses", README_FIGURE)
#: All that the demo writes.
FILES = (RESULTS_FILE, ARRAYS_FILE, PAGE_FILE, *(f"{name}.png" for name in FIGURES))

#: The first rows of the training part, few enough for exact kernel PCA in a second.
N_ROWS = 5000
N_COMPONENTS = 128
HIDDEN_LAYER_SIZES = (500, 500)
BATCH_SIZE = 100
N_EPOCHS = 20
N_GRAM_ROWS_A_CLASS = 20

#: The maps, by the names that figures have room for.
PAPER, LEARNED, NYSTROEM, EXACT = "the paper", "learned", "Nyström", "kernel PCA"


class Method(NamedTuple):
    """A fitted map, or a yardstick, and the test digits there and back."""

    name: str
    note: str
    #: The training digits that it keeps.
    holds: int
    seconds: float
    codes: NDArray[Any]
    decoded: NDArray[Any]


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
    models = _models(kernel, n_steps, seed, verbose)
    methods = [_fit(model, X, X_test) for model in models.values()]
    methods += _yardsticks(X, X_test, seed)
    results = {
        "n_rows": {"training": len(X), "test": len(X_test)},
        "n_mixtures": kernel.n_mixtures_,
        "layers": [X.shape[1], *HIDDEN_LAYER_SIZES, N_COMPONENTS],
        "batch_size": BATCH_SIZE,
        "n_steps": N_EPOCHS * (n_steps // N_EPOCHS),
        "seed": seed,
        "versions": versions(),
        "maps": [_record(method, X_test, prior) for method in methods],
        "history": models[PAPER].history_,
        "steps_per_epoch": n_steps // N_EPOCHS,
    }
    _write_text(out / RESULTS_FILE, json.dumps(results, indent=1) + "\n")
    pictures: dict[str, Any] = _pictures(models, kernel, X_test, y_test)
    with replacing(out / ARRAYS_FILE) as temporary:
        np.savez_compressed(temporary, **pictures)
    return results


def _models(kernel: Any, n_steps: int, seed: int, verbose: bool) -> dict[str, Any]:
    """Return the paper's model and the three maps with their defaults, unfitted."""
    schedule: dict[str, Any] = {
        "steps_per_epoch": n_steps // N_EPOCHS,
        "batch_size": BATCH_SIZE,
        "max_iter": N_EPOCHS,
        "random_state": seed,
        "verbose": verbose,
    }
    paper = recipes.paper(
        n_components=N_COMPONENTS, kernel=kernel, pretrain_max_iter=N_EPOCHS // 4, **schedule
    )
    learned = DeepKernelizedAutoencoder(
        N_COMPONENTS, kernel=kernel, decoder_max_iter=N_EPOCHS // 4, **schedule
    )
    for model in (paper, learned):
        model.set_params(network__hidden_layer_sizes=HIDDEN_LAYER_SIZES)
    return {
        PAPER: paper,
        LEARNED: learned,
        NYSTROEM: InvertibleNystroem(N_COMPONENTS, kernel=kernel, random_state=seed),
        EXACT: KernelPCA(N_COMPONENTS, kernel=kernel, center=False, random_state=seed),
    }


def _fit(model: Any, X: NDArray[Any], X_test: NDArray[Any]) -> Method:
    start = time.process_time()
    model.fit(X)
    seconds, codes = time.process_time() - start, model.transform(X_test)
    holds, note = 0, ""
    if isinstance(model, DeepKernelizedAutoencoder):
        note = "the paper" if model.pretrain_max_iter else "defaults"
    elif not isinstance(model, PCA):
        holds = len(getattr(model, "landmarks_", X))
    name = "linear PCA" if isinstance(model, PCA) else type(model).__name__
    return Method(name, note, holds, seconds, codes, model.inverse_transform(codes))


def _yardsticks(X: NDArray[Any], X_test: NDArray[Any], seed: int) -> list[Method]:
    constant, mean = np.ones((len(X_test), 1)), np.broadcast_to(X.mean(axis=0), X_test.shape)
    pca = _fit(PCA(N_COMPONENTS, random_state=seed), X, X_test)
    return [pca, Method("one code for all digits", "", 0, 0.0, constant, mean)]


def _record(method: Method, X: NDArray[Any], prior: Gram) -> dict[str, Any]:
    gram = metrics.code_gram(method.codes)
    return {
        "name": method.name,
        "note": method.note,
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
        if name in (PAPER, LEARNED):
            pictures[f"gram {name}"] = model.gram(X[rows])
    return pictures | {"classes": y[rows]}


# --- the page, from these files alone -------------------------------------------------------------


def write_demo_page(folder: Path) -> Path:
    """Draw the demo's results in `folder`; return the page, which has all its pictures inside.

    The figures are also written as PNG files; demo.png is that of the README.
    """
    results = json.loads((folder / RESULTS_FILE).read_text(encoding="utf-8"))
    with np.load(folder / ARRAYS_FILE, allow_pickle=False) as archive:
        figures = _draw(results, dict(archive))
    images = {}
    for name, figure in figures.items():
        png = _png(figure, 130 if name == README_FIGURE else 200)
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
        "grams": draw_gram_matrices(grams, arrays["classes"]),
        "losses": draw_losses(results["history"], results["steps_per_epoch"]),
        README_FIGURE: draw_both(digits, grams, arrays["classes"]),
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
    versions = {name: rows for name, rows in digits.items() if name != PAPER}
    matrices = {
        "the kernel": grams["the kernel"],
        "learned codes: their inner products": grams[LEARNED],
    }
    above = ReconstructionDisplay(versions, MNIST.row_shape)
    below = GramDisplay(matrices, classes, class_name="digit")
    heights = above.figure_size[1], below.figure_size[1]
    figure = new_figure(above.figure_size[0], sum(heights))
    parts: Any = figure.subfigures(2, 1, height_ratios=heights)
    above.plot(ax=parts[0].subplots(), vmin=0, vmax=1)
    below.plot(ax=parts[1].subplots(1, 2))
    return figure


def _png(figure: Figure, dpi: int) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()
