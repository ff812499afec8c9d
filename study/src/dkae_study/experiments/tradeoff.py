"""Fig. 4: what λ does to reconstructions and to the learned Gram matrix, to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae_study.declaration import (
    Claim,
    Contrast,
    Drawing,
    Experiment,
    Findings,
    Judgement,
    Models,
    NetworkSpec,
    Outcome,
    Scale,
    Table,
    own_verdict,
    score,
    verdict,
)
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.losses import SCORES, loss_table, part_scores
from dkae_study.report.images import draw_gram_matrices, draw_image_rows
from dkae_study.results import Job, Run, estimate
from dkae_study.results.numbers import MINUS, estimate_of
from dkae_study.results.pictures import pack, unpack

#: λ of the plain autoencoder, of the paper's choice, and of its "non-optimal" one.
WEIGHTS = (0.0, 0.1, 0.75)
#: Rows of each class in the Gram matrices that are drawn.
N_GRAM_ROWS = 30
#: Our aim at λ = 0.1.
MSE_AIM = 0.008


def _networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    width = scale.width(job.recipe)
    return {f"{w:g}": NetworkSpec(job.recipe, job.seed, w, width) for w in WEIGHTS}


def _measure(workshop: Workshop, job: Job, models: Models) -> Outcome:
    gram, (X, y) = workshop.gram(job.seed, "test"), workshop.parts["test"]
    scores = {name: part_scores(model, gram, X) for name, model in models.items()}
    digits = X[rows_by_class(y, 1)]
    rows = rows_by_class(y, N_GRAM_ROWS)
    pictures = {
        "original": pack(digits, 0, 1),
        "gram classes": pack(y[rows].astype(np.float64), 0, 255),
        "prior gram": pack(gram.block(rows)),
    }
    for name in ("0.1", "0.75"):
        decoded = models[name].inverse_transform(models[name].transform(digits))
        pictures[f"reconstruction {name}"] = pack(decoded, 0, 1)
    for name in ("0", "0.1"):
        pictures[f"code gram {name}"] = pack(models[name].gram(X[rows]))
    return Outcome(scores, pictures)


def rows_by_class(y: NDArray[np.int64], n_rows: int) -> NDArray[np.intp]:
    """Return the first `n_rows` rows of each class, sorted by class."""
    return np.concatenate([np.flatnonzero(y == label)[:n_rows] for label in np.unique(y)])


def _mean(runs: Sequence[Run], weight: str, loss: str) -> float:
    return estimate([run.scores[weight][loss] for run in runs]).mean


def _judge(runs: Sequence[Run]) -> Judgement | None:
    if not runs:
        return None
    small, large = (_mean(runs, weight, "reconstruction_mse") for weight in ("0.1", "0.75"))
    aligned, plain = (_mean(runs, weight, "alignment_loss") for weight in ("0.1", "0"))
    return Judgement(
        f"MSE {small:.4f} at λ = 0.1 and {large:.4f} at 0.75; L_c {aligned:.3f} at λ = 0.1 and "
        f"{plain:.3f} at 0",
        verdict(small < large and aligned < plain),
        len(runs),
        "Both inequalities must hold on the test part.",
    )


def _judge_mse(runs: Sequence[Run]) -> Judgement | None:
    if not runs:
        return None
    mse = _mean(runs, "0.1", "reconstruction_mse")
    return Judgement(
        f"{mse:.4f}",
        own_verdict(mse < MSE_AIM),
        len(runs),
        "Our own aim; the paper prints no such number.",
    )


# --- figures and tables --------------------------------------------------------------------------

_IMAGES = {
    "original": "original",
    "reconstruction 0.75": "λ = 0.75",
    "reconstruction 0.1": "λ = 0.1",
}
_GRAMS = {"prior gram": "prior P", "code gram 0": "codes, λ = 0", "code gram 0.1": "codes, λ = 0.1"}


def _figures(findings: Findings) -> list[Drawing]:
    drawings = []
    for recipe, run in findings.first_runs().items():
        pictures = {name: unpack(packed) for name, packed in run.pictures.items()}
        name, which = f"{findings.experiment.name}-{recipe}", f"{recipe} recipe, seed {run.seed}"
        if rows := _named(pictures, _IMAGES):
            figure = draw_image_rows(rows, findings.study.data.row_shape, note=findings.note)
            caption = f"Test digits and what the decoders make of their codes, {which}."
            drawings.append(Drawing(f"{name}-digits", figure, caption, caption, is_image=True))
        grams = dict(_stretch(key, gram) for key, gram in _named(pictures, _GRAMS).items())
        if grams and "gram classes" in pictures:
            classes = np.rint(pictures["gram classes"]).astype(int)
            label = "from low to high in each matrix"
            figure = draw_gram_matrices(grams, classes, label=label, note=findings.note)
            caption = (
                f"Gram matrices of test digits sorted by class, {which}: the prior, and "
                "inner products of codes. L_c leaves the scale open: each matrix has the colours "
                "for its own values from the 1st to the 99th percentile, which stand above it as "
                "parts of its largest value. Patterns compare, heights do not."
            )
            drawings.append(Drawing(f"{name}-grams", figure, caption, caption, is_image=True))
    return drawings


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
    pictures: Mapping[str, NDArray[Any]], names: Mapping[str, str]
) -> dict[str, NDArray[Any]]:
    return {label: pictures[name] for name, label in names.items() if name in pictures}


def _tables(findings: Findings) -> list[Table]:
    names = sorted({name for run in findings.runs for name in run.scores}, key=float)
    rows = {
        name: [
            estimate_of(findings.of(recipe), name, loss)
            for loss in SCORES
            for recipe in findings.recipes
        ]
        for name in names
    }
    return [loss_table("Losses on the test part", "λ", rows, findings.recipes)]


TRADEOFF = Experiment(
    name="tradeoff",
    title="Reconstructions and Gram matrices",
    reference="Fig. 4, Section 4.3",
    summary="Test digits and what the decoders make of them at λ = 0.75 and 0.1; the prior's Gram "
    "matrix beside those of the codes at λ = 0 and 0.1.",
    data="networks from the training part, losses on the test part",
    methods=("dkAE", "plain stacked autoencoder (λ = 0)"),
    n_seeds=5,
    metrics=SCORES,
    constants={"alignment weights": WEIGHTS, "rows of a class": N_GRAM_ROWS},
    assumptions=(
        f"The matrices show the first {N_GRAM_ROWS} test rows of each class; the losses are of "
        "all test rows.",
    ),
    differences=("The figure in the paper has no numbers.",),
    claims=(
        Claim(
            "At λ = 0.1 images come back better than at 0.75, and the Gram matrix is nearer to "
            "the prior than at λ = 0",
            "Fig. 4",
            _judge,
        ),
        Claim(f"Test MSE at λ = 0.1 below {MSE_AIM}", "", _judge_mse),
    ),
    contrasts=(Contrast("Test MSE at λ = 0.1", score("0.1", "reconstruction_mse")),),
    networks=_networks,
    measure=_measure,
    seconds=12,
    figures=_figures,
    tables=_tables,
)
