"""Why the reconstruction error grows with λ: too few steps, or the tied weights.

The paper finds both losses nearly constant for λ from 0.1 to 0.9 (Fig. 3a); the scale laptop does
not. Here are the networks of both ends with three times the steps, and with a decoder that has
weights of its own, beside those in ``results/laptop``; and where kernel PCA gets better than that
of λ = 0.1 (Fig. 5). One seed. Arguments are the recipes (all): for each four networks, on one core
about half an hour for one with more steps, ten minutes for the others. Goes on where it was
stopped. Writes ``results/flat_middle.json``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dkae.experiments.approximation import crossing
from dkae.experiments.scales import SCALES, Scale
from dkae.experiments.scoring import part_scores
from dkae.experiments.workshop import Network, Workshop

RESULTS = Path(__file__).parent / "results" / "flat_middle.json"
STUDY = Path(__file__).parents[1] / "results"
LAPTOP = SCALES["laptop"]
#: What is trained differently than in the study, for each recipe.
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "6,000 steps": {"paper": {"epoch": 60}, "default": {"epoch": 300}},
    "not tied": {name: {"tied_weights": False} for name in LAPTOP.schedules},
}
ALIGNMENT_WEIGHTS = (0.1, 0.9)
SEED = 0

#: Both losses for each λ and part of the data.
Scores = dict[str, dict[str, dict[str, float]]]


def variant(changes: dict[str, dict[str, Any]]) -> Scale:
    """Return the scale laptop with other schedules."""
    schedules = {name: {**LAPTOP.schedules[name], **new} for name, new in changes.items()}
    return replace(LAPTOP, name="flat-middle", schedules=schedules)


def scores_of(workshop: Workshop, recipe: str) -> Scores:
    """Train the networks, or take them from the cache, and measure them."""
    kernel, parts = workshop.kernel(SEED), workshop.parts
    scores = {}
    for weight in ALIGNMENT_WEIGHTS:
        model = workshop.train(Network(recipe, SEED, weight, LAPTOP.n_components))
        scores[str(weight)] = {
            name: part_scores(model, kernel, parts[name].X) for name in ("validation", "test")
        }
    return scores


def scores_of_the_study(recipe: str) -> Scores:
    """Return what the study has."""
    return {str(w): _read_study(f"lambda-{recipe}-{w}") for w in ALIGNMENT_WEIGHTS}


def summary(scores: Scores, recipe: str) -> dict[str, Any]:
    """Return how much the losses grow from λ = 0.1 to 0.9, and where kernel PCA gets better."""
    first, last = (scores[str(weight)]["validation"] for weight in ALIGNMENT_WEIGHTS)
    curve = np.array(_read_study(f"kernel-pca-{recipe}")["out_of_sample"])
    return {
        "growth_of_L_r": round(last["reconstruction_mse"] / first["reconstruction_mse"], 3),
        "growth_of_L_c": round(last["alignment_loss"] / first["alignment_loss"], 3),
        "crossing_at_0.1": crossing(curve, scores["0.1"]["test"]["alignment_loss"]),
    }


def _read_study(name: str) -> Any:
    return json.loads((STUDY / "laptop" / f"{name}-seed{SEED}.json").read_text())["scores"]


def main(recipes: list[str]) -> None:
    """Run the recipes that are named, or all."""
    cache = STUDY / "flat-middle" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    workshops = {name: Workshop(variant(changes), cache) for name, changes in VARIANTS.items()}
    for recipe in recipes or list(LAPTOP.schedules):
        found = {"the study": scores_of_the_study(recipe)}
        for name, workshop in workshops.items():
            found[name] = scores_of(workshop, recipe)
        result = {
            name: {"scores": scores, **summary(scores, recipe)} for name, scores in found.items()
        }
        print(f"{recipe}:", json.dumps(result, indent=1))
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(known | {recipe: result}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
