"""Faults, injected by the thousand: what must hold when processes die and files are damaged.

``make torture``, or ``python benchmarks/torture.py`` with names of parts and ``--share 0.01`` for
a hundredth of each. Prints a line for each part and writes ``results/torture.json``, from which
docs/promises.md has its table. About ten minutes on two cores. Linux only: it forks.

==========  =======================================================================================
``kills``   SIGKILL at random moments of fits with a checkpoint, resumed until they end: the weights
            are those of an unbroken fit, and nothing is left in the folder
``files``   model files and checkpoints with bits, bytes, ranges and blocks changed, or cut
            anywhere: not one is taken
``states``  model files and checkpoints with random edits of their JSON and their tensors, and a
            checksum that is right, each loaded *and used*: no crash, no raw error, and no more than
            10 seconds and 300 MB + 20 times the file
==========  =======================================================================================
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dkae
from dkae import DeepKernelizedAutoencoder
from dkae._support import safe_file
from dkae._support.safe_file import ModelFileError
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    center,
    normalize,
)
from dkae.networks import ConvolutionalAutoencoder, ResidualAutoencoder
from dkae.persistence import load, save
from dkae.spectral import KernelPCA
from dkae.training import checkpoint

RESULTS = Path(__file__).parent / "results" / "torture.json"
#: Faults of each part.
N_KILLS, N_FILES, N_STATES = 60, 10_000, 2_000
#: What loading and using a file may take: seconds, megabytes, and megabytes for each of the file.
MAX_SECONDS, MAX_MEGABYTES, PER_MEGABYTE = 10.0, 300.0, 20.0
X = np.random.default_rng(0).random((300, 20), dtype=np.float32)
IMAGES = np.random.default_rng(1).random((20, 1, 6, 5), dtype=np.float32)


def make_model(**params: Any) -> DeepKernelizedAutoencoder:
    """Return a model that is trained in every kind of phase, for a second or so."""
    phases = {"pretrain_max_iter": 2, "max_iter": 6, "decoder_max_iter": 3, "steps_per_epoch": 40}
    small = {"network": "stacked", "hidden_layer_sizes": (64, 32), "random_state": 0}
    stop = {"early_stopping": True, "input_noise": 0.1}
    return DeepKernelizedAutoencoder(8, **(phases | small | stop | params))


def make_tiny(**params: Any) -> DeepKernelizedAutoencoder:
    """Return a model that is trained in a few milliseconds, in two phases."""
    tiny = {"hidden_layer_sizes": (6,), "pretrain_max_iter": 0, "steps_per_epoch": 2}
    return make_model(**(tiny | {"max_iter": 2, "decoder_max_iter": 1} | params))


def digest(model: Any) -> str:
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
        while counts["killed"] < n or counts["finished"] == 0 or path.exists():
            is_last = counts["killed"] >= n
            status, given = in_a_child(fit, None if is_last else rng.uniform(0, 0.6 * whole))
            if status == signal.SIGKILL:
                counts["killed"] += 1
                continue
            counts["finished"] += 1
            counts["equal"] += status == 0 and given == expected
            checkpoint.remove_checkpoint(path)
            left = [file for file in Path(folder).iterdir() if file.name != ".state.dkae-lock"]
            counts["left behind"] += len(left)
    held = counts["finished"] == counts["equal"] and not counts["left behind"]
    return {"tried": counts["killed"], "held": counts["killed"] if held else 0, **counts}


# --- files that are damaged ----------------------------------------------------------------------


def damaged(content: bytes, n: int, rng: random.Random) -> Iterator[bytes]:
    """Yield `n` damaged copies of a file."""
    n_header = 8 + int.from_bytes(content[:8], "little")
    for i in range(n):
        broken = bytearray(content)
        while broken == content:
            at, size = rng.randrange(len(content)), rng.randrange(1, 64)
            other, letter = rng.randrange(len(content)), rng.randrange(8, n_header)
            if i % 8 == 0:  # a bit
                broken[at] ^= 1 << rng.randrange(8)
            elif i % 8 == 1:  # a byte
                broken[at] = (broken[at] + rng.randrange(1, 256)) % 256
            elif i % 8 == 2:  # a range of noise
                broken[at : at + size] = rng.randbytes(len(broken[at : at + size]))
            elif i % 8 == 3:  # a range of zeros
                broken[at : at + size] = bytes(len(broken[at : at + size]))
            elif i % 8 == 4:  # a block that stands elsewhere too
                broken[at : at + size] = content[other : other + size]
            elif i % 8 == 5:  # a letter or digit of the header
                broken[letter] = rng.choice(b'0123456789abcdefXYZ{}[]",:-. ')
            elif i % 8 == 6:  # cut
                del broken[at:]
            else:  # something in between
                broken[at:at] = rng.randbytes(size)
        yield bytes(broken)


def files(n: int) -> dict[str, Any]:
    """Damage model files and checkpoints, and read them."""
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        state = Path(folder) / "state"
        save(make_tiny().fit(X, checkpoint=state), Path(folder) / "model")
        for name, read in {"model": load, "state": checkpoint._read}.items():
            content = (Path(folder) / name).read_bytes()
            for broken in damaged(content, n // 2, random.Random(2)):
                counts["tried"] += 1
                path.write_bytes(broken)
                try:
                    read(path)
                except ModelFileError:
                    counts["held"] += 1
                except Exception as error:
                    counts[f"raw: {type(error).__name__}"] += 1
                else:
                    counts["taken in silence"] += 1
    return {"tried": 0, "held": 0, **counts}


# --- states that are edited and signed again -----------------------------------------------------


def base_models() -> dict[str, Any]:
    """Return a fitted model of every kind that a file may hold."""
    labels = np.arange(len(X)) % 3
    pck = ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2)
    forest = ForestKernel(RandomForestClassifier(3, random_state=0).fit(X, labels))

    def flat(A: Any, B: Any) -> Any:
        return A.reshape(len(A), -1) @ B.reshape(len(B), -1).T

    def residual(*args: Any) -> ResidualAutoencoder:
        return ResidualAutoencoder(*args, width=8, n_blocks=1)

    nested = normalize(center(0.5 * PairwiseKernel("rbf") + PairwiseKernel("linear") * pck))
    nystroem = TransformerKernel(Nystroem(n_components=6, random_state=0).fit(X))
    unstopped = {"early_stopping": False, "pretrain_max_iter": 0}
    return {
        "stack": make_tiny().fit(X),
        "pck": make_tiny(kernel=pck).fit(X),
        "residual": make_tiny(network=residual, **unstopped).fit(X),
        "convolution": make_tiny(network=ConvolutionalAutoencoder, kernel=flat, **unstopped).fit(
            IMAGES
        ),
        "KernelPCA": KernelPCA(2, kernel="rbf").fit(X[:30]),
        "forest": KernelPCA(2, kernel=forest).fit(X[:30]),
        "nested": KernelPCA(2, kernel=nested).fit(X[:30]),
        "features": KernelPCA(2, kernel=nystroem).fit(X[:30]),
        "process": make_pipeline(
            StandardScaler(), KernelPCA(2, kernel=gp.RBF(2.0) + gp.Matern() * 0.5)
        ).fit(X[:30]),
    }


def use_model(path: Path) -> None:
    """Load a model, and map rows with all that it offers."""
    model = load(path)
    last = model[-1] if hasattr(model, "steps") else model
    rows = X[:8] if getattr(last, "row_shape_", (20,)) == (20,) else IMAGES[:8]
    codes = model.transform(rows)
    if hasattr(last, "inverse_transform"):
        model.inverse_transform(codes)
    if getattr(last, "kernel_", None) is not None and rows.ndim == 2:
        last.kernel_.gram(rows)


def use_checkpoint(path: Path) -> None:
    """Resume a fit."""
    make_tiny().fit(X, checkpoint=path).transform(X[:8])


_VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 3, 1000, 2**31, 2**63, 2**200, 0.5, -1e300, 1e300, "", "x",
    "rbf", "auto", "__class__", [], {}, {"float": "nan"}, {"float": "inf"}, {"again": 0},
    {"again": 1}, {"tuple": []}, {"dict": []}, {"tensor": "kernel_values"}, [1] * 10_000,
    {"object": ["PairwiseKernel", {}]}, {"object": ["Normalizer", {"n_features_in_": 20}]},
)  # fmt: skip


def places(state: Any) -> list[tuple[Any, Any]]:
    """Return every container within nested JSON, with every one of its keys."""
    found: list[tuple[Any, Any]] = []
    items = state.items() if isinstance(state, dict) else enumerate(state)
    for key, value in items:
        found.append((state, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def edit_json(state: Any, rng: random.Random) -> None:
    """Change one place of nested JSON."""
    everywhere = places(state)
    owner, key = rng.choice(everywhere)
    kind = rng.randrange(6)
    if kind == 0:
        del owner[key]
    elif kind == 1:
        other, other_key = rng.choice(everywhere)
        owner[key] = copy.deepcopy(other[other_key])
    elif kind == 2 and isinstance(owner[key], int | float):
        owner[key] = owner[key] * rng.choice([-1, 0, 2, 1000, 10**9])
    elif kind == 3 and isinstance(owner[key], list):
        owner[key] = owner[key] * rng.choice([2, 100, 1000])
    elif kind == 4 and isinstance(owner, dict):
        owner[rng.choice(["n_jobs", "copy", "callbacks", "__class__", "fit", "x_"])] = owner[key]
    else:
        owner[key] = copy.deepcopy(rng.choice(_VALUES))


def edit_tensors(tensors: dict[str, torch.Tensor], rng: random.Random) -> None:
    """Change the shape, the type or the entries of one tensor."""
    name = rng.choice(sorted(tensors))
    t = tensors[name].clone()
    flat = t.reshape(-1)
    kind = rng.randrange(9)
    if kind == 0:
        del tensors[name]
        return
    if kind == 1:
        t = flat[: rng.randrange(len(flat) + 1)].clone()
    elif kind == 2:
        t = torch.cat([flat, flat]) if len(flat) else torch.ones(3)
    elif kind == 3:
        t = t.to(rng.choice([torch.float64, torch.float32, torch.int64, torch.bool, torch.uint8]))
    elif kind == 4:
        t = torch.ones(rng.choice([(1,), (0,), (3, 3), (20,), (1, 1, 1), (1000, 100)]))
    elif kind == 5:
        t = t[None]
    elif kind == 6 and t.ndim > 1:
        t = t.transpose(0, 1).contiguous()
    elif len(flat):
        values = [0, 1, -1, 7, 100] + (
            [np.nan, np.inf, 1e30, -1e30] if t.is_floating_point() else []
        )
        at = rng.randrange(len(flat)) if kind == 7 else slice(None)
        flat[at] = rng.choice(values)
    tensors[name] = t


def edited(path: Path, rng: random.Random) -> bytes:
    """Return a file with one to three edits, and a right checksum."""
    content = safe_file.read(path)
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.6 and content.state:
            edit_json(content.state, rng)
        elif content.tensors:
            edit_tensors(content.tensors, rng)
    # The format stays: that another one is refused needs no thousand tries.
    content.state.update(json.loads(json.dumps({"format": safe_file.read(path).state["format"]})))
    return bytes(safe_file.to_bytes(content.state, content.tensors))


def memory(field: str) -> float:
    """Return a number of megabytes that the system has of this process."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def outcome(use: Callable[[Path], None], path: Path) -> str:
    """Return what became of a file, and what it took, as JSON."""
    Path("/proc/self/clear_refs").write_text("5", "utf-8")
    before, start, result = memory("VmRSS"), time.perf_counter(), "taken"
    try:
        use(path)
    except (ModelFileError, FloatingPointError):
        result = "refused"
    except Exception as error:
        result = "refused" if type(error) is ValueError else f"raw: {type(error).__name__}: {error}"
    return json.dumps([result[:300], time.perf_counter() - start, memory("VmHWM") - before])


def states(n: int) -> dict[str, Any]:
    """Edit models and checkpoints, sign them again, and use each in a process of its own."""
    counts, rng = Counter[str](), random.Random(3)
    with tempfile.TemporaryDirectory() as folder:
        bases: list[tuple[Path, Callable[[Path], None]]] = []
        for name, model in base_models().items():
            bases.append((Path(folder) / name, use_model))
            save(model, bases[-1][0])
        checkpoint.EVERY_SECONDS = 0.0
        for i in range(3):
            path = Path(folder) / f"state {i}"
            in_a_child(lambda p=path, i=i: _stopped_fit(p, 1 + 2 * i))
            checkpoint.previous(path).unlink(missing_ok=True)
            bases += [(path, use_checkpoint)] * 2
        checkpoint.EVERY_SECONDS = 60.0
        for i in range(n):
            base, use = bases[i % len(bases)]
            path = Path(folder) / "edited"
            path.write_bytes(edited(base, rng))
            size = path.stat().st_size / 2**20
            status, given = in_a_child(lambda u=use, p=path: outcome(u, p), 3 * MAX_SECONDS)
            checkpoint.previous(path).unlink(missing_ok=True)
            counts["tried"] += 1
            if status != 0:
                verdict = f"ended by signal {status}"
            else:
                verdict, seconds, megabytes = json.loads(given)
                if seconds > MAX_SECONDS or megabytes > MAX_MEGABYTES + PER_MEGABYTE * size:
                    verdict = f"over the limits: {seconds:.1f} s, {megabytes:.0f} MB"
            is_held = verdict in ("taken", "refused")
            counts["held"] += is_held
            counts[verdict if is_held else f"{base.name}: {verdict}"] += 1
    return {"held": 0, **counts}


def _stopped_fit(path: Path, n_steps: int) -> None:
    """Fit with a checkpoint until so many steps are done."""

    class Stop(dkae.training.Callback):
        n = 0

        def on_step_end(self, trainer: Any, phase: Any) -> None:
            self.n += 1
            if self.n > n_steps:
                os._exit(0)

    make_tiny(callbacks=[Stop()]).fit(X, checkpoint=path)


PARTS: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "kills": (kills, N_KILLS),
    "files": (files, N_FILES),
    "states": (states, N_STATES),
}


def main() -> None:
    """Run the parts that are named, or all, and add them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all by default")
    parser.add_argument("--share", type=float, default=1.0, help="of the faults")
    parser.add_argument("--results", type=Path, default=None)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a child of a process with threads may hang
    results_path = arguments.results or (RESULTS if arguments.share == 1 else None)
    is_there = results_path is not None and results_path.exists()
    results = json.loads(results_path.read_text("utf-8")) if is_there else {}
    failed = []
    for name in arguments.parts or PARTS:
        run, n = PARTS[name]
        found = run(max(2, int(n * arguments.share)))
        print(f"{name:<10}{found['held']:,} of {found['tried']:,} held  {json.dumps(found)}")
        results[name] = found
        failed += [name] * (found["held"] != found["tried"])
    if results_path is not None:
        results_path.write_text(json.dumps({"dkae": dkae.__version__} | results, indent=1) + "\n")
    if failed:
        sys.exit(f"did not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
