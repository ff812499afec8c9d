"""Several processes: what a step costs in two of them, and runs in which one of them is killed.

**Steps.** The default stack (784-1000-1000-128 and back) on 14,000 rows of MNIST-20k, RBF kernel,
batches of 200 rows: one process with two threads, and two processes of ``torchrun`` with one thread
each, in turn, three times, the median step of each, the best counts. In addition one process with
one thread and half of the batch, which is what one of two processes computes: the rest of its step
is waiting and talking. From these an estimate for two machines: half of a batch with two threads,
and the same talk; a network between them is slower than the loopback.

**Kills.** Ten fits in two processes with a checkpoint, under ``torchrun --max-restarts``: at a
random moment one of the two, at random, gets SIGKILL. The weights at the end are compared with
those of an unbroken run, to the bit.

Prints ratios with verdicts, and writes ``results/processes.json``. Five minutes on two cores.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from hashlib import blake2b
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from measuring import Clock, make_parser, save, verdict

N_STEPS, REPEATS = 120, 3
N_KILLS = 10
#: Seconds between two checkpoints, where processes are killed.
EVERY = 0.2


# --- what each process does ----------------------------------------------------------------------


def time_steps(folder: Path, n_rows: int, n_steps: int, batch_size: int, threads: int) -> None:
    """Train, and leave the median time of a step."""
    import numpy as np
    import torch

    from dkae import DeepKernelizedAutoencoder
    from dkae.datasets import load_mnist20k

    torch.set_num_threads(threads)
    mnist, clock = load_mnist20k(scaled=True), Clock()
    model = DeepKernelizedAutoencoder(
        128, batch_size=batch_size, max_iter=1, steps_per_epoch=n_steps, decoder_max_iter=0,
        callbacks=[clock], random_state=0,
    )  # fmt: skip
    model.fit(mnist.data[mnist.train][:n_rows])
    if clock.times:  # those of the first process
        step = median(np.diff(clock.times)[n_steps // 6 :].tolist())
        (folder / "step.json").write_text(json.dumps(step))


def train_to_the_end(folder: Path) -> None:
    """Train with a checkpoint, and leave a digest of the weights."""
    import torch
    from sklearn.datasets import load_digits

    import dkae.training.checkpoint
    from dkae import DeepKernelizedAutoencoder
    from dkae.networks import Stack

    torch.set_num_threads(1)
    dkae.training.checkpoint.EVERY_SECONDS = EVERY
    rank = os.environ["RANK"]
    (folder / f"{rank}.pid").write_text(str(os.getpid()))
    model = DeepKernelizedAutoencoder(
        16, network=Stack(hidden_layer_sizes=(64,)), max_iter=8, steps_per_epoch=100,
        decoder_max_iter=2, random_state=0,
    )  # fmt: skip
    model.fit((load_digits().data / 16).astype("float32"), checkpoint=folder / "state")
    weights = [t.numpy().tobytes() for t in model.network_.state_dict().values()]
    digest = blake2b(b"".join(weights), digest_size=16).hexdigest()
    (folder / f"{rank}.digest").write_text(digest)


# --- runs and their results ----------------------------------------------------------------------


def command(n_processes: int, task: str, folder: Path, *options: str) -> list[str]:
    run = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(n_processes)]
    run = [*run, "--max-restarts", "5"] if n_processes > 1 else []
    return [sys.executable, "-W", "ignore", *run, __file__, "--task", task, "--folder", str(folder),
            *options]  # fmt: skip


def environment(threads: int) -> dict[str, str]:
    return os.environ | {
        "OMP_NUM_THREADS": str(threads), "PYTHONWARNINGS": "ignore", "DKAE_TIMEOUT": "60",
    }  # fmt: skip


def step(n_processes: int, batch_size: int, threads: int, n_rows: int, n_steps: int) -> float:
    with TemporaryDirectory() as name:
        folder = Path(name)
        options = [
            "--rows",
            n_rows,
            "--steps",
            n_steps,
            "--batch",
            batch_size,
            "--threads",
            threads,
        ]
        subprocess.run(
            command(n_processes, "steps", folder, *map(str, options)),
            env=environment(threads), check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        return float(json.loads((folder / "step.json").read_text()))


def steps(n_rows: int, n_steps: int, repeats: int) -> dict[str, Any]:
    cases = {
        "one process, two threads": (1, 200, 2),
        "two processes, one thread each": (2, 200, 1),
        "one process, one thread, half a batch": (1, 100, 1),
        "one process, two threads, half a batch": (1, 100, 2),
    }
    runs = [
        {name: step(*case, n_rows, n_steps) for name, case in cases.items()} for _ in range(repeats)
    ]
    best = {name: min(run[name] for run in runs) for name in cases}
    one, two, alone, half = best.values()
    found = {
        "milliseconds": {name: round(1e3 * seconds, 1) for name, seconds in best.items()},
        "steps_of_two_processes_by_one": round(one / two, 3),
        "share_of_talk": round(1 - alone / two, 3),
        "estimate_for_two_machines": round(one / (half + two - alone), 2),
    }
    print(json.dumps(found, indent=1))
    return found


def killed(seed: int, expected: str | None) -> dict[str, Any]:
    """Run to the end; if `expected` is given, kill one of the processes at a random moment."""
    chance = random.Random(seed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        began = time.monotonic()
        run = subprocess.Popen(
            command(2, "train", folder), env=environment(1), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        rank, was_running, moment = chance.randrange(2), False, 0.0
        if expected is not None:
            while not (folder / "state").exists() and run.poll() is None:
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 5.0))
            moment, was_running = time.monotonic() - began, run.poll() is None
            if was_running:
                os.kill(int((folder / f"{rank}.pid").read_text()), signal.SIGKILL)
        code = run.wait(timeout=300)
        digests = [file.read_text() for file in sorted(folder.glob("*.digest"))]
    is_same = code == 0 and len(digests) == 2 and set(digests) == {expected or digests[0]}
    return {"digest": digests[0] if digests else "", "same": is_same, "rank": rank,
            "after": round(moment, 1), "killed": was_running}  # fmt: skip


def kills(n: int) -> dict[str, Any]:
    unbroken, runs, seed = killed(0, None)["digest"], [], 0
    while len(runs) < n and seed < 3 * n:  # a run may be over before
        seed += 1
        run = killed(seed, unbroken)
        if run["killed"]:
            runs.append(run)
            print(f"rank {run['rank']} killed after {run['after']} s: same weights {run['same']}")
    n_held = sum(run["same"] for run in runs)
    verdict(f"the same weights after each of {n} kills", n_held == n, f"{n_held} of {len(runs)}")
    return {"tried": len(runs), "held": n_held}


def main() -> None:
    parser = make_parser("processes", __doc__)
    parser.add_argument("--task", choices=("steps", "train"))
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--rows", type=int, default=14_000)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--steps", type=int, default=N_STEPS)
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--kills", type=int, default=N_KILLS)
    given = parser.parse_args()
    if given.task == "steps":
        time_steps(given.folder, given.rows, given.steps, given.batch, given.threads)
    elif given.task == "train":
        train_to_the_end(given.folder)
    else:
        of_kills = kills(given.kills)
        of_steps = steps(given.rows, given.steps, given.repeats)
        save(given.results, {"kills": of_kills, "steps": of_steps})


if __name__ == "__main__":
    main()
