"""Faults, injected by the thousand: what must hold when processes die and files are damaged.

``make torture``, or ``python benchmarks/torture.py`` with names of parts, or ``--quick`` for a
hundredth of each. Prints a line for each part and writes ``results/torture.json``, from which
docs/promises.md has its table. A quarter of an hour on two cores. Linux only: it forks.

=============  ====================================================================================
``kills``      SIGKILL at random moments of fits with a checkpoint, in all phases and while a file
               is written; every fit is resumed until it ends: its weights are those of an unbroken
               one, and nothing is left in the folder
``saves``      SIGKILL at random moments of saves over an older file: it loads, as one or the other
``mutations``  model files and checkpoints with bits, bytes, ranges, blocks, letters and digits of
               the header changed, or cut anywhere: not one is taken
``peers``      the same mutations of the same weights in other formats: who takes them in silence
``processes``  fresh processes with one thread and two: the same model to the bit
=============  ====================================================================================
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import safetensors.torch
import torch

import dkae
from dkae import DeepKernelizedAutoencoder
from dkae._support.container import ModelFileError, read_container
from dkae.persistence import load, save
from dkae.training import checkpoint

RESULTS = Path(__file__).parent / "results" / "torture.json"
#: Faults of each part.
N_KILLS, N_SAVE_KILLS, N_MUTATIONS, N_PEER_MUTATIONS, N_PROCESSES = 200, 200, 100_000, 20_000, 5
X = np.random.default_rng(0).random((300, 20), dtype=np.float32)


def make_model() -> DeepKernelizedAutoencoder:
    """Return a model that is trained in every kind of phase, for a second or so."""
    return DeepKernelizedAutoencoder(
        8,
        network="stacked",
        hidden_layer_sizes=(64, 32),
        pretrain_max_iter=2,
        max_iter=6,
        decoder_max_iter=3,
        steps_per_epoch=40,
        early_stopping=True,
        input_noise=0.1,
        random_state=0,
    )


def digest(model: DeepKernelizedAutoencoder) -> str:
    """Return a digest of all weights and of the history."""
    found = hashlib.sha256(json.dumps(model.history_).encode())
    for name, tensor in sorted(model.network_.state_dict().items()):
        found.update(name.encode() + tensor.numpy().tobytes())
    return found.hexdigest()


# --- processes that are killed -------------------------------------------------------------------


def in_a_child(work: Callable[[], Any], seconds: float | None = None) -> tuple[int, str]:
    """Run `work` in a child, killed after so many seconds; return its status and what it gave."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with os.fdopen(write, "w", encoding="utf-8") as pipe:
            pipe.write(str(work()))
        os._exit(0)
    os.close(write)
    if seconds is not None and not select.select([read], [], [], seconds)[0]:
        os.kill(child, signal.SIGKILL)  # it is still at work
    with os.fdopen(read, encoding="utf-8") as pipe:
        given = pipe.read()
    return os.waitpid(child, 0)[1], given


def kills(n: int) -> dict[str, Any]:
    """Kill fits at random moments, resume them, and compare what they come to."""
    checkpoint.EVERY_SECONDS = 0.02  # so that many of them are killed while they write
    rng, counts = random.Random(0), Counter[str]()
    expected = digest(make_model().fit(X))  # here: what is loaded at first use is there for all
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"

        def fit() -> str:
            return digest(make_model().fit(X, checkpoint=path))

        start = time.perf_counter()
        in_a_child(fit)
        whole = time.perf_counter() - start
        checkpoint.remove_checkpoint(path)
        while counts["killed"] < n:
            status, given = in_a_child(fit, seconds=rng.uniform(0, 0.6 * whole))
            if status == signal.SIGKILL:
                counts["killed"] += 1
                state, _ = checkpoint._newest(path)
                if state is not None:
                    counts[f"in {state['phase']}"] += 1
                continue
            counts["finished"] += 1
            counts["equal"] += given == expected
            checkpoint.remove_checkpoint(path)
            left = [file for file in Path(folder).iterdir() if file.name != ".state.lock"]
            counts["left behind"] += len(left)
        status, given = in_a_child(fit)  # the last one
        counts["finished"] += 1
        counts["equal"] += status == 0 and given == expected
    held = counts["finished"] == counts["equal"] and not counts["left behind"]
    return {"tried": counts["killed"], "held": counts["killed"] if held else 0, **counts}


def saves(n: int) -> dict[str, Any]:
    """Kill saves over an older file, and load what is there."""
    rng, counts = random.Random(1), Counter[str]()
    models = [make_model().set_params(random_state=seed).fit(X) for seed in (0, 1)]
    known = {digest(model) for model in models}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(models[0], path)

        def save_again() -> None:
            while True:
                for model in models:
                    save(model, path)

        for _ in range(n):
            in_a_child(save_again, seconds=rng.uniform(0, 0.02))
            counts["held"] += digest(load(path)) in known
        save(models[0], path)
        counts["left behind"] = len(list(Path(folder).iterdir())) - 1
    held = 0 if counts["left behind"] else counts["held"]
    return {"tried": n, **counts, "held": held}


# --- files that are damaged ----------------------------------------------------------------------


def mutations(content: bytes, n_header: int, n: int, rng: random.Random) -> Iterator[bytes]:
    """Yield `n` damaged copies of a file whose first bytes are a header."""
    n_yielded, kind = 0, 0
    while n_yielded < n:
        damaged = bytearray(content)
        at, kind = rng.randrange(len(content)), (kind + 1) % 8
        size = rng.randrange(1, 64)
        if kind == 0:  # a bit
            damaged[at] ^= 1 << rng.randrange(8)
        elif kind == 1:  # a byte
            damaged[at] = (damaged[at] + rng.randrange(1, 256)) % 256
        elif kind == 2:  # a range of noise
            damaged[at : at + size] = rng.randbytes(len(damaged[at : at + size]))
        elif kind == 3:  # a range of zeros
            damaged[at : at + size] = bytes(len(damaged[at : at + size]))
        elif kind == 4:  # a block that stands elsewhere too
            other = rng.randrange(len(content))
            damaged[at : at + size] = content[other : other + size]
        elif kind == 5:  # a letter or digit of the header
            at = rng.randrange(8, n_header)
            damaged[at] = rng.choice(b'0123456789abcdefXYZ{}[]",:-.')
        elif kind == 6:  # cut
            del damaged[at:]
        else:  # something in between
            damaged[at:at] = rng.randbytes(size)
        if damaged != content:
            n_yielded += 1
            yield bytes(damaged)


def survivors(content: bytes, n_header: int, n: int, read: Callable[[bytes], Any]) -> Counter[str]:
    """Count what comes of damaged files: refused as they should be, otherwise, or taken."""
    counts = Counter[str]()
    for damaged in mutations(content, n_header, n, random.Random(2)):
        counts["tried"] += 1
        try:
            read(damaged)
        except ModelFileError:
            counts["refused"] += 1
        except Exception as error:
            counts["refused otherwise"] += 1
            counts[f"raw: {type(error).__name__}"] += 1
        else:
            counts["taken in silence"] += 1
    return counts


def damaged_files(n: int) -> dict[str, Any]:
    """Damage model files and checkpoints."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"

        def read_model(content: bytes) -> None:
            path.write_bytes(content)
            load(path)

        def read_checkpoint(content: bytes) -> None:
            path.write_bytes(content)
            checkpoint._read(path)

        small = make_model().set_params(hidden_layer_sizes=(8,), pretrain_max_iter=0, max_iter=1)
        state = Path(folder) / "state"
        save(small.fit(X, checkpoint=state), Path(folder) / "model")
        counts = Counter[str]()
        for name, read in {"model": read_model, "state": read_checkpoint}.items():
            content = (Path(folder) / name).read_bytes()
            read(content)
            n_header = 8 + int.from_bytes(content[:8], "little")
            counts += survivors(content, n_header, n // 2, read)
    return {"held": counts["refused"], **counts}


def peers(n: int) -> dict[str, Any]:
    """Damage the same weights as others write them."""
    weights = {k: v.contiguous() for k, v in make_model().fit(X).network_.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        buffers: dict[str, tuple[bytes, Callable[[bytes], Any]]] = {}
        save(make_model().fit(X), path)

        def ours(content: bytes) -> None:
            path.write_bytes(content)
            read_container(path)

        buffers["dkae"] = path.read_bytes(), ours
        buffers["safetensors"] = safetensors.torch.save(weights), safetensors.torch.load
        file = io.BytesIO()
        torch.save(weights, file)
        buffers["torch.save"] = (
            file.getvalue(),
            lambda content: torch.load(io.BytesIO(content), weights_only=True),
        )
        file = io.BytesIO()
        joblib.dump({k: v.numpy() for k, v in weights.items()}, file)
        buffers["joblib"] = file.getvalue(), None  # type: ignore[assignment]
        found = {}
        for name, (content, read) in buffers.items():
            n_header = min(len(content), 8 + int.from_bytes(content[:8], "little"), 4000)
            if read is None:
                found[name] = _in_children(content, n_header, n // 10)
            else:
                found[name] = dict(survivors(content, n_header, n, read))
    return {"held": found["dkae"]["refused"], "tried": found["dkae"]["tried"], "formats": found}


def _in_children(content: bytes, n_header: int, n: int) -> dict[str, int]:
    """Read damaged pickles where they can do no harm: they execute what they say."""

    def count() -> str:
        sys.stdout = sys.stderr = io.StringIO()
        read = survivors(content, n_header, n, lambda c: joblib.load(io.BytesIO(c)))
        return json.dumps(read)

    counts = Counter[str]()
    for _ in range(3):  # a pickle may end the process
        status, given = in_a_child(count)
        if status == 0:
            counts += Counter(json.loads(given))
        else:
            counts["process ended"] += 1
    return dict(counts)


# --- processes -----------------------------------------------------------------------------------

_SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import torch
torch.set_num_threads(int(sys.argv[2]))
from torture import X, digest, make_model
print(digest(make_model().fit(X)))
"""


def processes(n: int) -> dict[str, Any]:
    """Fit the same model in fresh processes, with one thread and with two."""
    found: dict[str, list[str]] = {}
    for threads in ("1", "2"):
        command = [sys.executable, "-c", _SCRIPT, str(Path(__file__).parent), threads]
        found[threads] = [
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for _ in range(n)
        ]
    held = sum(len(set(digests)) == 1 for digests in found.values()) * n
    same = len({d for digests in found.values() for d in digests}) == 1
    return {"tried": 2 * n, "held": held, "threads make no difference here": same}


PARTS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "kills": (kills, N_KILLS),
    "saves": (saves, N_SAVE_KILLS),
    "mutations": (damaged_files, N_MUTATIONS),
    "peers": (peers, N_PEER_MUTATIONS),
    "processes": (processes, N_PROCESSES),
}


def main() -> None:
    """Run the parts that are named, or all, and add them to the results."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a child of a process with threads may hang
    arguments = [a for a in sys.argv[1:] if a != "--quick"]
    is_quick = "--quick" in sys.argv
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    failed = []
    for name in arguments or PARTS:
        run, n = PARTS[name]
        found = run(max(2, n // 100) if is_quick else n)
        print(f"{name:<12}{found['held']:,} of {found['tried']:,} held  {json.dumps(found)}")
        results[name] = found
        failed += [name] * (found["held"] != found["tried"])
    if not is_quick:
        RESULTS.write_text(json.dumps({"dkae": dkae.__version__} | results, indent=1) + "\n")
    if failed:
        sys.exit(f"did not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
