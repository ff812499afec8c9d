"""Does the flat middle of Fig. 3a come with more training? λ = 0.1 and 0.9, three times the steps.

The paper finds both losses nearly constant between these two; the scale laptop does not. Trains
the same networks with 6,000 steps of fine-tuning in place of 2,000 (and of each pretrained layer
1,800 in place of 600), and prints the validation losses beside those in ``results/laptop``. Two
networks for each recipe that is named, about half an hour each on one core; goes on where it was
stopped. Writes ``results/longer_training.json``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from dkae.experiments.scales import SCALES
from dkae.experiments.scoring import part_scores
from dkae.experiments.workshop import Network, Workshop

RESULTS = Path(__file__).parent / "results" / "longer_training.json"
STUDY = Path(__file__).parents[1] / "results"
LONGER = replace(
    SCALES["laptop"],
    name="longer",
    schedules={"paper": {"epoch": 60}, "default": {"epoch": 300, "max_iter": 20}},
)
ALIGNMENT_WEIGHTS = (0.1, 0.9)
LOSSES = ("reconstruction_mse", "alignment_loss")


def longer_losses(workshop: Workshop, recipe: str) -> dict[str, dict[str, float]]:
    """Train the networks and return the validation losses for each λ."""
    kernel, X = workshop.kernel(0), workshop.parts["validation"].X
    losses = {}
    for weight in ALIGNMENT_WEIGHTS:
        model = workshop.train(Network(recipe, 0, weight, LONGER.n_components))
        losses[str(weight)] = part_scores(model, kernel, X)
    return losses


def laptop_losses(recipe: str) -> dict[str, dict[str, float]]:
    """Return what the study has for each λ."""
    files = {w: STUDY / "laptop" / f"lambda-{recipe}-{w}-seed0.json" for w in ALIGNMENT_WEIGHTS}
    return {str(w): json.loads(f.read_text())["scores"]["validation"] for w, f in files.items()}


def growth(losses: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return each loss at λ = 0.9 as a multiple of that at 0.1."""
    first, last = (losses[str(weight)] for weight in ALIGNMENT_WEIGHTS)
    return {name: round(last[name] / first[name], 3) for name in LOSSES}


def main(recipes: list[str]) -> None:
    """Run the recipes that are named, or all."""
    cache = STUDY / "longer" / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    workshop = Workshop(LONGER, cache)
    for recipe in recipes or list(LONGER.schedules):
        lengths = {"2000": laptop_losses(recipe), "6000": longer_losses(workshop, recipe)}
        result: dict[str, Any] = {n: {"losses": v, "growth": growth(v)} for n, v in lengths.items()}
        for n, v in result.items():
            values = {w: [round(x[name], 4) for name in LOSSES] for w, x in v["losses"].items()}
            print(f"{recipe}, {n} steps: L_r and L_c for each λ {values}, growth {v['growth']}")
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(known | {recipe: result}, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
