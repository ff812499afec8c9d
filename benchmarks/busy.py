"""A machine that others use too: what a fit and `transform` cost beside two busy processes.

The threads of OpenMP wait for each other at the end of every operation. By default they spin
meanwhile, on cores that other programs need. `import dkae` shortens the spin, unless the user has
decided (see `dkae._support.threads`).

Two maps are fitted to 14,000 digits of MNIST, the autoencoder in 300 steps, and transform 3,000 ten
times, in a process of their own: with one
quiet thread, with the default on an idle machine, and with the default beside two
processes that compute without end. ``--long-spin`` adds OpenMP's own default, for comparison. All
cases run in turn, and the best of ``--repeats`` counts.

Prints ratios of CPU and wall time to those of one quiet thread, with a verdict: at most 1.3 times
its CPU. Writes ``results/busy.json``. Three minutes on two cores, which should be idle.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "busy.json"
#: At most so many times the CPU time of one quiet thread.
MAX_CPU = 1.3
N_BUSY, N_TRANSFORMS = 2, 10
#: Variables with which a user decides how threads wait.
DECISIONS = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS")
#: Variables of each case, and its number of busy processes.
CASES: dict[str, tuple[dict[str, str], int]] = {
    "one quiet thread": ({"OMP_NUM_THREADS": "1"}, 0),
    "alone": ({}, 0),
    "beside two": ({}, N_BUSY),
    "beside two, one thread": ({"OMP_NUM_THREADS": "1"}, N_BUSY),
}
#: What OpenMP does by itself; it may take minutes.
LONG_SPIN = {"beside two, long spin": ({"GOMP_SPINCOUNT": "300000"}, N_BUSY)}


def measure(n_steps: int) -> dict[str, dict[str, float]]:
    """Return CPU and wall time of the fits and transforms, in this process."""
    import dkae  # first, because it sets how threads wait

    maps: dict[str, Any] = {
        "autoencoder": dkae.DeepKernelizedAutoencoder(
            128, max_iter=3, decoder_max_iter=1, steps_per_epoch=n_steps, random_state=0
        ),
        "nystroem": dkae.InvertibleNystroem(128, decoder="ridge", random_state=0),
    }
    mnist = dkae.datasets.load_mnist20k(scaled=True)
    rows, others = mnist.data[mnist.train], mnist.data[mnist.test]

    def transform(model: Any) -> None:
        for _ in range(N_TRANSFORMS):
            model.transform(others)

    times = {}
    for name, model in maps.items():
        times[f"{name}, fit"] = timed(partial(model.fit, rows))
        times[f"{name}, transform"] = timed(partial(transform, model))
    return times


def timed(work: Callable[[], object]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def spin(parent: int) -> None:
    while os.getppid() == parent:
        sum(range(10_000))


@contextmanager
def busy(n: int) -> Iterator[None]:
    """Let `n` processes compute meanwhile."""
    others = [multiprocessing.Process(target=spin, args=(os.getpid(),)) for _ in range(n)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.terminate()
            other.join()


def run(variables: dict[str, str], n_busy: int, n_steps: int) -> dict[str, dict[str, float]]:
    """Return the times of the work in a new process with these variables."""
    kept = {name: value for name, value in os.environ.items() if name not in DECISIONS}
    with busy(n_busy):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", __file__, "--measure", "--steps", str(n_steps)],
            env=kept | variables, check=True, capture_output=True, text=True,
        )  # fmt: skip
    times: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return times


def best_of(runs: list[dict[str, Any]], case: str, work: str) -> dict[str, float]:
    return {kind: min(run[case][work][kind] for run in runs) for kind in ("wall", "cpu")}


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--measure", action="store_true")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--steps", type=int, default=75, help="of each of four epochs")
    parser.add_argument("--long-spin", action="store_true", help="also OpenMP's own default")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.steps)))
        return
    cases = CASES | (LONG_SPIN if arguments.long_spin else {})
    runs = [
        {name: run(*case, arguments.steps) for name, case in cases.items()}
        for _ in range(arguments.repeats)
    ]
    found: dict[str, Any] = {}
    for work in runs[0]["alone"]:
        quiet = best_of(runs, "one quiet thread", work)
        seconds = {name: best_of(runs, name, work) for name in cases}
        ratios = {name: {kind: round(times[kind] / quiet[kind], 2) for kind in quiet}
                  for name, times in seconds.items()}  # fmt: skip
        cpu = ratios["beside two"]["cpu"]
        found[work] = {"seconds": seconds, "ratios": ratios, "holds": cpu <= MAX_CPU}
        print(f"{work}: {json.dumps(ratios, indent=1)}")
        verdict = "holds" if cpu <= MAX_CPU else "FAILS"
        print(
            f"{work} beside two: {cpu} times the CPU of one quiet thread (≤ {MAX_CPU}): {verdict}"
        )
    arguments.results.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
