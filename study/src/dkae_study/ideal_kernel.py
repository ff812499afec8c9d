"""Table 1: how far the prior, a plain autoencoder and dkAE are from the ideal kernel of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dkae import metrics
from dkae.estimator import DeepKernelizedAutoencoder
from dkae_study.declaration import Claim, Experiment, Job, Judgement, Outcome, verdict
from dkae_study.intervals import Estimate, estimate
from dkae_study.results import Run
from dkae_study.scales import Scale
from dkae_study.workshop import Network, Workshop

__all__ = ["IDEAL_KERNEL"]

#: The regulariser with which L_c(P, K_I) comes out as in the paper.
OTHER_REG_COVAR = 1e-6


def _networks(scale: Scale, job: Job) -> dict[str, Network]:
    return {
        "K_AE": Network(job.recipe, job.seed, 0.0, scale.n_components),
        "C": Network(job.recipe, job.seed, 0.1, scale.n_components),
    }


def _measure(
    workshop: Workshop, job: Job, models: Mapping[str, DeepKernelizedAutoencoder]
) -> Outcome:
    kernel, (X, y) = workshop.kernel(job.seed), workshop.parts["test"]
    prior = kernel.on(X)
    grams: dict[str, Any] = {"P": prior}
    grams |= {name: metrics.code_gram(model.transform(X)) for name, model in models.items()}
    scores = {name: metrics.ideal_loss(gram, y) for name, gram in grams.items()}
    scores["alignment_loss"] = metrics.alignment_loss(grams["C"], prior)
    other = workshop.kernel(job.seed, OTHER_REG_COVAR).on(X)
    scores[f"P, reg {OTHER_REG_COVAR:g}"] = metrics.ideal_loss(other, y)
    return Outcome(scores)


def _differences(runs: Sequence[Run], a: str, b: str) -> list[float]:
    """Return L_c(b, K_I) - L_c(a, K_I) for each seed: pairs have prior and data in common."""
    return [run.scores[b] - run.scores[a] for run in runs]


def _judge_autoencoder(runs: Sequence[Run]) -> Judgement | None:
    if not runs:
        return None
    gap = estimate(_differences(runs, "P", "K_AE"))
    percent = estimate([100 * (r.scores["K_AE"] - r.scores["P"]) / r.scores["P"] for r in runs])
    return Judgement(
        f"{percent.format(1)} %",
        verdict(gap.low > 0),
        gap.n,
        f"L_c(K_AE, K_I) − L_c(P, K_I) = {gap.format()}, paired ({gap.seeds}); the interval, or "
        "the one value, must lie above 0.",
    )


def _judge_prior(runs: Sequence[Run]) -> Judgement | None:
    if not runs:
        return None
    gap = estimate(_differences(runs, "P", "C"))
    percent = estimate([100 * (r.scores["P"] - r.scores["C"]) / r.scores["C"] for r in runs])
    priors = [run.scores["P"] for run in runs]
    return Judgement(
        f"{percent.format(2)} %",
        # Never "better": a perfect C is P, so that a larger gap may be no more than less training.
        verdict(gap.mean <= 0),
        gap.n,
        f"L_c(C, K_I) − L_c(P, K_I) = {gap.format()}, paired ({gap.seeds}); the mean must not be "
        f"above 0. {_place(gap)} {_spread(priors)}",
    )


def _spread(priors: Sequence[float]) -> str:
    if len(priors) < 2:
        return ""
    return f"Between seeds L_c(P, K_I) itself moves by {max(priors) - min(priors):.4f}."


def _place(gap: Estimate) -> str:
    """Say where the interval lies."""
    if gap.half_width is None:
        return "There is no interval."
    if gap.low <= 0 <= gap.high:
        return "The interval contains 0."
    return f"The interval lies {'below' if gap.high < 0 else 'above'} 0."


IDEAL_KERNEL = Experiment(
    name="ideal-kernel",
    title="Distance to the ideal kernel",
    reference="Table 1, Section 4.3",
    summary="L_c on the test part between the ideal kernel of the labels (1 for the same digit, "
    "else 0) and the prior P, a plain autoencoder K_AE (λ = 0) and dkAE C (λ = 0.1).",
    data="MNIST-20k: networks from the training part, losses on the test part",
    methods=("P: the prior", "K_AE: plain stacked autoencoder", "C: dkAE"),
    sweep=None,
    n_seeds=5,
    metrics={
        "P": "L_c(P, K_I)",
        "K_AE": "L_c(K_AE, K_I)",
        "C": "L_c(C, K_I)",
        "alignment_loss": "L_c(C, P)",
        f"P, reg {OTHER_REG_COVAR:g}": f"L_c(P, K_I) with variances regularised by "
        f"{OTHER_REG_COVAR:g}",
    },
    constants={"other reg_covar": OTHER_REG_COVAR},
    paper_values={
        "P": 1.0132,
        "K_AE": 1.1417,
        "C": 1.0115,
        "P vs K_AE, %": 12.7,
        "P vs C, %": -0.2,
        "K_AE vs P, %": -11.3,
        "K_AE vs C, %": -11.4,
        "C vs P, %": 0.2,
        "C vs K_AE, %": 12.9,
    },
    assumptions=(
        "A seed moves the rows that the mixtures are fitted on, their starts, and the weights and "
        "batches of the networks; the split of the data stays. Differences are taken within a "
        "seed.",
        "Improvement of row over column: (L_column − L_row) / L_row, which gives the paper's "
        "percentages.",
    ),
    differences=(
        "The level of L_c(P, K_I) is set by how the mixtures' variances are regularised, which the "
        "paper does not state; the table has it for 1e-6 beside the 1e-3 that is used here.",
        "Intervals are ours; the paper has one run.",
        "Codes that give the prior back exactly are as far from the ideal kernel as it is. So a "
        "larger gap between the two than in the paper may come from less training, and is not "
        "called better.",
    ),
    claims=(
        Claim(
            "A plain autoencoder is further from the ideal kernel than the prior",
            "12.7 %",
            _judge_autoencoder,
        ),
        Claim(
            "dkAE is at least as near to the ideal kernel as the prior it was given",
            "0.2 %",
            _judge_prior,
        ),
    ),
    networks=_networks,
    measure=_measure,
)
