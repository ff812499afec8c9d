"""A study of another kind, declared here and nowhere else: scikit-learn's small digits.

Other data, another kernel, one recipe of its own and one of the library, and two experiments with a
figure and a table. The engine and the page know nothing of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from dkae_study.declaration import (
    Claim,
    Contrast,
    Data,
    Drawing,
    Experiment,
    Findings,
    Judgement,
    Models,
    NetworkSpec,
    Outcome,
    Part,
    Recipe,
    Scale,
    Study,
    Sweep,
    Table,
    own_verdict,
    score,
)
from dkae_study.engine.workshop import Workshop
from dkae_study.report.charts import looks_of, new_figure
from dkae_study.report.images import draw_image_rows
from dkae_study.results import Job, Run
from dkae_study.results.numbers import estimate_of
from dkae_study.results.pictures import pack, unpack
from sklearn.datasets import load_digits

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.kernels import PairwiseKernel
from dkae.networks import Stack
from dkae.plotting import STYLE


def load() -> dict[str, Part]:
    X, y = load_digits(return_X_y=True)
    parts = {"train": slice(0, 300), "validation": slice(300, 400), "test": slice(400, 500)}
    rows = (X / 16).astype(np.float32)
    return {name: Part(rows[ids], y[ids]) for name, ids in parts.items()}


def kernel(gamma: float, random_state: int) -> PairwiseKernel:
    """Return a kernel without chance: every seed has the same."""
    return PairwiseKernel("rbf", gamma=gamma)


def shallow() -> DeepKernelizedAutoencoder:
    return DeepKernelizedAutoencoder(network=Stack(activation="relu"), decoder_max_iter=0)


# --- how fast a code learns the kernel -----------------------------------------------------------


def width_networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    return {"model": NetworkSpec(job.recipe, job.seed, 0.5, int(job.point))}


def measure_width(workshop: Workshop, job: Job, models: Models) -> Outcome:
    X = workshop.parts["test"].X
    codes = metrics.code_gram(models["model"].transform(X))
    return Outcome({"alignment": metrics.kernel_alignment(codes, workshop.gram(job.seed, "test"))})


def judge_width(runs: Sequence[Run]) -> Judgement | None:
    levels = {run.point: run.scores["alignment"] for run in runs}
    if len(levels) < 2:
        return None
    narrow, wide = levels[min(levels)], levels[max(levels)]
    return Judgement(f"{narrow:.2f} and {wide:.2f}", own_verdict(wide > narrow), 1)


@mpl.rc_context(STYLE)
def draw_width(findings: Findings) -> list[Drawing]:
    figure = new_figure(4, 3, findings.note)
    ax = figure.subplots()
    for recipe, look in looks_of(findings.recipes).items():
        points = {run.point: run.scores["alignment"] for run in findings.of(recipe)}
        ax.plot(list(points), list(points.values()), look.marker, color=look.color, label=recipe)
    return [Drawing("width-alignment", figure, "Alignment over the width.", "Dots by recipe")]


def tabulate_width(findings: Findings) -> list[Table]:
    rows = [[r, estimate_of(findings.of(r), "alignment")] for r in findings.recipes]
    return [Table("Alignment, all widths", ["recipe", "A"], rows)]


WIDTH = Experiment(
    name="width",
    title="Wider codes",
    summary="Codes of two widths.",
    networks=width_networks,
    measure=measure_width,
    seconds=1,
    sweep=Sweep("N_c", lambda scale: scale.settings["widths"]),
    claims=(Claim("A wider code is nearer to the kernel", "", judge_width),),
    contrasts=(Contrast("Alignment over N_c", score("alignment"), higher_is_better=True),),
    figures=draw_width,
    tables=tabulate_width,
)


# --- what comes back -----------------------------------------------------------------------------


def back_networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    return {"plain": NetworkSpec(job.recipe, job.seed, 0.0, scale.n_components)}


def measure_back(workshop: Workshop, job: Job, models: Models) -> Outcome:
    X = workshop.parts["test"].X
    back = models["plain"].inverse_transform(models["plain"].transform(X))
    pictures = {"in": pack(X[:3], 0, 1), "out": pack(back[:3], 0, 1)}
    return Outcome({"mse": metrics.reconstruction_error(X, back)}, pictures)


def draw_back(findings: Findings) -> list[Drawing]:
    drawings = []
    for recipe, run in findings.first_runs().items():
        rows = {name: unpack(packed) for name, packed in run.pictures.items()}
        figure = draw_image_rows(rows, findings.study.data.row_shape, note=findings.note)
        drawings.append(Drawing(f"back-{recipe}", figure, "In and out.", "Digits", is_image=True))
    return drawings


BACK = Experiment(
    name="back",
    title="There and back",
    summary="Reconstructions.",
    networks=back_networks,
    measure=measure_back,
    seconds=1,
    n_seeds=2,
    figures=draw_back,
)

TINY = Study(
    title="A tiny study",
    command="python tiny_study.py",
    data=Data("digits8", "8 × 8 digits", load, row_shape=(8, 8)),
    kernel=kernel,
    scales=(
        Scale(
            name="seconds",
            summary="a few steps",
            n_train=200,
            n_held_out=80,
            kernel={"gamma": 0.05},
            hidden_layer_sizes=(16,),
            n_components=8,
            batch_size=50,
            schedules={
                "shallow": {"steps_per_epoch": 5, "max_iter": 2, "decoder_max_iter": 1},
                "library": {"steps_per_epoch": 5, "max_iter": 2, "decoder_max_iter": 1},
            },
            n_seeds=2,
            settings={"widths": (2, 12)},
        ),
    ),
    recipes=(
        Recipe("shallow", "a plain network", shallow),
        Recipe("library", "what the library takes", DeepKernelizedAutoencoder),
    ),
    experiments=(WIDTH, BACK),
)
