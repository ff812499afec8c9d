"""What a training run depends on: a checkpoint of one run is of no use to another."""

import re
from collections.abc import Iterable
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn

from dkae.grams import Floats, Gram, MatrixGram, RowsGram, read_block, sample_ids
from dkae.rows import RowArray, chunks_of
from dkae.training.phases import DECODER, FINE_TUNING, Settings

#: Rows whose block of the prior stands for the kernel.
N_KERNEL_ROWS = 64
#: Named without the value, which means nothing to a reader.
_OPAQUE = ("X", "gram", "network", "initial weights")
#: Settings that may be raised on the way, and the last phase that may be under way then.
_MAY_GROW = {"max_iter": FINE_TUNING, "decoder_max_iter": DECODER}
#: Rows on a disk that are hashed, and numbers that are read together for it.
N_HASHED_ROWS, N_HASHED_NUMBERS = 4096, 2**22


def fingerprint(
    network: nn.Module, X: Floats, gram: Gram, settings: Settings, rng: np.random.Generator
) -> dict[str, Any]:
    """Return what a run depends on, before it has started; not the device, which may change."""
    state = network.state_dict().values()
    given = vars(settings) | vars(settings.optimization)
    del given["optimization"], given["device"]
    stages: Any = network.stages() if settings.pretrain_max_iter else []  # type: ignore[operator]
    weights = (t.detach().cpu().numpy() for t in state if isinstance(t, Tensor))
    return {
        # A file holds no code.
        **{name: described(v) if callable(v) else v for name, v in given.items()},
        "network": repr(network),
        "stages": ", ".join(stage.name for stage in stages),
        "number of rows": len(X),
        "X": rows_digest(X),
        "random_state": rng.bit_generator.state,
        "initial weights": _digest(weights),
        "gram": _matrix_digest(gram),
        # Kept as numbers: their last digits change with the number of threads.
        "kernel": torch.from_numpy(read_block(gram, sample_ids(len(gram), N_KERNEL_ROWS))),
    }


def rows_digest(X: Any) -> str:
    """Return a digest of the rows: of all in memory, of some on a disk, which may be large."""
    if not isinstance(X, RowArray) or sparse.issparse(X.source):
        return _digest(chunks_of(X, N_HASHED_NUMBERS))
    ids = sample_ids(len(X), N_HASHED_ROWS)
    n = max(1, N_HASHED_NUMBERS // int(np.prod(X.shape[1:])))
    return _digest(X[ids[i : i + n]] for i in range(0, len(ids), n))


def _matrix_digest(gram: Gram) -> str | None:
    """Return a digest of a matrix that was handed in; None where a kernel is evaluated.

    Of a matrix on disk, which takes long to read twice, it is of some rows.
    """
    rows_kind = getattr(getattr(gram, "rows", None), "dtype", np.dtype(float)).kind
    if isinstance(gram, RowsGram) and rows_kind in "iub":
        return _digest([np.asarray(gram.rows)])  # labels, or leaves of trees
    if not isinstance(gram, MatrixGram):
        return None
    matrix = gram.matrix
    on_disk = isinstance(matrix, np.memmap)
    rows = sample_ids(len(matrix), N_KERNEL_ROWS) if on_disk else range(len(matrix))
    return _digest(chain([gram.ids], (matrix[i] for i in rows)))


def described(value: Any) -> str:
    """Return text that is the same for equal values in all processes."""
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {_digest([_readable(value)])}"
    code = getattr(value, "__code__", None)
    if code is None:
        return _without_addresses(repr(value))
    # Functions of one name may do different things.
    cells = [getattr(cell, "cell_contents", None) for cell in value.__closure__ or ()]
    text = repr((_instructions(code), value.__defaults__, value.__kwdefaults__, cells))
    return f"{value.__qualname__} {_hashed([_without_addresses(text).encode()])}"


def _instructions(code: CodeType) -> tuple[Any, ...]:
    return code.co_code, [_constant(c) for c in code.co_consts], code.co_names


def _constant(value: Any) -> Any:
    if isinstance(value, frozenset):  # in another order in each process
        return sorted(map(repr, value))
    return _instructions(value) if isinstance(value, CodeType) else value


def _readable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array whose bytes are its values, and that fits into memory."""
    if array.dtype.hasobject:
        return np.array(_without_addresses(repr(array.tolist())))
    return array[sample_ids(len(array), N_KERNEL_ROWS)] if isinstance(array, np.memmap) else array


def _without_addresses(text: str) -> str:
    return re.sub(r" at 0x\w+", "", text)


def _digest(arrays: Iterable[np.ndarray[Any, Any]]) -> str:
    return _hashed(np.ascontiguousarray(a).reshape(-1).view(np.uint8).data for a in arrays)


def _hashed(parts: Iterable[bytes | memoryview]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def check_same_run(path: Path, there: dict[str, Any], here: dict[str, Any], phase: str) -> None:
    """Raise an error if the fingerprint of a file is not that of this run, and name what differs.

    The run may be longer than it was to be, if its learning rate does not depend on that, and if
    the phase that gets longer is not over: the file is of `phase`.
    """
    differences = [
        _difference(name, there.get(name), here.get(name))
        for name in here | there
        if not _is_same(there.get(name), here.get(name)) and not _may_grow(name, there, here, phase)
    ]
    if differences:
        raise ValueError(
            f"checkpoint={path} is from another run, which differs in {', '.join(differences)}: "
            "delete the file to start again, or pass another path"
        )


def _is_same(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        if a.shape != b.shape or a.dtype is not b.dtype:
            return False
        return bool((a - b).abs().max() <= 1e-4 * b.abs().max())
    return type(a) is type(b) and not isinstance(a, np.ndarray) and bool(a == b)


def _may_grow(name: str, there: dict[str, Any], here: dict[str, Any], phase: str) -> bool:
    if name not in _MAY_GROW or there.get("learning_rate") != "constant":
        return False
    is_over = phase == DECODER and _MAY_GROW[name] == FINE_TUNING
    # Raising 0 would add a phase, and change later learning rates.
    before = there.get(name)
    return not is_over and isinstance(before, int) and bool(here[name] > before > 0)


def _difference(name: str, there: Any, here: Any) -> str:
    """Return what differs, with the values where they mean something to a reader."""
    if isinstance(here, (dict, list, Tensor)) or name in _OPAQUE:
        return str(name)[:80]
    hint = "; only learning_rate='constant' can go on for longer" if name in _MAY_GROW else ""
    return f"{str(name)[:80]} ({repr(there)[:80]} in the file, {repr(here)[:80]} here{hint})"
