"""What `fit` does: the rows, the kernel and the network of an estimator meet, and train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dkae._support.checks import check_choice, draw_seed
from dkae._support.devices import choose_device
from dkae._support.processes import Processes, joined
from dkae.alignment import check_width
from dkae.grams import Gram, Rows, check_block, read_block, sample_rows
from dkae.kernels import Kernel, gram_of, kernel_named, kernel_of
from dkae.kernels.features import ComputedGram
from dkae.metrics.quality import Quality
from dkae.networks import decode_rows, encode_rows, scaled, seeded
from dkae.networks.statistics import Statistics
from dkae.training import FINE_TUNING, Record
from dkae.training.building import Built, build, built_from, is_own, warn_of_dominance
from dkae.training.callbacks import check_callbacks, wants_progress
from dkae.training.checkpoint import check_path, owned
from dkae.training.fingerprint import check_same_on_all
from dkae.training.progress import show_progress
from dkae.training.run import Training
from dkae.training.settings import Settings
from dkae.training.sources import Source
from dkae.training.teacher import Teacher

#: Training rows whose block of the prior is checked before training and fixes the scale after it.
N_SAMPLE_ROWS = 512
#: Choices of `missing`.
MISSING = ("error", "mask")


@dataclass
class Start:
    """What a training begins with."""

    X: Any
    prior: Gram
    kernel: Kernel | None
    built: Built
    seed: int


def fit_rows(
    model: Any, X: Any, y: object, gram: Any, checkpoint: Any, lower: Any
) -> tuple[KeyboardInterrupt | None, Quality]:
    """Train a model on an array of rows; return what interrupted it, and what it is worth."""
    settings, callbacks = Settings.of(model), listeners_of(model)
    with joined(model.engine, choose_device(model.device)) as processes:
        path = check_path(checkpoint, model.random_state, is_writer=processes.is_first)
        is_warm = model.warm_start and model.__sklearn_is_fitted__()
        X = model._check_rows(X, reset=not is_warm)
        check_same_on_all(processes, model, X)
        start = begin(model, X, y, gram, processes, lower=lower, is_warm=is_warm)
        settings = settings.budget(start.built.network, len(X))
        check_settings(model, settings, start.built, len(X))
        with owned(path):
            return train(model, start, settings, callbacks, checkpoint=path)


def listeners_of(model: Any) -> list[Any]:
    """Return who is told of a model's training."""
    check_choice("missing", model.missing, MISSING)
    callbacks = check_callbacks(model.callbacks)
    if wants_progress(model.verbose):
        callbacks.append(show_progress())
    return callbacks


def begin(
    model: Any,
    X: Any,
    y: object,
    gram: Any,
    processes: Processes,
    *,
    lower: Any = None,
    is_warm: bool = False,
    n_rows: int | None = None,
) -> Start:
    """Fit the kernel and build the network; or take the present ones, if they are to go on.

    `n_rows` is how many rows there will be, if X is a part of them.
    """
    seed = processes.first(draw_seed(model.random_state))
    if is_warm:
        if model.n_components != model.n_components_:
            raise ValueError(
                f"n_components={model.n_components}, but the network that is to go on has "
                f"{model.n_components_}: set n_components={model.n_components_}, or fit anew with "
                "warm_start=False"
            )
        prior = model.prior_gram(X) if gram is None else gram_of(gram, X)
        return Start(X, prior, model.kernel_, built_from(model), seed)
    known = Statistics.of(X)
    model.fill_ = known.mean.astype(np.float32) if model.missing == "mask" else None
    prior, kernel = make_prior(model, X, y, gram)
    if gram is None:
        warn_of_dominance(kernel, known, getattr(model, "feature_names_in_", None))
    return Start(X, prior, kernel, build(model, X, kernel, seed, lower, known, n_rows), seed)


def make_prior(model: Any, X: Any, y: object, gram: Any) -> tuple[Gram, Kernel | None]:
    """Return the Gram matrix of the rows, and the kernel that it is of."""
    if gram is not None:
        prior = gram_of(gram, X)
        return prior, prior.kernel
    seen = model._kernel_rows(X, kernel_named(model))
    kernel = kernel_of(model, seen, y)
    return model._gram_on(kernel, seen), kernel


def check_settings(model: Any, settings: Settings, built: Built, n_rows: int) -> None:
    """Refuse, or warn of, what cannot go well."""
    if settings.alignment_weight > 0 and settings.max_iter:
        check_width(model.alignment, model.n_components, min(model.batch_size, n_rows))
    settings.check_encoder(built.network, is_started=built.is_started)


def train(
    model: Any,
    start: Start,
    settings: Settings,
    callbacks: Sequence[Any],
    *,
    checkpoint: Any = None,
    source: Source | None = None,
    history: Sequence[Record] = (),
) -> tuple[KeyboardInterrupt | None, Quality]:
    """Train, and give the model what was learnt; `history` is that of the training before."""
    rows = sample_rows(len(start.X), N_SAMPLE_ROWS)
    block = read_block(start.prior, rows)
    check_block(block, start.prior.name)
    distils = settings.distillation and settings.alignment_weight
    training = Training(
        start.built.maps,
        start.X,
        start.prior,
        settings,
        rng=np.random.default_rng(start.seed),
        unit=start.built.unit,
        landmarks=_landmarks(start),
        teacher=Teacher.of(start.prior, int(model.n_components), start.seed) if distils else None,
        has_gaps=model.missing == "mask",
        callbacks=callbacks,
        checkpoint=checkpoint,
        source=source,
    )
    # For dropout and its like. Our own networks have none, and fits of them in threads need not
    # wait.
    with seeded(start.seed + 2 if is_own(model.network) else None):
        interruption = training.run()
    model.history_ = [*history, *training.history.records]
    model.n_iter_ = sum(record["phase"] == FINE_TUNING for record in model.history_)
    model.network_, model.scaling_ = start.built.network, start.built.scaling
    model.n_components_, model.kernel_ = int(model.n_components), start.kernel
    model._stored_kernel_values = None  # of a file that this model may have come from
    model._continued = None  # the optimizer of passes before
    return interruption, note_quality(model, start.X[rows], block)


def _landmarks(start: Start) -> Rows | None:
    """Return the landmarks whose kernel values are read from the Gram matrix, if it holds them."""
    return None if isinstance(start.prior, ComputedGram) else start.built.landmarks


def note_quality(model: Any, rows: Any, block: Any) -> Quality:
    """Measure the fit on a sample of the training rows."""
    maps = scaled(model.network_, model.scaling_)
    codes = encode_rows(maps, rows)
    scale = 1.0 if model.scaling_ is None else model.scaling_.scale.cpu().numpy()
    quality = Quality.of(codes, block, rows, decode_rows(maps, codes), scale)
    model.kernel_scale_, model.r2_ = quality.scale, quality.r2
    model.alignment_ = quality.alignment
    model.centered_alignment_ = quality.centered_alignment
    return quality
