"""What a training step spends on memory: gradients added in place, and pages that are kept.

Two networks of the paper's size are trained at once, one on each core, as ``dkae reproduce`` does.
As it was: autograd adds the two gradients of a tied weight into a new array, because one of them is
a transposed view, and threads give freed memory back to the system. Then without the first, and
without both, as it is now. Each in a process of its own, in turn, the median of five; seconds of
the processor count, because other tenants of the machine do not change them much. Two minutes on
two cores. Writes ``results/step_memory.json``.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from typing import Any

import torch
from dkae_study.declaration import Scale
from dkae_study.engine.allocation import keep_freed_memory
from dkae_study.paper import LAPTOP, PAPER
from measuring import make_parser, save
from torch import Tensor
from torch.nn import functional as F
from training_step import step_of

from dkae._support.threads import in_threads
from dkae.networks import ACTIVATIONS, Layer
from dkae.training import Batch

VARIANTS = ("as it was", "added in place", "added in place, memory kept")
REPEATS = 5
N_STEPS = 40


def decode_with_a_view(self: Layer, h: Tensor) -> Tensor:
    """Decode as the layer did before: the transposed weight keeps autograd from adding in place."""
    return ACTIVATIONS[self.output_activation](F.linear(h, self.weight.T, self.decoder_bias))


def measure(variant: str, scale: Scale) -> dict[str, float]:
    """Return what a step costs in this process, networks of both recipes at once."""
    if variant == VARIANTS[0]:
        Layer.decode = decode_with_a_view  # type: ignore[method-assign]
    if variant == VARIANTS[2]:
        keep_freed_memory()

    def train(recipe: str) -> None:
        x = torch.rand(scale.batch_size, PAPER.data.n_features)
        step = step_of(recipe, Batch(x, x, torch.eye(len(x))), scale)
        for _ in range(N_STEPS):
            step()

    before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    names = list(PAPER.recipe_names)
    list(in_threads(train, names, torch.device("cpu")))
    after, n_steps = resource.getrusage(resource.RUSAGE_SELF), N_STEPS * len(names)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "milliseconds of a core": 1e3 * processor / n_steps,
        "milliseconds": 1e3 * (time.perf_counter() - start) / N_STEPS,
        "page faults": (after.ru_minflt - before.ru_minflt) / n_steps,
    }


def in_a_process(variant: str, scale: str) -> dict[str, float]:
    """Return what `measure` returns in a new process."""
    command = [sys.executable, __file__, "--variant", variant, "--scale", scale]
    result: dict[str, float] = json.loads(subprocess.check_output(command))
    return result


def main() -> None:
    """Measure all variants in turn, and write the medians; or one, with ``--variant``."""
    parser = make_parser("step_memory", __doc__)
    parser.add_argument("--variant", choices=VARIANTS)
    scales = {scale.name: scale for scale in PAPER.scales}
    parser.add_argument("--scale", choices=scales, default=LAPTOP.name)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    given = parser.parse_args()
    if given.variant:
        print(json.dumps(measure(given.variant, scales[given.scale])))
        return
    runs: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    for _ in range(given.repeats):
        for variant, results in runs.items():
            results.append(in_a_process(variant, given.scale))
    table: dict[str, dict[str, Any]] = {
        variant: {
            name: round(statistics.median(result[name] for result in results), 1)
            for name in results[0]
        }
        for variant, results in runs.items()
    }
    print(json.dumps(table, indent=1))
    save(given.results, table)


if __name__ == "__main__":
    main()
