"""A training step of the paper's network against its bare matrix products, and what follows.

All in one run, in turn, the median of twenty: a step, its matrix products alone, and the block of
the prior that comes with its batch where λ > 0. Then the hours of training of this recipe at the
scale laptop with such steps and blocks (without measuring), also if its batches were smaller, and
the speed at which it takes two hours. Freed memory is kept as in ``dkae reproduce``. Two minutes
on two cores. Writes ``results/training_step.json``, where other processors keep what they have.
"""

from __future__ import annotations

import json
import math
import statistics
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Barrier
from typing import Any

import numpy as np
import torch
from dkae_study.declaration import Scale
from dkae_study.engine.allocation import keep_freed_memory
from dkae_study.engine.cost import step_operations
from dkae_study.engine.plan import make_plan
from dkae_study.engine.provenance import machine
from dkae_study.paper import LAPTOP, PAPER
from measuring import make_parser, save, timed

from dkae._support.threads import in_threads
from dkae.alignment import MEASURES
from dkae.grams import Gram, MatrixGram
from dkae.statistics import Statistics
from dkae.training import (
    DECODER,
    FINE_TUNING,
    Batch,
    BatchSource,
    Phase,
    Trainer,
)
from dkae.training.batches import Prefetching

REPEATS = 20
RECIPE = "paper"
#: Batches of fewer rows than the paper's.
SMALLER = (128, 100)


def sizes_of(scale: Scale) -> list[int]:
    """Return d, the hidden widths, and N_c."""
    return [PAPER.data.n_features, *scale.hidden_layer_sizes, scale.n_components]


def step_of(recipe: str, batch: Batch, scale: Scale = LAPTOP) -> Callable[[], Any]:
    """Return one training step of a recipe's network on a batch."""
    X = batch.inputs.numpy()
    gram = MatrixGram(np.eye(len(X), dtype=np.float32))
    trainer, phase = trainer_of(recipe, X, gram, scale)
    return lambda: trainer.train_step(phase, batch)


def steps_with_batches(prior: Gram, scale: Scale) -> dict[str, Callable[[], Any]]:
    """Return steps that draw their batches, with the block of the prior: in time, and ahead."""
    X = PAPER.parts(scale)["train"].X
    steps = {}
    for name in ("fetched in time", "fetched ahead"):
        trainer, phase = trainer_of(RECIPE, X, prior, scale)
        source = trainer.source if name == "fetched in time" else Prefetching(trainer.source)
        steps[name] = partial(_draw_and_step, trainer, phase, source)
    return steps


def _draw_and_step(trainer: Trainer, phase: Phase, source: Any) -> None:
    trainer.train_step(phase, source.draw(True, 0.0))


def trainer_of(recipe: str, X: Any, gram: Gram, scale: Scale) -> tuple[Trainer, Phase]:
    """Return a trainer that is ready for steps of end-to-end training."""
    model = PAPER.estimator(scale, recipe).set_params(optimization__max_grad_norm=None)
    generator = torch.Generator().manual_seed(0)
    network = model.network.build(Statistics.of(X), model.n_components, generator)
    rng, cpu = np.random.default_rng(0), torch.device("cpu")
    everyone, nobody = np.arange(len(X)), np.arange(0)
    source = BatchSource(X, gram, everyone, nobody, model.batch_size, "samples", rng, cpu)
    measure = MEASURES[model.alignment]
    trainer = Trainer(network, measure, source, [], model.optimization, cpu)
    trainer.parameters = list(network.parameters())
    trainer.optimizer, trainer.schedule = model.optimization.start(trainer.parameters, 1.0, 10_000)
    weight = model.alignment_weight
    return trainer, Phase(FINE_TUNING, network.train(), network.parameters, 1, weight)


def products(k: int, scale: Scale) -> tuple[Callable[[], Any], float]:
    """Return the products of a step with k rows, and how many operations they are.

    Of each layer one up and one down, and two gradients of each, but none for the input; and the
    Gram matrix of the codes, with two gradients.
    """
    sizes = sizes_of(scale)
    shapes = list(pairwise(sizes))
    weights = [torch.rand(shape) for shape in shapes]
    rows = [[torch.rand(k, width) for width in shape] for shape in shapes]
    codes, gram = rows[-1][1], torch.rand(k, k)

    def multiply() -> None:
        for i, (w, (below, above)) in enumerate(zip(weights, rows, strict=True)):
            _ = below @ w, below @ w, above @ w.T, below.T @ above, below.T @ above
            if i > 0:
                _ = above @ w.T
        _ = codes @ codes.T, gram @ codes, gram @ codes

    n_operations = step_operations(sizes, k) - 2 * k * math.prod(shapes[0])
    return multiply, n_operations + 6 * codes.numel() * k


def median_seconds(work: dict[str, Callable[[], Any]], together: Barrier) -> dict[str, float]:
    """Return the median time of each, measured in turn, all threads at the same time."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(REPEATS):
        for name, run in work.items():
            together.wait()
            seconds[name].append(timed(run)[0])
    return {name: statistics.median(times) for name, times in seconds.items()}


def make_prior(scale: Scale) -> Gram:
    """Return the study's prior for the training rows."""
    X = PAPER.parts(scale)["train"].X
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge", category=UserWarning)
        return PAPER.kernel(**scale.kernel, random_state=0).fit(X).on(X)


def blocks_of(prior: Gram, k: int) -> Callable[[], Any]:
    """Return what computes the block of another k rows each time."""
    rng = np.random.default_rng(0)
    return lambda: prior.block(rng.choice(len(prior), k, replace=False))


def work_of(scale: Scale) -> tuple[float, int]:
    """Return the operations of all that the scale trains, and the blocks of its priors."""
    with TemporaryDirectory() as empty:
        plan = make_plan(PAPER, scale, Path(empty), recipes=[RECIPE])
    n_blocks = sum(
        n_steps
        for network in plan.networks
        if network.estimator.alignment_weight > 0
        for name, (n_steps, _) in network.phases.items()
        if name != DECODER
    )
    return plan.operations, n_blocks


def time_parts(n_networks: int, k: int, prior: Gram, scale: Scale) -> dict[str, float]:
    """Return the seconds of a step and its parts, each network on its share of the cores."""
    together = Barrier(n_networks)

    def work(_: int) -> dict[str, float]:
        x = torch.rand(k, PAPER.data.n_features)
        batch = Batch(x, x, torch.eye(len(x)))
        steps = {RECIPE: step_of(RECIPE, batch, scale)}
        parts = {"products": products(k, scale)[0], "block of the prior": blocks_of(prior, k)}
        return median_seconds(steps | parts, together)

    each = list(in_threads(work, range(n_networks), torch.device("cpu")))
    return {name: sum(seconds[name] for seconds in each) / n_networks for name in each[0]}


def whole_steps(prior: Gram, k: int, scale: Scale) -> dict[str, float]:
    """Return whole steps, batch and block included, as multiples of their matrix products."""
    work = {"products": products(k, scale)[0], **steps_with_batches(prior, scale)}
    seconds = median_seconds(work, Barrier(1))
    return {
        name: round(time / seconds["products"], 3)
        for name, time in seconds.items()
        if name != "products"
    }


def main() -> None:
    """Time the steps of one network on all cores and of one on each, and what follows."""
    parser = make_parser("training_step", __doc__)
    names = [scale.name for scale in PAPER.scales]
    parser.add_argument("--scale", choices=names, default=LAPTOP.name)
    given = parser.parse_args()
    keep_freed_memory()
    (scale,) = [scale for scale in PAPER.scales if scale.name == given.scale]
    prior = make_prior(scale)
    (total, n_blocks), k, n_cores = work_of(scale), scale.batch_size, torch.get_num_threads()
    n_steps = total / step_operations(sizes_of(scale), k)  # if all were of this size
    results: dict[str, Any] = {}
    cases = [(1, k), *((n_cores, n_rows) for n_rows in (k, *SMALLER))]
    for n_networks, n_rows in dict.fromkeys(cases):
        seconds = time_parts(n_networks, n_rows, prior, scale)
        operations = products(n_rows, scale)[1]
        step = seconds[RECIPE]
        results[f"{n_networks} at once, {n_rows} rows"] = {
            "milliseconds": {name: round(1e3 * s, 1) for name, s in seconds.items()},
            "share_of_products_in_a_step": round(seconds["products"] / step, 3),
            "share_of_the_block_beside_a_step": round(seconds["block of the prior"] / step, 3),
            "gigaflops_of_products": round(n_networks * operations / seconds["products"] / 1e9),
            "hours_of_the_laptop_scale": round(
                (n_steps * step + n_blocks * seconds["block of the prior"]) / n_networks / 3600, 2
            ),
        }
    results["with_batches"] = whole_steps(prior, k, scale)
    results["operations_of_the_laptop_scale"] = total
    results["gigaflops_of_a_step_for_two_hours"] = round(total / 7200e9)
    print(json.dumps(results, indent=1))
    known = json.loads(given.results.read_text()) if given.results.exists() else {}
    save(given.results, known | {f"{machine()['processor']}, {n_cores} cores": results})


if __name__ == "__main__":
    main()
