"""The whole training of a network: hold rows out, pretrain, train end to end, then the decoder."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkae._runtime.devices import choose_device, single_threaded_blas
from dkae.kernels.base import Floats, Prior, Rows
from dkae.networks.stacked import Autoencoder
from dkae.training.batches import Batch, BatchSource, batches_per_epoch
from dkae.training.checkpoint import Checkpoint, NoCheckpoint
from dkae.training.decoding import train_decoder
from dkae.training.fingerprint import fingerprint
from dkae.training.loop import check_finite, train
from dkae.training.pretraining import pretrain
from dkae.training.progress import Progress, Record
from dkae.training.settings import Settings

__all__ = ["FINE_TUNING", "run_training"]

#: Name in the history of the training end to end.
FINE_TUNING = "fine-tuning"


def run_training(
    network: Autoencoder,
    X: Floats,
    prior: Prior,
    settings: Settings,
    *,
    rng: np.random.Generator,
    progress: Progress,
    checkpoint: Path | None = None,
    n_given: int = 0,
) -> list[Record]:
    """Pretrain and train the network in place, and return the history.

    Ctrl-C ends the training with what was learnt so far, and a warning. With the path of a
    checkpoint it is an error as any other: the next call with this path goes on. The lowest
    `n_given` layers are not pretrained.
    """
    device = choose_device(settings.device)
    history: list[Record] = []
    keeper = NoCheckpoint()
    if checkpoint is not None:
        run = fingerprint(network, X, prior, settings, rng) | {"pretrained layers": n_given}
        keeper = Checkpoint(checkpoint, network, rng, history, run)
    # Drawn before the state of `rng` is that of a checkpoint: the same rows in each call.
    train_rows, held_out_rows = split_rows(len(X), settings.held_out_fraction, rng)
    source, held_out = (
        BatchSource(X, prior, rows, batch_size=settings.batch_size, rng=rng, device=device)
        for rows in (train_rows, held_out_rows)
    )
    shared: dict[str, Any] = {
        "n_steps": batches_per_epoch(len(train_rows), settings.batch_size, settings.epoch),
        "validation": held_out.blocks if len(held_out_rows) else None,
        "history": history,
        "progress": progress,
        "checkpoint": keeper,
    }
    network.to(device)
    try:
        with progress, single_threaded_blas(device):
            _run_phases(network, source, settings, n_given, shared)
    except KeyboardInterrupt:
        if checkpoint is not None:
            raise
        warnings.warn(
            f"training was interrupted after {len(history)} finished epochs: the model is usable "
            "with what it had learnt so far",
            ConvergenceWarning,
            stacklevel=4,
        )
    network.eval()
    network.zero_grad(set_to_none=True)  # gradients take as much memory as the weights
    check_finite(network)
    return history


def _run_phases(
    network: Autoencoder,
    source: BatchSource,
    settings: Settings,
    n_given: int,
    shared: dict[str, Any],
) -> None:
    """Pretrain layer by layer, train end to end, then the decoder; each may be left out."""

    def draw(with_prior: bool) -> Batch:
        return source.draw(with_prior, input_noise=settings.input_noise)

    if settings.pretrain_max_iter:
        pretrain(network, source.draw, settings, n_given=n_given, **shared)
    if settings.max_iter:
        train(network, draw, settings, phase=FINE_TUNING, n_epochs=settings.max_iter, **shared)
    if settings.decoder_max_iter:
        train_decoder(network, draw, settings, **shared)


def split_rows(n_rows: int, fraction: float, rng: np.random.Generator) -> tuple[Rows, Rows]:
    """Return the rows to train on and a random `fraction` of the rows to hold out."""
    # The Gram matrix of a single row is aligned with any other.
    n_held_out = max(2, math.ceil(fraction * n_rows)) if fraction else 0
    if n_rows - n_held_out < 2:
        raise ValueError(
            f"validation_fraction={fraction:g} of {n_rows} rows leaves fewer than 2 rows to train "
            "on: lower it or pass more rows"
        )
    rows = rng.permutation(n_rows) if n_held_out else np.arange(n_rows)
    return rows[n_held_out:], rows[:n_held_out]
