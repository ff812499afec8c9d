"""Faults, injected by the thousand: what must hold when processes die and files are damaged.

``make torture``, or ``python benchmarks/torture.py`` with names of parts and ``--scale 0.01`` for
a hundredth of each. Prints a line for each part and writes ``results/torture.json``, from which
docs/promises.md has its table. About ten minutes on two cores. Linux only: it forks.

==========  =======================================================================================
``kills``   SIGKILL at random moments of fits with a checkpoint, resumed until they end: the model
            is that of an unbroken fit, to the bit
``saves``   SIGKILL at random moments of saves: the file is the old or the new one, and whole
``files``   model files and checkpoints with bits, bytes, ranges and blocks changed, or cut
            anywhere: not one is taken
``states``  model files and checkpoints with random edits of their JSON and their tensors, and a
            checksum that is right, each loaded *and used*: no crash, no raw error, and no more than
            10 seconds and 300 MB + 20 times the file; one that fails stays as ``torture-<number>``
            in the temporary folder
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
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import kernels as gp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dkae
from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA, load, save
from dkae._support import safe_file
from dkae._support.safe_file import ModelFileError
from dkae.decoders import MLPDecoder
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    normalize,
)
from dkae.networks import ConvolutionalAutoencoder, Stack
from dkae.training import Callback, EarlyStopping, checkpoint

RESULTS = Path(__file__).parent / "results" / "torture.json"
#: What loading and using a file may take: seconds, megabytes, and megabytes for each of the file.
MAX_SECONDS, MAX_MEGABYTES, PER_MEGABYTE = 10.0, 300.0, 20.0
X = np.random.default_rng(0).random((300, 20), dtype=np.float32)
IMAGES = np.random.default_rng(1).random((20, 1, 6, 5), dtype=np.float32)
Counts = dict[str, Any]


def make_model(sizes: tuple[int, ...] = (64, 32), **params: Any) -> DeepKernelizedAutoencoder:
    """Return a model that is trained in every kind of phase, for a second or so."""
    phases = {"pretrain_max_iter": 2, "max_iter": 6, "decoder_max_iter": 3, "steps_per_epoch": 40}
    more = {"input_noise": 0.1, "validation_fraction": 0.1, "callbacks": [EarlyStopping()]}
    params = phases | more | {"network": Stack(sizes), "random_state": 0} | params
    return DeepKernelizedAutoencoder(8, **params)


def make_tiny(**params: Any) -> DeepKernelizedAutoencoder:
    """Return a model that is trained in a few milliseconds, in two phases."""
    tiny = {"pretrain_max_iter": 0, "max_iter": 2, "decoder_max_iter": 1, "steps_per_epoch": 2}
    return make_model((6,), **(tiny | params))


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


def kills(n: int, folder: Path) -> Counts:
    """Kill fits at random moments, resume them, and compare what they come to."""
    checkpoint.EVERY_SECONDS = 0.02  # so that many of them are killed while they write
    rng, counts, path = random.Random(0), Counter[str](), folder / "state"
    expected = digest(make_model().fit(X))  # here, so that each child has all modules loaded

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
        counts["left behind"] += any(file.name != ".state.dkae-lock" for file in folder.iterdir())
    held = counts["finished"] == counts["equal"] and not counts["left behind"]
    return {"tried": counts["killed"], "held": counts["killed"] if held else 0, **counts}


def saves(n: int, folder: Path) -> Counts:
    """Kill processes that save two models in turn, and look at the file."""
    rng, counts, path = random.Random(1), Counter[str](), folder / "model"
    models = [make_tiny(kernel="linear", random_state=seed).fit(X) for seed in (0, 1)]
    whole = set()
    for model in models:
        save(model, path)
        whole.add(path.read_bytes())

    def save_for_ever() -> None:
        while True:
            for model in models:
                save(model, path)

    for _ in range(n):
        in_a_child(save_for_ever, rng.uniform(0.0, 0.2))
        counts["held"] += path.read_bytes() in whole
    save(models[0], path)
    counts["left behind"] = len(list(folder.iterdir())) - 1
    return {"tried": n, **counts, "held": 0 if counts["left behind"] else counts["held"]}


# --- files that are damaged ----------------------------------------------------------------------


def damaged(content: bytes, i: int, rng: random.Random) -> bytes:
    """Return a damaged copy of a file, in one of eight ways."""
    broken = bytearray(content)
    n_header = 8 + int.from_bytes(content[:8], "little")
    at, size, other = rng.randrange(len(content)), rng.randrange(1, 64), rng.randrange(len(content))
    n = len(broken[at : at + size])
    match i % 8:
        case 0:  # a bit
            broken[at] ^= 1 << rng.randrange(8)
        case 1:  # a byte
            broken[at] = (broken[at] + rng.randrange(1, 256)) % 256
        case 2:  # a range of noise
            broken[at : at + n] = rng.randbytes(n)
        case 3:  # a range of zeros
            broken[at : at + n] = bytes(n)
        case 4:  # a block that stands elsewhere too
            broken[at : at + n] = content[other : other + n]
        case 5:  # a letter or digit of the header
            broken[rng.randrange(8, n_header)] = rng.choice(b'0123456789abcdefXYZ{}[]",:-. ')
        case 6:  # cut
            del broken[at:]
        case _:  # something in between
            broken[at:at] = rng.randbytes(size)
    return damaged(content, i, rng) if broken == content else bytes(broken)


def files(n: int, folder: Path) -> Counts:
    """Damage model files and checkpoints, and read them."""
    counts, rng, path = Counter[str](), random.Random(2), folder / "file"
    save(make_tiny().fit(X, checkpoint=folder / "state"), folder / "model")
    for name, read in {"model": load, "state": checkpoint._read}.items():
        content = (folder / name).read_bytes()
        for i in range(n // 2):
            path.write_bytes(damaged(content, i, rng))
            try:
                read(path)
            except ModelFileError:
                counts["held"] += 1
            except Exception as error:
                counts[f"raw: {type(error).__name__}"] += 1
            else:
                counts["taken in silence"] += 1
    return {"tried": n // 2 * 2, "held": 0, **counts}


# --- states that are edited and signed again -----------------------------------------------------


def base_models() -> dict[str, Any]:
    """Return a fitted model of every kind that a file may hold."""
    pck = ProbabilisticClusterKernel(3, 2, random_state=0, reg_covar=1e-2)
    labels = np.arange(len(X)) % 3
    forest = ForestKernel(RandomForestClassifier(3, random_state=0).fit(X, labels))
    process = gp.RBF(2.0) + gp.Matern() * 0.5
    nested = normalize(0.5 * PairwiseKernel("rbf") + PairwiseKernel("linear") * pck)

    def flat(A: Any, B: Any) -> Any:
        return A.reshape(len(A), -1) @ B.reshape(len(B), -1).T

    mlp = MLPDecoder((6,), max_iter=1, steps_per_epoch=2)
    nystroem = partial(InvertibleNystroem, 4, n_landmarks=20, random_state=0)
    convolution = partial(ConvolutionalAutoencoder, channels=(4, 4))
    return {
        "stack": make_tiny(kernel=pck, standardize=True).fit(X),
        "process": make_tiny(kernel=process).fit(X),
        "convolution": make_tiny(network=convolution, kernel=flat).fit(IMAGES),
        "MLP": nystroem(decoder=mlp, n_linear=1).fit(X),
        "kernel ridge": nystroem(decoder="kernel_ridge", kernel=forest).fit(X),
        "KernelPCA": KernelPCA(2, decoder="ridge", kernel=nested).fit(X[:30]),
        "pipeline": make_pipeline(StandardScaler(), KernelPCA(2)).fit(X[:30]),
        "pck": pck.fit(X),
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
    {"object": ["PairwiseKernel", {}]}, {"object": ["PCA", {"n_features_in_": 20}]},
)  # fmt: skip


def places(state: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every container within nested JSON, with every one of its keys."""
    for key, value in list(state.items() if isinstance(state, dict) else enumerate(state)):
        yield state, key
        if isinstance(value, dict | list):
            yield from places(value)


def edit_json(state: Any, rng: random.Random) -> None:
    """Change one place of nested JSON."""
    everywhere = list(places(state))
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
    t = tensors.pop(name).clone()
    flat = t.reshape(-1)
    types = [torch.float64, torch.float32, torch.int64, torch.bool, torch.uint8]
    match rng.randrange(9):
        case 0:
            return
        case 1:
            t = flat[: rng.randrange(len(flat) + 1)].clone()
        case 2:
            t = torch.cat([flat, flat]) if len(flat) else torch.ones(3)
        case 3:
            t = t.to(rng.choice(types))
        case 4:
            t = torch.ones(rng.choice([(1,), (0,), (3, 3), (20,), (1, 1, 1), (1000, 100)]))
        case 5:
            t = t[None]
        case 6 if t.ndim > 1:
            t = t.transpose(0, 1).contiguous()
        case kind if len(flat):
            extremes = [np.nan, np.inf, 1e30, -1e30] if t.is_floating_point() else []
            at = rng.randrange(len(flat)) if kind == 7 else slice(None)
            flat[at] = rng.choice([0, 1, -1, 7, 100, *extremes])
    tensors[name] = t


def edited(path: Path, rng: random.Random) -> bytes:
    """Return a file with one to three edits, and a right checksum."""
    content = safe_file.read(path)
    form = content.state["format"]
    for _ in range(rng.randrange(1, 4)):
        if rng.random() < 0.6 and content.state:
            edit_json(content.state, rng)
        elif content.tensors:
            edit_tensors(content.tensors, rng)
    content.state["format"] = form  # that another one is refused needs no thousand tries
    return bytes(safe_file.to_bytes(content.state, content.tensors))


def memory(field: str) -> float:
    """Return a number of megabytes that the system has of this process."""
    for line in Path("/proc/self/status").read_text("utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise LookupError(field)


def outcome(use: Callable[[Path], None], path: Path) -> str:
    """Return what became of a file, as JSON: "taken", "refused", or what went wrong."""
    Path("/proc/self/clear_refs").write_text("5", "utf-8")
    before, start, result = memory("VmRSS"), time.perf_counter(), "taken"
    try:
        use(path)
    except (ValueError, FloatingPointError) as error:
        is_plain = type(error) in (ValueError, ModelFileError, FloatingPointError)
        result = "refused" if is_plain else f"raw: {type(error).__name__}: {error}"
    except Exception as error:
        result = f"raw: {type(error).__name__}: {error}"
    seconds, megabytes = time.perf_counter() - start, memory("VmHWM") - before
    if seconds > MAX_SECONDS or megabytes > MAX_MEGABYTES + PER_MEGABYTE * _megabytes(path):
        result = f"over the limits: {seconds:.1f} s, {megabytes:.0f} MB"
    return result[:300]


def _megabytes(path: Path) -> float:
    return path.stat().st_size / 2**20


def states(n: int, folder: Path) -> Counts:
    """Edit models and checkpoints, sign them again, and use each in a process of its own."""
    counts, rng = Counter[str](), random.Random(3)
    models: list[tuple[Path, Callable[[Path], None]]] = []
    for name, model in base_models().items():
        models.append((folder / name, use_model))
        save(model, models[-1][0])
    runs = [(stopped_fit(folder / f"after {i} steps", i), use_checkpoint) for i in (1, 3, 5)]
    path = folder / "edited"
    for i in range(n):  # a model and a checkpoint in turn
        bases = runs if i % 2 else models
        base, use = bases[i // 2 % len(bases)]
        path.write_bytes(edited(base, rng))
        status, verdict = in_a_child(partial(outcome, use, path), 3 * MAX_SECONDS)
        checkpoint.previous(path).unlink(missing_ok=True)
        if status != 0:
            verdict = f"ended by signal {status}"
        is_held = verdict in ("taken", "refused")
        if not is_held:
            (Path(tempfile.gettempdir()) / f"torture-{i}").write_bytes(path.read_bytes())
        counts["held"] += is_held
        counts[verdict if is_held else f"{base.name} ({i}): {verdict}"] += 1
    return {"tried": n, "held": 0, **counts}


def stopped_fit(path: Path, n_steps: int) -> Path:
    """Return the checkpoint of a fit that ended after so many steps."""

    class Stop(Callback):
        n = 0

        def on_step_end(self, trainer: Any, phase: Any) -> None:
            self.n += 1
            if self.n > n_steps:
                os._exit(0)

    checkpoint.EVERY_SECONDS = 0.0
    in_a_child(lambda: make_tiny(callbacks=[EarlyStopping(), Stop()]).fit(X, checkpoint=path))
    checkpoint.EVERY_SECONDS = 60.0
    checkpoint.previous(path).unlink(missing_ok=True)
    return path


#: The parts, and the faults of each.
PARTS: dict[str, tuple[Callable[[int, Path], Counts], int]] = {
    "kills": (kills, 40),
    "saves": (saves, 20),
    "files": (files, 10_000),
    "states": (states, 2_000),
}


def main() -> None:
    """Run the parts that are named, or all, and add them to the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all by default")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the faults")
    parser.add_argument("--results", type=Path, default=None)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # a child of a process with threads may hang
    results_path = arguments.results or (RESULTS if arguments.scale == 1 else None)
    is_there = results_path is not None and results_path.exists()
    results = json.loads(results_path.read_text("utf-8")) if is_there else {}
    results["dkae"], failed = dkae.__version__, []
    for name in arguments.parts or PARTS:
        run, n = PARTS[name]
        with tempfile.TemporaryDirectory() as folder:
            found = run(max(2, round(n * arguments.scale)), Path(folder))
        print(f"{name:<10}{found['held']:,} of {found['tried']:,} held  {json.dumps(found)}")
        results[name] = found
        failed += [name] * (found["held"] != found["tried"])
    if results_path is not None:
        results_path.write_text(json.dumps(results, indent=1) + "\n")
    if failed:
        sys.exit(f"did not hold: {', '.join(failed)}")


if __name__ == "__main__":
    main()
