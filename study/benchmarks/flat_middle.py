"""Why the reconstruction error grows with λ: too few steps, or what the two maps share.

The paper finds both losses nearly constant for λ from 0.1 to 0.9 (Fig. 3a); the scale laptop does
not. Beside the networks in ``results/laptop`` here are those of both ends without the last phase of
the default recipe, in which the decoder learns alone; and without it with three times the steps,
and with a decoder that has weights of its own from the start. Of those with λ = 0.1 also where
kernel PCA gets better (Fig. 5), and how they denoise (Table 2). One seed. Arguments are the recipes
(all): for each up to six networks, on one core about half an hour for one with more steps, ten
minutes for the others. Goes on where it was stopped. Writes ``results/flat_middle.json``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from dkae_study.declaration import NetworkSpec, Study
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.denoisers import (
    DIGITS,
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
TOGETHER = {"decoder_max_iter": 0}
#: What is trained differently than in the study, for each recipe.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "decoder not alone": {"default": TOGETHER},
    "decoder not alone, 6,000 steps": {
        "paper": {"steps_per_epoch": 60},
        "default": TOGETHER | {"steps_per_epoch": 300},
    },
    "decoder not alone, not tied": {
        "paper": {"tied_weights": False},
        "default": TOGETHER | {"tied_weights": False},
    },
}
ALIGNMENT_WEIGHTS = (0.1, 0.9)
SEED = 0

#: Both losses for each λ and part of the data.
Losses = dict[str, dict[str, dict[str, float]]]


def variant(changes: dict[str, dict[str, Any]]) -> Study:
    """Return the study at the scale laptop alone, with other schedules."""
    schedules = {name: {**old, **changes.get(name, {})} for name, old in LAPTOP.schedules.items()}
    return replace(PAPER, scales=(replace(LAPTOP, name="flat-middle", schedules=schedules),))


def trained(workshop: Workshop, recipe: str, weight: float) -> DeepKernelizedAutoencoder:
    """Train a network, or take it from the cache."""
    return workshop.train(NetworkSpec(recipe, SEED, weight, LAPTOP.n_components))


def losses_of(workshop: Workshop, recipe: str) -> Losses:
    """Return the losses of both networks."""
    return {
        str(weight): {
            name: part_scores(
                trained(workshop, recipe, weight),
                workshop.gram(SEED, name),
                workshop.parts[name].X,
            )
            for name in ("validation", "test")
        }
        for weight in ALIGNMENT_WEIGHTS
    }


def denoising_error(workshop: Workshop, recipe: str) -> float:
    """Return the mean squared error of dkAE + PCA on the digits of Table 2, as in the study."""
    task = make_task(workshop, DIGITS[PAIR], SEED)
    model = code_pca(trained(workshop, recipe, ALIGNMENT_WEIGHTS[0]), task.train, N_COMPONENTS)
    return reconstruction_error(task.clean, there_and_back(model)(task.noisy))


def of_the_study(recipe: str) -> tuple[Losses, float]:
    """Return the losses and the error that the study has."""
    denoising = _read_study(f"denoising-{recipe}-clean")[PAIR]
    losses = {str(w): _read_study(f"lambda-{recipe}-{w}") for w in ALIGNMENT_WEIGHTS}
    return losses, denoising["dkAE + PCA"]["mse"]


def summary(losses: Losses, denoising: float, recipe: str) -> dict[str, Any]:
    """Return all numbers of a variant, first how much the losses grow from λ = 0.1 to 0.9."""
    first, last = (losses[str(weight)]["validation"] for weight in ALIGNMENT_WEIGHTS)
    curve = np.array(_read_study(f"kernel-pca-{recipe}")["out_of_sample"])
    return {
        "growth_of_L_r": round(last["reconstruction_mse"] / first["reconstruction_mse"], 3),
        "growth_of_L_c": round(last["alignment_loss"] / first["alignment_loss"], 3),
        "crossing_at_0.1": crossing(curve, losses["0.1"]["test"]["alignment_loss"]),
        "denoising_at_0.1": round(denoising, 5),
        "losses": losses,
    }


def _read_study(name: str) -> Any:
    return json.loads((RUNS / "laptop" / f"{name}-seed{SEED}.json").read_text())["scores"]


def main(recipes: list[str]) -> None:
    """Run the recipes that are named, or all."""
    cache = RUNS / "flat-middle" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    for recipe in recipes or PAPER.recipe_names:
        result = {"the study": summary(*of_the_study(recipe), recipe)}
        for name, changes in VARIANTS.items():
            if recipe not in changes:
                continue
            study = variant(changes)
            workshop = Workshop(study, study.scales[0], cache)
            found = losses_of(workshop, recipe), denoising_error(workshop, recipe)
            result[name] = summary(*found, recipe)
        print(f"{recipe}:", json.dumps(result, indent=1))
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(known | {recipe: result}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
