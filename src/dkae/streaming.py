"""Rows that come in parts: `partial_fit`, and `fit` with an iterable of batches."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from dkae._support.devices import choose_device
from dkae._support.processes import Processes, joined
from dkae.fitting import Start, begin, check_settings, listeners_of, train
from dkae.kernels.formulas import knows_new_rows
from dkae.metrics.quality import Quality
from dkae.networks import KernelLayer
from dkae.training.callbacks import Callback
from dkae.training.fingerprint import check_same_on_all
from dkae.training.refinement import Moments
from dkae.training.run import make_engine
from dkae.training.settings import Settings
from dkae.training.streams import LoaderSource, PassSource

#: Rows, and numbers, of the first batches that stand for all.
N_HEAD_ROWS, N_HEAD_NUMBERS = 20_000, 2**26
#: So many parts like the first are taken to come, for the widths of a network.
N_PARTS = 10
#: Steps of an epoch, if nobody says how many.
N_LOADER_STEPS = 100
#: What an array or a table has, and an iterable of batches has not.
_OF_ARRAYS = ("__array__", "__getitem__", "shape", "__dataframe__")

_Result = tuple[KeyboardInterrupt | None, Quality]


# --- one pass over some rows ---------------------------------------------------------------------


def fit_part(model: Any, X: Any, y: object, gram: Any) -> _Result:
    """Take one pass of steps over the rows, from the present weights if there are any."""
    settings, callbacks = Settings.of(model), listeners_of(model)
    is_warm = model.__sklearn_is_fitted__()
    with joined(model.engine, choose_device(model.device)) as processes:
        X = model._check_rows(X, reset=not is_warm)
        if len(X) < 2:
            raise ValueError(f"X has {len(X)} row: a pass of partial_fit needs at least 2")
        check_same_on_all(processes, model, X)
        n_rows = N_PARTS * len(X)
        start = begin(model, X, y, gram, processes, is_warm=is_warm, n_rows=n_rows)
        settings = _one_pass(settings.budget(start.built.network, len(X)), start.built.network)
        check_settings(model, settings, start.built, len(X))
        before = (getattr(model, "_continued", None) or {}) if is_warm else {}
        moments = None if settings.max_iter else _refine(start, before, is_warm)
        engine = make_engine(settings)
        # Other rows, and another order, at each call.
        n_passes = len(model.history_) if is_warm else 0
        rng = np.random.default_rng([start.seed, n_passes])
        everyone, nobody = np.arange(len(X)), np.arange(0)
        source = PassSource(
            X, start.prior, everyone, nobody, settings.batch_size, "samples", rng, engine.device,
            has_gaps=model.missing == "mask", processes=processes,
        )  # fmt: skip
        continued = Continued(before)
        history = model.history_ if is_warm else []
        result = train(
            model, start, settings, [*callbacks, continued], source=source, history=history
        )
    for record in model.history_[n_passes:]:  # none if it was interrupted
        record["epoch"] = n_passes + 1
    model._continued = continued.state | {"moments": moments}
    return result


def _refine(start: Start, before: dict[str, Any], is_warm: bool) -> Moments | None:
    """Let the codes of a kernel layer learn from these rows too, if it knows those before."""
    layer: Any = start.built.network
    moments = before.get("moments")
    if is_warm and moments is None:  # of `fit`, or of a file
        return None
    moments = Moments(layer) if moments is None else copy.deepcopy(moments)
    moments.add(layer, start.X)
    if is_warm:
        moments.refine(layer)
    return moments


def _one_pass(settings: Settings, network: Any) -> Settings:
    """Return the settings of one epoch that sees each row once, at a rate that knows no end."""
    learns_codes = bool(settings.max_iter) or not isinstance(network, KernelLayer)
    return replace(
        settings,
        max_iter=int(learns_codes),
        decoder_max_iter=int(not learns_codes),
        pretrain_max_iter=0,
        learning_rate="endless",
        steps_per_epoch="samples",
        early_stopping=False,
        validation_fraction=0.0,
    )


class Continued(Callback):
    """Lets optimizer and learning rate go on where the pass before has left them."""

    is_for_all = True

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state

    def on_phase_setup(self, trainer: Any, phase: Any) -> None:
        shapes = [tuple(p.shape) for p in trainer.parameters]
        if self.state.get("shapes") == shapes:
            # Torch takes tensors as they are, and the model's are not to change if this pass fails.
            trainer.optimizer.load_state_dict(copy.deepcopy(self.state["optimizer"]))
            trainer.schedule.load_state_dict(self.state["schedule"])

    def on_phase_end(self, trainer: Any, phase: Any) -> None:
        self.state = {
            "shapes": [tuple(p.shape) for p in trainer.parameters],
            "optimizer": trainer.optimizer.state_dict(),
            "schedule": trainer.schedule.state_dict(),
        }


# --- batches that somebody else makes ------------------------------------------------------------


def is_loader(X: Any) -> bool:
    """Say whether X is an iterable of batches; lists are arrays."""
    is_array = isinstance(X, (str, bytes, list, tuple, dict, set, frozenset))
    is_array = is_array or any(hasattr(X, name) for name in _OF_ARRAYS)
    return hasattr(X, "__iter__") and not is_array


def fit_loader(model: Any, loader: Iterable[Any], y: object, gram: Any, checkpoint: Any) -> _Result:
    """Train a model on batches; the first of them stand for all rows where all would be needed."""
    given = {"y": y is not None, "gram": gram is not None, "checkpoint": checkpoint is not None}
    settings, callbacks = _loader_settings(model, loader, given), listeners_of(model)
    with joined(model.engine, choose_device(model.device)) as processes:
        batches, head = _first_batches(loader, processes)
        is_warm = model.warm_start and model.__sklearn_is_fitted__()
        X = model._check_rows(head.rows, reset=not is_warm)
        check_same_on_all(processes, model, X)
        start = begin(model, X, head.labels, None, processes, is_warm=is_warm)
        if not knows_new_rows(start.kernel):
            raise ValueError(
                f"{start.kernel} is of known rows alone, and X is an iterable of batches: pass "
                "a kernel that can be evaluated at any rows, or an array"
            )
        settings = settings.budget(start.built.network, len(X))
        check_settings(model, settings, start.built, len(X))
        source = LoaderSource(
            batches,
            X.shape[1:],
            lambda x: start.kernel.gram(np.asarray(model._kernel_rows(x, start.kernel))),  # type: ignore[union-attr]
            int(settings.steps_per_epoch),
            np.random.default_rng([start.seed, processes.rank]),
            make_engine(settings).device,
            processes,
        )
        return train(model, start, settings, callbacks, source=source)


def _loader_settings(model: Any, loader: Any, given: dict[str, bool]) -> Settings:
    """Return the settings, and refuse what needs rows that can be asked for again."""
    settings = Settings.of(model)
    wishes = given | {
        "early_stopping=True": settings.early_stopping is True,
        "validation_fraction": bool(settings.validation_fraction),
        "distillation": bool(settings.distillation),
        "missing='mask'": model.missing == "mask",
        "steps_per_epoch='pairs'": settings.steps_per_epoch == "pairs",
    }
    if refused := [name for name, is_wished in wishes.items() if is_wished]:
        raise ValueError(
            f"X is an iterable of batches, and {refused[0]} needs rows that can be asked for "
            "again: leave it out, or pass an array of rows, such as a memmap"
        )
    n_steps: Any = settings.steps_per_epoch
    if n_steps == "samples":
        if not hasattr(loader, "__len__"):
            raise ValueError(
                "steps_per_epoch='samples' needs the number of batches, and X has no length: pass "
                "a number"
            )
        n_steps = len(loader)
    n_steps = N_LOADER_STEPS if n_steps == "auto" else n_steps
    return replace(settings, steps_per_epoch=n_steps, early_stopping=False)


class LabelledRows(NamedTuple):
    """Rows, and their labels if they have any."""

    rows: NDArray[Any]
    labels: Any = None


def _first_batches(
    loader: Iterable[Any], processes: Processes
) -> tuple[Iterator[NDArray[Any]], LabelledRows]:
    """Return all batches, without end if they can be had again, and the first ones as rows.

    Of several processes, each with batches of its own, the rows of the first count.
    """
    iterator, head, n_numbers = iter(loader), [], 0
    for number, item in enumerate(iterator):
        head.append(read_batch(item, number))
        n_numbers += head[-1].rows.size
        n_rows = sum(len(batch.rows) for batch in head)
        if n_rows >= N_HEAD_ROWS or n_numbers >= N_HEAD_NUMBERS:
            break
    if not head:
        raise ValueError("X is an iterable without batches: pass one that gives at least one")
    _check_shapes(head)
    if iterator is loader:  # it can be read once, and that has begun
        rest = (read_batch(item, number) for number, item in enumerate(iterator, len(head)))
        batches: Iterator[LabelledRows] = chain(head, rest)
    else:
        batches = _again_and_again(loader)
    labels = [batch.labels for batch in head]
    joined_labels = None if any(x is None for x in labels) else np.concatenate(labels)
    first = LabelledRows(np.concatenate([batch.rows for batch in head]), joined_labels)
    return (batch.rows for batch in batches), LabelledRows(*processes.first(tuple(first)))


def _again_and_again(loader: Iterable[Any]) -> Iterator[LabelledRows]:
    while True:
        number = -1
        for number, item in enumerate(loader):
            yield read_batch(item, number)
        if number < 0:
            return


def _check_shapes(batches: list[LabelledRows]) -> None:
    shapes = [batch.rows.shape[1:] for batch in batches]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                f"batch {number} of X has rows of shape {shape}, and the first of {shapes[0]}: "
                "pass batches of rows that are alike"
            )


def read_batch(item: Any, number: int) -> LabelledRows:
    """Return what an iterable gives: rows, (rows,) or (rows, labels)."""
    parts = item if isinstance(item, (list, tuple)) else (item,)
    numeric = [p.detach().cpu().numpy() if isinstance(p, torch.Tensor) else p for p in parts]
    if len(parts) not in (1, 2) or np.ndim(numeric[0]) < 2:
        raise ValueError(
            f"batch {number} of X is a {type(item).__name__}: expected rows, as an array or tensor "
            "of at least two dimensions, (rows,) or (rows, labels)"
        )
    rows = np.ascontiguousarray(numeric[0], dtype=np.float32)
    return LabelledRows(rows, np.asarray(numeric[1]) if len(parts) == 2 else None)
