"""Runs with invented numbers, one for each job of the study, in the shape that real runs have."""

from __future__ import annotations

import zlib

import numpy as np
from dkae_study.declaration.configuration import scale_config
from dkae_study.paper import PAPER
from dkae_study.results import Job, Run, write_run
from dkae_study.results.pictures import pack

#: Which digits are denoised, and how much larger errors are.
PARTS = {"5 and 6": 1.0, "5 and 6, components of all digits": 1.1, "all digits": 1.2}
METHODS = {
    "clean": [
        "noisy input",
        "linear PCA",
        "kernel PCA, PCK",
        "kernel PCA, PCK, α by grid",
        "kernel PCA, RBF",
        "plain autoencoder + PCA",
        "dkAE + PCA",
        "dkAE without PCA",
    ],
    "noisy": [
        "noisy input",
        "denoising autoencoder",
        "denoising autoencoder + PCA",
        "denoising dkAE",
        "denoising dkAE + PCA",
    ],
}


def invent_runs(scale: str = "smoke") -> list[Run]:
    """Return a run for each job of the study."""
    return [
        invent_run(job, scale)
        for experiment in PAPER.experiments
        for job in experiment.jobs(PAPER.scale(scale), PAPER.recipe_names)
    ]


def invent_run(job: Job, scale: str = "smoke") -> Run:
    rng = np.random.default_rng(zlib.crc32(job.name.encode()))
    scores, pictures = _INVENTORS[job.experiment](job, rng)
    return Run(
        experiment=job.experiment,
        scale=scale,
        recipe=job.recipe,
        seed=job.seed,
        point=job.point,
        config={"scale": scale_config(PAPER.scale(scale), job.recipe)},
        config_hash="0" * 8,
        scores=scores,
        pictures=pictures,
        models={"dkae": {"config": {}, "hash": job.name, "seconds": 5.0, "n_steps": 40}},
        counts={
            "rows": {"train": 600, "test": 200},
            "mixtures": 870,
            "n_columns": 14_355,
            "layers": {"dkae": [784, 32, 48], "plain": [784, 32, 48]},
        },
        provenance={
            "versions": {"dkae": "0.1", "numpy": "2.0"},
            "commit": "0123abcd",
            "machine": {"cores": 2},
            "started": f"2026-01-01T00:00:0{job.seed}",
            "seconds": 12.5,
            "peak_memory_mb": 512.0,
        },
    )


def write_runs(runs, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        name = run.job.name
        write_run(run, folder / f"{name}.json")
    return folder


# --- one for each experiment ---------------------------------------------------------------------


def _losses(rng, weight: float, width: float = 2000.0) -> dict[str, float]:
    mse = 0.004 + 0.05 * weight**6 + 0.2 / width + 0.0003 * rng.random()
    alignment = 0.09 + 0.6 * np.exp(-40 * weight) + 1 / width + 0.002 * rng.random()
    return {
        "reconstruction_mse": mse,
        "alignment_loss": alignment,
        "alignment_loss_blocks": 1.1 * alignment,
    }


def _invent_lambda(job, rng):
    part = {name: _losses(rng, job.point) for name in ("validation", "test")}
    return part, {}


def _invent_code_size(job, rng):
    return {name: _losses(rng, 0.1, job.point) for name in ("validation", "test")}, {}


def _digits(rng, n: int = 10):
    """Return rings of different widths, for want of digits."""
    grid = np.hypot(*np.meshgrid(*2 * [np.linspace(-1, 1, 28)]))
    radii = rng.uniform(0.3, 0.7, n)[:, None, None]
    return np.exp(-(((grid - radii) / 0.12) ** 2)).reshape(n, 784)


def _gram(rng, classes, noise: float):
    same = classes[:, None] == classes
    half = noise * rng.random((len(classes), len(classes)))
    return same * 0.6 + half + half.T + 0.3 * np.eye(len(classes))


def _invent_tradeoff(job, rng):
    classes = np.repeat(np.arange(10), 30)
    digits = _digits(rng)
    pictures = {
        "original": digits,
        "reconstruction 0.1": 0.9 * digits,
        "reconstruction 0.75": 0.6 * digits,
        "prior gram": _gram(rng, classes, 0.1),
        "code gram 0": _gram(rng, classes, 0.5),
        "code gram 0.1": _gram(rng, classes, 0.15),
    }
    packed = {name: pack(array) for name, array in pictures.items()}
    packed["gram classes"] = pack(classes.astype(float), 0, 255)
    return {f"{weight:g}": _losses(rng, weight) for weight in (0.0, 0.1, 0.75)}, packed


def _invent_ideal_kernel(job, rng):
    level = 0.95 + 0.01 * rng.random()
    scores = {
        "P": level,
        "K_AE": level + 0.12 + 0.01 * rng.random(),
        "C": level - 0.004 + 0.005 * rng.random(),
        "alignment_loss": 0.1,
        "P, reg 1e-06": 1.013 + 0.01 * rng.random(),
    }
    return scores, {}


def _invent_kernel_pca(job, rng):
    m = np.arange(1, 33)
    level = {"paper": 0.2, "network": 0.11}[job.recipe] + 0.004 * rng.random()
    # The prior is the same for both recipes, so that kernel PCA is.
    inside = 0.8 * m**-0.6 + 0.001 * job.seed
    scores = {"m": m.tolist()}
    for name, curve in {"in_sample": inside, "out_of_sample": 1.1 * inside}.items():
        below = np.flatnonzero(curve < level)
        scores[name] = curve.tolist()
        scores[f"dkae_{name}"] = level
        scores[f"crossing_{name}"] = int(m[below[0]]) if len(below) else None
    return scores, {}


def _invent_denoising(job, rng):
    methods = METHODS[job.point]
    mses = [0.0625, *rng.uniform(0.012, 0.045, len(methods) - 1)]
    errors = dict(zip(methods, mses, strict=True))
    scores = {
        part: {
            method: {
                "mse": factor * mse,
                "psnr": -10 * np.log10(factor * mse),
                "mse_clipped": 0.7 * factor * mse,
                "psnr_clipped": -10 * np.log10(0.7 * factor * mse),
            }
            for method, mse in errors.items()
        }
        for part, factor in PARTS.items()
    }
    digits = _digits(rng)
    noisy = digits + 0.25 * rng.standard_normal(digits.shape)
    pictures = {"original": digits, "noisy": noisy}
    pictures |= dict.fromkeys(methods[1:], 0.9 * digits)
    return scores, {name: pack(array, 0, 1) for name, array in pictures.items()}


def _invent_code_space(job, rng):
    def clusters():
        return dict(zip(("accuracy", "nmi", "ari"), rng.uniform(0.4, 0.8, 3).tolist(), strict=True))

    names = ("raw input", "kernel PCA", "plain autoencoder", "dkAE")
    return {
        name: {
            "linear classifier": float(rng.uniform(0.9, 0.97)),
            "k-means": clusters(),
            "spectral": clusters(),
        }
        for name in names
    }, {}


_INVENTORS = {
    "lambda": _invent_lambda,
    "code-size": _invent_code_size,
    "tradeoff": _invent_tradeoff,
    "ideal-kernel": _invent_ideal_kernel,
    "kernel-pca": _invent_kernel_pca,
    "denoising": _invent_denoising,
    "code-space": _invent_code_space,
}
