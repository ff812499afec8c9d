"""From which rows the 32 components of Table 2 come: those of the two digits, or all.

The paper denoises the digits 5 and 6 and says that "both models are fitted on the training set",
which may be that of the two digits or all of it. The study fits components and pre-image to the two
digits. Here are both, on the test rows of 5 and 6 with the study's noise, three seeds. Networks are
taken from the cache of ``results/laptop``, or trained: on two cores ten to fifteen minutes a seed.
Writes ``results/rows_of_components.json``: the mean squared error to the clean images, by seed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dkae_study.declaration import NetworkSpec
from dkae_study.engine.allocation import keep_freed_memory
from dkae_study.engine.trainers import threads_for
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.denoisers import (
    ALPHA,
    DIGITS,
    N_COMPONENTS,
    PAIR,
    Denoiser,
    kernel_pca,
    make_task,
    there_and_back,
)
from dkae_study.paper import LAPTOP, PAPER
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from dkae.codespace import code_pca
from dkae.metrics import reconstruction_error

RESULTS = Path(__file__).parent / "results" / "rows_of_components.json"
CACHE = Path(__file__).parents[1] / "results" / "laptop" / "cache"
SEEDS = (0, 1, 2)


def networks_of(seed: int) -> list[NetworkSpec]:
    """Return dkAE as the study has it, one for each recipe."""
    return [NetworkSpec(recipe, seed, 0.1, LAPTOP.n_components) for recipe in PAPER.recipe_names]


def methods(workshop: Workshop, rows: NDArray[Any], seed: int) -> Iterator[tuple[str, Denoiser]]:
    """Yield the ways to denoise whose components come from the rows."""
    yield "linear PCA", there_and_back(PCA(N_COMPONENTS, random_state=seed).fit(rows))
    yield "kernel PCA, PCK", kernel_pca(rows, workshop.kernel(seed).on(rows), seed, ALPHA)
    for network in networks_of(seed):
        model = code_pca(workshop.train(network), rows, N_COMPONENTS)
        yield f"dkAE + PCA, {network.recipe}", there_and_back(model)


def main() -> None:
    """Train what is missing, one network on each core, and write the table."""
    keep_freed_memory()
    CACHE.mkdir(parents=True, exist_ok=True)
    workshop = Workshop(PAPER, LAPTOP, CACHE)
    errors: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for seed in SEEDS:
        with threads_for(len(PAPER.recipes)) as pool:
            list(pool.map(workshop.train, networks_of(seed)))
        task = make_task(workshop, DIGITS[PAIR], seed)
        sources = {f"of {PAIR}": task.train, "of all digits": workshop.parts["train"].X}
        for source, rows in sources.items():
            for name, denoise in methods(workshop, rows, seed):
                error = reconstruction_error(task.clean, denoise(task.noisy))
                errors[source][name].append(round(error, 5))
    print(json.dumps(errors, indent=1))
    RESULTS.write_text(json.dumps(errors, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
