"""Which figures an experiment has, each drawn from its runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dkae_study.declaration import Experiment
from dkae_study.pictures import unpack
from dkae_study.report.curves import draw_kernel_pca, draw_sweep
from dkae_study.report.dots import draw_code_space, draw_denoising, draw_ideal_kernel
from dkae_study.report.images import draw_digit_rows, draw_gram_matrices
from dkae_study.report.numbers import MINUS, estimate_of
from dkae_study.report.style import RECIPES
from dkae_study.results import Run, select

__all__ = ["Drawing", "draw"]

_DIGIT = (28, 28)
_BARS = "Bars: 95 % interval over the seeds, where there are several."


@dataclass(frozen=True)
class Drawing:
    """A figure and what is said of it."""

    #: Names its file, and its parts inside a page.
    name: str
    figure: Figure
    caption: str
    #: What it shows, for readers who do not see it.
    alt: str
    #: Made of pixels: a PNG as a file of its own, where a plot is an SVG.
    is_image: bool = False


def draw(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    """Return the figures of an experiment, none if it has no runs."""
    runs = [run for run in runs if run.recipe in RECIPES]
    drawer = _DRAWERS.get(experiment.name)
    return drawer(experiment, runs, scale) if drawer and runs else []


def _sweep(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    axes = {"lambda": "λ, weight of the alignment loss", "code-size": "N_c, width of the code"}
    figure = draw_sweep(runs, axes[experiment.name], scale=scale)
    caption = (
        "Both losses on the validation part; left reconstruction, right alignment. The values of "
        f"the axis stand at equal distances, the losses on logarithmic axes. {_BARS}"
    )
    alt = f"Two panels: validation losses L_r and L_c over {axes[experiment.name]}, a line a recipe"
    return [Drawing(f"{experiment.name}-losses", figure, caption, alt)]


def _tradeoff(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    drawings = []
    for recipe, run in _first_runs(runs):
        pictures = {name: unpack(packed) for name, packed in run.pictures.items()}
        name, which = f"{experiment.name}-{recipe}", f"{recipe} recipe, seed {run.seed}"
        if rows := _named(pictures, _DIGIT_ROWS):
            figure = draw_digit_rows(rows, _DIGIT, scale=scale)
            caption = f"Test digits and what the decoders make of their codes, {which}."
            drawings.append(Drawing(f"{name}-digits", figure, caption, caption, is_image=True))
        grams = dict(_stretch(key, gram) for key, gram in _named(pictures, _GRAMS).items())
        if grams and "gram classes" in pictures:
            classes = np.rint(pictures["gram classes"]).astype(int)
            label = "from low to high in each matrix"
            figure = draw_gram_matrices(grams, classes, label=label, scale=scale)
            caption = (
                f"Gram matrices of test digits sorted by class, {which}: the prior, and "
                "inner products of codes. L_c leaves the scale open: each matrix has the colours "
                "for its own values from the 1st to the 99th percentile, which stand above it as "
                "parts of its largest value. Patterns compare, heights do not."
            )
            drawings.append(Drawing(f"{name}-grams", figure, caption, caption, is_image=True))
    return drawings


_DIGIT_ROWS = {
    "original": "original",
    "reconstruction 0.75": "λ = 0.75",
    "reconstruction 0.1": "λ = 0.1",
}
_GRAMS = {"prior gram": "prior P", "code gram 0": "codes, λ = 0", "code gram 0.1": "codes, λ = 0.1"}


def _stretch(name: str, gram: NDArray[Any]) -> tuple[str, NDArray[Any]]:
    """Return a matrix with most of its values from 0 to 1, and its name with their range.

    Codes of a sigmoid are all positive, and their inner products nearly equal: on a scale from 0
    their pattern would not be seen. Percentiles, because the diagonal alone can set the largest.
    """
    low, high = np.percentile(gram, (1, 99))
    stretched = ((gram - low) / max(high - low, 1e-12)).clip(0, 1)
    largest = max(float(gram.max()), 1e-12)
    return f"{name}\n{low / largest:.2f} to {high / largest:.2f}".replace("-", MINUS), stretched


def _named(
    pictures: dict[str, NDArray[np.float64]], names: dict[str, str]
) -> dict[str, NDArray[Any]]:
    return {label: pictures[name] for name, label in names.items() if name in pictures}


def _first_runs(runs: Sequence[Run], point: str | None = None) -> list[tuple[str, Run]]:
    """Return the run with the lowest seed of each recipe, for figures that show one."""
    chosen = []
    for recipe in RECIPES:
        found = [run for run in select(runs, recipe=recipe) if run.point == point]
        if found:
            chosen.append((recipe, min(found, key=lambda run: run.seed)))
    return chosen


def _ideal_kernel(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    figure = draw_ideal_kernel(runs, experiment.paper_values, scale=scale)
    caption = (
        "Distance to the ideal kernel of the labels; lower is nearer. A thin line is one seed, "
        f"whose three matrices share their rows and prior. {_BARS}"
    )
    alt = "L_c to the ideal kernel of the prior P, a plain autoencoder K_AE and dkAE C, by recipe"
    return [Drawing(f"{experiment.name}-seeds", figure, caption, alt)]


def _kernel_pca(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    figure = draw_kernel_pca(runs, experiment.paper_values.get("crossing"), scale=scale)
    caption = (
        "Distance to the prior; lower is nearer. From the marked m on, kernel PCA is nearer than "
        "dkAE (mean over the seeds). Bands: 95 % interval over the seeds, where there are several; "
        "it may be narrower than a line."
    )
    alt = "L_c of kernel PCA over the number of components, and the levels of dkAE, by recipe"
    return [Drawing(f"{experiment.name}-curves", figure, caption, alt)]


def _denoising(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    references = {f"paper: {name}": value for name, value in experiment.paper_values.items()}
    linear = estimate_of(runs, "5 and 6", "linear PCA", "mse")
    if linear is not None:
        references["ours: linear PCA"] = linear.mean
    caption = (
        "Mean squared error against the clean image, best method on top; lower is better. Upright "
        f"lines: the paper's values and linear PCA. {_BARS}"
    )
    figure = draw_denoising(runs, references, scale=scale)
    alt = "Denoising error of each method, by recipe and by what the networks were trained on"
    drawings = [Drawing(f"{experiment.name}-errors", figure, caption, alt)]
    for point in ("clean", "noisy"):
        for recipe, run in _first_runs(runs, point):
            if not run.pictures:
                continue
            rows = {name: unpack(packed) for name, packed in run.pictures.items()}
            caption = (
                f"Test digits 5 and 6, the same with noise, and what each method makes of them: "
                f"{recipe} recipe, seed {run.seed}, networks trained on {point} digits. The noise "
                "is not clipped; what lies beyond black and white cannot be seen."
            )
            figure = draw_digit_rows(rows, _DIGIT, scale=scale)
            name = f"{experiment.name}-{recipe}-{point}"
            drawings.append(Drawing(name, figure, caption, caption, is_image=True))
    return drawings


def _code_space(experiment: Experiment, runs: Sequence[Run], scale: str) -> list[Drawing]:
    figure = draw_code_space(runs, scale=scale)
    caption = (
        "How well the ten classes are found in each representation: a linear classifier, which "
        f"knows labels, and two clusterings, which do not. Higher is better. {_BARS}"
    )
    alt = "Accuracy of a linear classifier, k-means and spectral clustering by representation"
    return [Drawing(f"{experiment.name}-accuracy", figure, caption, alt)]


_DRAWERS: dict[str, Callable[[Experiment, Sequence[Run], str], list[Drawing]]] = {
    "lambda": _sweep,
    "code-size": _sweep,
    "tradeoff": _tradeoff,
    "ideal-kernel": _ideal_kernel,
    "kernel-pca": _kernel_pca,
    "denoising": _denoising,
    "code-space": _code_space,
}
