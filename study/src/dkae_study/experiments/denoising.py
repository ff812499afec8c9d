"""Table 2 and Fig. 6: noise removed by a projection in kernel space, or in code space."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from numpy.typing import NDArray
from sklearn.decomposition import PCA

from dkae import codespace, metrics
from dkae_study.declaration import (
    Claim,
    Contrast,
    Experiment,
    Judgement,
    Models,
    NetworkSpec,
    Outcome,
    Scale,
    Sweep,
    Verdict,
    own_verdict,
    score,
    verdict,
)
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.denoisers import (
    ALL_DIGITS,
    ALPHA,
    ALPHAS,
    DIGITS,
    N_COMPONENTS,
    N_LANDMARKS,
    NOISE,
    PAIR,
    PAIR_OF_ALL,
    Denoiser,
    Task,
    kernel_pca,
    make_task,
    there_and_back,
)
from dkae_study.experiments.denoising_exhibits import figures, tables
from dkae_study.results import Job, Run, estimate
from dkae_study.results.pictures import pack

#: Networks that learn to denoise see noise of a random size up to this.
TRAINING_NOISE = 0.5
N_PICTURES = 10

#: Both ways to choose α.
KERNEL_PCA = ("kernel PCA, PCK", "kernel PCA, PCK, α by grid")
#: Table 2.
PAPER = {"kernel PCA, PCK": 0.0427, "dkAE + PCA": 0.0358}


def _networks(scale: Scale, job: Job) -> dict[str, NetworkSpec]:
    noise = TRAINING_NOISE if job.point == "noisy" else 0.0
    return {
        name: NetworkSpec(job.recipe, job.seed, weight, scale.width(job.recipe), noise)
        for name, weight in {"plain": 0.0, "dkae": 0.1}.items()
    }


def _measure(workshop: Workshop, job: Job, models: Models) -> Outcome:
    scores, pictures = {}, {}
    # Table 2 has two digits; all ten take minutes, and are added for the first seed.
    for digits in DIGITS if job.seed == 0 else (PAIR, PAIR_OF_ALL):
        task = make_task(workshop, digits, job.seed)
        denoised = _denoise(task, [("noisy input", lambda x: x)])
        if job.point == "clean":
            rivals = partial(_denoise, task, _rivals(workshop, job.seed, digits, task.train))
            denoised |= workshop.once(("denoising", digits, job.seed), rivals)
        denoised |= _denoise(task, _methods(job, models, task.train))
        scores[digits] = {method: errors for method, (errors, _) in denoised.items()}
        if digits == PAIR:
            images = {method: image for method, (_, image) in denoised.items()}
            pictures = {"original": _picture(task.clean), "noisy": images.pop("noisy input")}
            pictures |= images
    return Outcome(scores, pictures)


def _rivals(
    workshop: Workshop, seed: int, digits: str, train: NDArray[Any]
) -> Iterator[tuple[str, Denoiser]]:
    """Yield the ways to denoise without a network, which are the same for all recipes."""
    yield "linear PCA", there_and_back(PCA(N_COMPONENTS, random_state=seed).fit(train))
    prior = workshop.kernel(seed).on(train)
    yield "kernel PCA, PCK", kernel_pca(train, prior, seed, [ALPHA])
    yield "kernel PCA, PCK, α by grid", kernel_pca(train, prior, seed, ALPHAS)
    if digits != PAIR_OF_ALL:  # minutes of all digits' RBF kernel, once for the first seed
        yield "kernel PCA, RBF", kernel_pca(train, None, seed, ALPHAS)


def _methods(job: Job, models: Models, train: NDArray[Any]) -> Iterator[tuple[str, Denoiser]]:
    """Yield the ways to denoise with networks: trained without noise, or with it."""
    plain, dkae = (
        codespace.code_pca(models[name], train, min(N_COMPONENTS, models[name].n_components))
        for name in ("plain", "dkae")
    )
    if job.point == "clean":
        yield "plain autoencoder + PCA", there_and_back(plain)
        yield "dkAE + PCA", there_and_back(dkae)
        yield "dkAE without PCA", there_and_back(models["dkae"])
    else:
        yield "denoising autoencoder", there_and_back(models["plain"])
        yield "denoising autoencoder + PCA", there_and_back(plain)
        yield "denoising dkAE", there_and_back(models["dkae"])
        yield "denoising dkAE + PCA", there_and_back(dkae)


def _denoise(
    task: Task, methods: Iterable[tuple[str, Denoiser]]
) -> dict[str, tuple[dict[str, float], Any]]:
    """Return the errors of each way to denoise, and what it makes of the first images."""
    return {
        name: (_errors(task, denoise), _picture(denoise(task.noisy[:N_PICTURES])))
        for name, denoise in methods
    }


def _picture(images: NDArray[Any]) -> Any:
    return pack(images[:N_PICTURES], 0, 1)


def _errors(task: Task, denoise: Denoiser) -> dict[str, float]:
    inputs = {"": task.noisy, "_clipped": task.noisy.clip(0, 1)}
    errors: dict[str, float] = {}
    for ending, noisy in inputs.items():
        denoised = denoise(noisy)
        mse = metrics.reconstruction_error(task.clean, denoised)
        errors |= {f"mse{ending}": mse, f"psnr{ending}": -10 * math.log10(mse)}
    return errors


# --- claims --------------------------------------------------------------------------------------


def _errors_of(
    runs: Sequence[Run], point: str, digits: str, method: str, metric: str
) -> dict[int, float]:
    """Return the error of each seed."""
    chosen = [run for run in runs if run.point == point and digits in run.scores]
    return {run.seed: float(run.scores[digits][method][metric]) for run in chosen}


def _judge_against(
    *rivals: str,
    method: str = "dkAE + PCA",
    point: str = "clean",
    digits: str = PAIR,
    metric: str = "mse",
    judge: Callable[[bool], Verdict] = own_verdict,
) -> Callable[[Sequence[Run]], Judgement | None]:
    """Return what judges whether a method has a lower error than the best of its rivals."""

    def decide(runs: Sequence[Run]) -> Judgement | None:
        ours = _errors_of(runs, point, digits, method, metric)
        others = [_errors_of(runs, "clean", digits, name, metric) for name in rivals]
        both = sorted(ours.keys() & others[0].keys())
        if not both:
            return None
        theirs = min(others, key=lambda errors: estimate([errors[seed] for seed in both]).mean)
        gap = estimate([ours[seed] - theirs[seed] for seed in both])
        return Judgement(
            f"{estimate([ours[seed] for seed in both]).format()} against "
            f"{estimate([theirs[seed] for seed in both]).format()}",
            judge(gap.high < 0),
            gap.n,
            f"Difference {gap.format()}, paired ({gap.seeds}); the interval, or the one value, "
            "must lie below 0.",
        )

    return decide


DENOISING = Experiment(
    name="denoising",
    title="Denoising in code space",
    reference="Table 2 and Fig. 6, Section 4.5",
    summary=f"Gaussian noise of standard deviation {NOISE} on test images of the digits {PAIR}, "
    f"removed by a projection on {N_COMPONENTS} components: kernel PCA with a learned pre-image, "
    "dkAE with PCA on its codes, and what a reader would compare them with.",
    data="components from the training rows of the classes, errors on their test rows",
    methods=(
        "linear PCA",
        "kernel PCA with the PCK and with an RBF kernel, pre-image by kernel ridge regression",
        "PCA on the codes of a plain autoencoder and of dkAE",
        "a denoising autoencoder and a denoising dkAE (noise on the input in training)",
    ),
    sweep=Sweep("training", lambda scale: ("clean", "noisy")),
    n_seeds=5,
    metrics={
        "mse": "mean squared error of a pixel against the clean image",
        "psnr": "peak signal-to-noise ratio in dB",
        "mse_clipped, psnr_clipped": "the same with the noisy image clipped to [0, 1] first",
    },
    constants={
        "noise": NOISE,
        "components": N_COMPONENTS,
        "alpha": ALPHA,
        "alphas": ALPHAS,
        "landmarks of a pre-image": N_LANDMARKS,
    },
    paper_values=PAPER,
    assumptions=(
        "The noise is not clipped: clipping alone takes the noisy input below both values of the "
        "paper. Clipped input is judged too.",
        "Networks and mixtures learn from all digits, components and pre-image from the clean "
        "training rows of the classes that are denoised, or of all ten.",
        f"The pre-image has α = {ALPHA}, as the paper found, or the best α on a part of the clean "
        "training rows (“by grid”, and with the RBF kernel); the claim is judged against the "
        "better of the two.",
        "All ten digits are denoised for the first seed only.",
        f"The pre-image is kernel ridge regression on what linear ridge regression leaves; with "
        f"more than {N_LANDMARKS:,} rows (all digits) it has that many landmarks.",
        f"Networks that learn to denoise see noise of a random size up to {TRAINING_NOISE} on "
        "their input.",
        "The claims on clipped images and on networks that learned to denoise, without a "
        "projection, were added when their numbers were known.",
    ),
    differences=(
        "The paper does not say whether its networks and mixtures saw all digits or the two, nor "
        "to which of them its components were fitted: both are measured.",
        "The PCK is nearly piecewise constant, and noise moves an image into other clusters: the "
        "more its variances are regularised the better kernel PCA denoises.",
        "With three times the steps of the scale laptop dkAE + PCA denoises worse, not better "
        "(study/benchmarks/flat_middle.py, one seed). Where training is shorter than in the paper, "
        "a lower error than there is no merit: no level is called better here.",
        "Clipping shifts a black pixel to 0.1 on average; at the scale laptop that turns the "
        "comparison round. The paper does not mention it.",
    ),
    claims=(
        Claim(
            "dkAE + PCA denoises better than kernel PCA with a learned pre-image (MSE)",
            "0.0358 against 0.0427",
            _judge_against(*KERNEL_PCA, judge=verdict),
        ),
        Claim(
            "The same where the noisy images are clipped to [0, 1]",
            "",
            _judge_against(*KERNEL_PCA, metric="mse_clipped"),
        ),
        Claim(
            "The first with components of all ten digits, and not of the two",
            "",
            _judge_against(*KERNEL_PCA, digits=PAIR_OF_ALL),
        ),
        Claim(
            "dkAE + PCA, trained on clean images as in the paper, denoises better than linear PCA",
            "",
            _judge_against("linear PCA"),
        ),
        Claim(
            "dkAE + PCA, trained with noise on its input, denoises better than linear PCA",
            "",
            _judge_against("linear PCA", method="denoising dkAE + PCA", point="noisy"),
        ),
        Claim(
            "dkAE, trained with noise on its input and without a projection, denoises better than "
            "linear PCA",
            "",
            _judge_against("linear PCA", method="denoising dkAE", point="noisy"),
        ),
    ),
    contrasts=(
        Contrast("MSE of dkAE + PCA", score(PAIR, "dkAE + PCA", "mse")),
        Contrast(
            "MSE of dkAE + PCA, noisy images clipped", score(PAIR, "dkAE + PCA", "mse_clipped")
        ),
        Contrast(
            "MSE of dkAE + PCA, components of all digits", score(PAIR_OF_ALL, "dkAE + PCA", "mse")
        ),
        Contrast("MSE of dkAE + PCA, all digits", score(ALL_DIGITS, "dkAE + PCA", "mse")),
        Contrast("MSE of dkAE without PCA", score(PAIR, "dkAE without PCA", "mse")),
        Contrast(
            "MSE of dkAE + PCA that learned to denoise", score(PAIR, "denoising dkAE + PCA", "mse")
        ),
        Contrast(
            "MSE of dkAE that learned to denoise, without PCA",
            score(PAIR, "denoising dkAE", "mse"),
        ),
    ),
    networks=_networks,
    measure=_measure,
    seconds=40,
    figures=figures,
    tables=tables,
)
