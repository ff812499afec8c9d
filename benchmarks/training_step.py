"""A training step of the paper's network against its bare matrix products, and what follows.

All in one run, in turn, the median of twenty: a step, its matrix products alone, and the block of
the prior that comes with its batch where λ > 0. Then the hours of training of this recipe at the
scale laptop with such steps and blocks (without measuring), also if its batches were smaller, and
the speed at which it takes two hours. Freed memory is kept as in ``dkae reproduce``. Half a minute
on two cores. Writes ``results/training_step.json``, where other processors keep what they have.
"""

from __future__ import annotations

import json
import math
import statistics
import time
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
from dkae.training.building import build
from dkae_study.engine.allocation import keep_freed_memory
from dkae_study.engine.cost import step_operations
from dkae_study.engine.plan import make_plan
from dkae_study.engine.provenance import machine
from dkae_study.paper import LAPTOP, PAPER

from dkae._support.threads import in_threads
from dkae.grams import Gram, MatrixGram
from dkae.training import DECODER, FINE_TUNING, Batch
from dkae.training.prefetch import Prefetching
from dkae.training.run import Training
from dkae.training.settings import Settings

RESULTS = Path(__file__).parent / "results" / "training_step.json"
SIZES = [PAPER.data.n_features, *LAPTOP.hidden_layer_sizes, LAPTOP.n_components]
REPEATS = 20
RECIPE = "paper"
#: Batches of fewer rows than the paper's.
SMALLER = (128, 100)


def step_of(recipe: str, batch: Batch) -> Callable[[], Any]:
    """Return one training step of a recipe's network on a batch."""
    X = batch.inputs.numpy()
    trainer, phase = trainer_of(recipe, X, MatrixGram(np.eye(len(X), dtype=np.float32)))
    return lambda: trainer.train_step(phase, batch)


def steps_with_batches(prior: Gram, **params: Any) -> dict[str, Callable[[], Any]]:
    """Return steps that draw their batches, with the block of the prior: in time, and ahead."""
    X = PAPER.parts(LAPTOP)["train"].X
    steps = {}
    for name in ("fetched in time", "fetched ahead"):
        trainer, phase = trainer_of(RECIPE, X, prior, **params)
        source = trainer.source if name == "fetched in time" else Prefetching(trainer.source)
        steps[name] = partial(_draw_and_step, trainer, phase, source)
    return steps


def _draw_and_step(trainer: Any, phase: Any, source: Any) -> None:
    trainer.train_step(phase, source.draw(True, 0.0))


def trainer_of(recipe: str, X: Any, gram: Gram, **params: Any) -> tuple[Any, Any]:
    """Return a trainer that is ready for steps of end-to-end training."""
    model = PAPER.estimator(LAPTOP, recipe).set_params(**params)
    training = Training(
        build(model, X, None, 0).maps, X, gram, Settings.of(model), rng=np.random.default_rng(0)
    )
    trainer = training.trainer
    phase = next(phase for phase in training.phases if phase.name == FINE_TUNING)
    trainer.parameters = list(phase.parameters())
    n_steps = phase.n_epochs * trainer.n_steps
    trainer.optimizer, trainer.schedule = trainer.optimization.start(
        trainer.parameters, phase.learning_rate_factor, n_steps
    )
    trainer.engine.begin(phase.network, phase.alignment_weight)
    return trainer, phase


def products(k: int) -> tuple[Callable[[], Any], float]:
    """Return the products of a step with k rows, and how many operations they are.

    Of each layer one up and one down, and two gradients of each, but none for the input; and the
    Gram matrix of the codes, with two gradients.
    """
    shapes = list(pairwise(SIZES))
    weights = [torch.rand(shape) for shape in shapes]
    rows = [[torch.rand(k, width) for width in shape] for shape in shapes]
    codes, gram = rows[-1][1], torch.rand(k, k)

    def multiply() -> None:
        for i, (w, (below, above)) in enumerate(zip(weights, rows, strict=True)):
            _ = below @ w, below @ w, above @ w.T, below.T @ above, below.T @ above
            if i > 0:
                _ = above @ w.T
        _ = codes @ codes.T, gram @ codes, gram @ codes

    return multiply, step_operations(SIZES, k) - 2 * k * math.prod(
        shapes[0]
    ) + 6 * codes.numel() * k


def median_seconds(work: dict[str, Callable[[], Any]], together: Barrier) -> dict[str, float]:
    """Return the median time of each, measured in turn, all threads at the same time."""
    seconds: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(REPEATS):
        for name, run in work.items():
            together.wait()
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in seconds.items()}


def make_prior() -> Gram:
    """Return the study's prior for the training rows."""
    X = PAPER.parts(LAPTOP)["train"].X
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*did not converge", category=UserWarning)
        return PAPER.kernel(**LAPTOP.kernel, random_state=0).fit(X).on(X)


def blocks_of(prior: Gram, k: int) -> Callable[[], Any]:
    """Return what computes the block of another k rows each time."""
    rng = np.random.default_rng(0)
    return lambda: prior.block(rng.choice(len(prior), k, replace=False))


def laptop_work() -> tuple[float, int]:
    """Return the operations of all that the scale laptop trains, and the blocks of its priors."""
    with TemporaryDirectory() as empty:
        plan = make_plan(PAPER, LAPTOP, Path(empty), recipes=[RECIPE])
    n_blocks = sum(
        n_steps
        for network in plan.networks
        if network.estimator.alignment_weight > 0
        for name, (n_steps, _) in network.phases.items()
        if name != DECODER
    )
    return plan.operations, n_blocks


def timed(n_networks: int, k: int, prior: Gram) -> dict[str, float]:
    """Return the seconds of a step and its parts, each network on its share of the cores."""
    together = Barrier(n_networks)

    def work(_: int) -> dict[str, float]:
        x = torch.rand(k, SIZES[0])
        batch = Batch(x, x, torch.eye(len(x)))
        steps = {RECIPE: step_of(RECIPE, batch)}
        parts = {"products": products(k)[0], "block of the prior": blocks_of(prior, k)}
        return median_seconds(steps | parts, together)

    each = list(in_threads(work, range(n_networks), torch.device("cpu")))
    return {name: sum(seconds[name] for seconds in each) / n_networks for name in each[0]}


def whole_steps(prior: Gram, k: int) -> dict[str, float]:
    """Return whole steps, batch and block included, as multiples of their matrix products."""
    work = {"products": products(k)[0], **steps_with_batches(prior)}
    compiled = steps_with_batches(prior, compile=True)
    work["fetched in time, compiled"] = compiled["fetched in time"]
    work["fetched in time, compiled"]()  # it is translated here
    seconds = median_seconds(work, Barrier(1))
    return {
        name: round(time / seconds["products"], 3)
        for name, time in seconds.items()
        if name != "products"
    }


def main() -> None:
    """Time the steps of one network on all cores and of one on each, and what follows."""
    keep_freed_memory()
    prior = make_prior()
    (total, n_blocks), k, n_cores = laptop_work(), LAPTOP.batch_size, torch.get_num_threads()
    n_steps = total / step_operations(SIZES, k)  # if all were of this size
    results: dict[str, Any] = {}
    cases = [(1, k), *((n_cores, n_rows) for n_rows in (k, *SMALLER))]
    for n_networks, n_rows in dict.fromkeys(cases):
        seconds, (_, operations) = timed(n_networks, n_rows, prior), products(n_rows)
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
    results["with_batches"] = whole_steps(prior, k)
    results["operations_of_the_laptop_scale"] = total
    results["gigaflops_of_a_step_for_two_hours"] = round(total / 7200e9)
    print(json.dumps(results, indent=1))
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    here = f"{machine()['processor']}, {n_cores} cores"
    text = json.dumps(known | {here: results}, indent=1)
    RESULTS.write_text(text + "\n")


if __name__ == "__main__":
    main()
