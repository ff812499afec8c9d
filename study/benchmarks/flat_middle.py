"""Why the reconstruction error grows with λ: too few steps, or what the two maps share.

The paper finds both losses nearly constant for λ from 0.1 to 0.9 (Fig. 3a); the scale laptop does
not. Next to the networks of the paper's recipe in ``results/laptop`` here are those of both ends
with three times the steps, and with a decoder that has weights of its own. Of those with λ = 0.1
also where kernel PCA gets better (Fig. 5), and how they denoise (Table 2). One seed, four networks:
on one core about half an hour for one with more steps, ten minutes for the others. Goes on where it
was stopped. Writes ``results/flat_middle.json``.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dkae_study.declaration import NetworkSpec, Study
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.denoisers import (
    N_COMPONENTS,
    PAIR,
    make_task,
    there_and_back,
)
from dkae_study.experiments.kernel_pca import crossing
from dkae_study.experiments.losses import part_scores
from dkae_study.paper import LAPTOP, PAPER

from dkae import DeepKernelizedAutoencoder
from dkae.codespace import code_pca
from dkae.metrics import reconstruction_error

RESULTS = Path(__file__).parent / "results" / "flat_middle.json"
RUNS = Path(__file__).parents[1] / "results"
RECIPE = "paper"
#: Changes of the study's schedule.
VARIANTS: dict[str, dict[str, Any]] = {
    "6,000 steps": {"steps_per_epoch": 60},
    "not tied": {"network__tied_weights": False},
}
ALIGNMENT_WEIGHTS = (0.1, 0.9)
SEED = 0

#: Both losses for each λ and part of the data.
Losses = dict[str, dict[str, dict[str, float]]]


def variant(changes: dict[str, Any]) -> Study:
    """Return the study at the scale laptop alone, with another schedule."""
    schedules = LAPTOP.schedules | {RECIPE: LAPTOP.schedules[RECIPE] | changes}
    return replace(PAPER, scales=(replace(LAPTOP, name="flat-middle", schedules=schedules),))


def trained(workshop: Workshop, weight: float) -> DeepKernelizedAutoencoder:
    """Train a network, or take it from the cache."""
    return workshop.train(NetworkSpec(RECIPE, SEED, weight, LAPTOP.width(RECIPE)))


def losses_of(workshop: Workshop) -> Losses:
    """Return the losses of both networks."""
    return {
        str(weight): {
            name: part_scores(
                trained(workshop, weight),
                workshop.gram(SEED, name),
                workshop.parts[name].X,
            )
            for name in ("validation", "test")
        }
        for weight in ALIGNMENT_WEIGHTS
    }


def denoising_error(workshop: Workshop) -> float:
    """Return the mean squared error of dkAE + PCA on the digits of Table 2, as in the study."""
    task = make_task(workshop, PAIR, SEED)
    model = code_pca(trained(workshop, ALIGNMENT_WEIGHTS[0]), task.train, N_COMPONENTS)
    return reconstruction_error(task.clean, there_and_back(model)(task.noisy))


def of_the_study() -> tuple[Losses, float]:
    """Return the losses and the error that the study has."""
    denoising = _read_study(f"denoising-{RECIPE}-clean")[PAIR]
    losses = {str(w): _read_study(f"lambda-{RECIPE}-{w}") for w in ALIGNMENT_WEIGHTS}
    return losses, denoising["dkAE + PCA"]["mse"]


def summary(losses: Losses, denoising: float) -> dict[str, Any]:
    """Return all numbers of a variant, first how much the losses grow from λ = 0.1 to 0.9."""
    first, last = (losses[str(weight)]["validation"] for weight in ALIGNMENT_WEIGHTS)
    curve = np.array(_read_study(f"kernel-pca-{RECIPE}")["out_of_sample"])
    return {
        "growth_of_L_r": round(last["reconstruction_mse"] / first["reconstruction_mse"], 3),
        "growth_of_L_c": round(last["alignment_loss"] / first["alignment_loss"], 3),
        "crossing_at_0.1": crossing(curve, losses["0.1"]["test"]["alignment_loss"]),
        "denoising_at_0.1": round(denoising, 5),
        "losses": losses,
    }


def _read_study(name: str) -> Any:
    return json.loads((RUNS / "laptop" / f"{name}-seed{SEED}.json").read_text())["scores"]


def main() -> None:
    """Train the variants, and write the table."""
    cache = RUNS / "flat-middle" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    result = {"the study": summary(*of_the_study())}
    for name, changes in VARIANTS.items():
        study = variant(changes)
        workshop = Workshop(study, study.scales[0], cache)
        result[name] = summary(losses_of(workshop), denoising_error(workshop))
    text = json.dumps(result, indent=1)
    print(text)
    RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
