"""One training from beginning to end: the trainer, its callbacks, its checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from dkae._support.devices import choose_device
from dkae._support.processes import local_device, present
from dkae.alignment import make_measure
from dkae.rows import RowArray
from dkae.training.batches import Source
from dkae.training.callbacks import History, Record
from dkae.training.checkpoint import Checkpoint
from dkae.training.engine import Engine
from dkae.training.loss import dkae_loss
from dkae.training.phases import Phase
from dkae.training.prefetch import Prefetching
from dkae.training.settings import Settings
from dkae.training.trainer import Trainer, check_finite, is_finite


class Outcome(NamedTuple):
    """History and end of a training."""

    records: list[Record]
    #: Ctrl-C, if it ended the training.
    interruption: KeyboardInterrupt | None


class Keeping(NamedTuple):
    """The file that keeps the state of a training, and the fingerprint of the run."""

    path: Path
    run: dict[str, Any]


def train(
    network: nn.Module,
    phases: Sequence[Phase],
    source: Source,
    settings: Settings,
    callbacks: Sequence[Any] = (),
    keeping: Keeping | None = None,
) -> Outcome:
    """Train a network in place, and return its history; Ctrl-C keeps the steps so far.

    `callbacks` are those of the user and the progress bar.
    """
    history = History()
    listeners: list[Any] = [history, *callbacks]
    if keeping is not None:  # the last one: it keeps what the others made of an epoch
        listeners.append(Checkpoint(keeping.path, keeping.run, present()))
    device, optimization = training_device(settings.device), settings.optimization
    engine = Engine(device, optimization.max_grad_norm, present())
    if isinstance(getattr(source, "X", None), RowArray) or device.type != "cpu":
        source = Prefetching(source)
    loss = partial(dkae_loss, measure=make_measure(settings.alignment))
    trainer = Trainer(network, loss, source, listeners, engine, optimization)
    interruption = None
    try:
        with engine.running():
            trainer.run(phases)
    except KeyboardInterrupt as error:
        if engine.processes.size > 1:
            raise  # the others wait for this process, and must learn of it
        interruption = error
    finally:
        if isinstance(source, Prefetching):
            source.close()
    network.eval()
    network.zero_grad(set_to_none=True)  # gradients take as much memory as the weights
    if interruption is not None and not is_finite(network):
        raise interruption  # such a model is not worth keeping
    check_finite(network)
    return Outcome(history.records, interruption)


def training_device(device: Any) -> torch.device:
    """Return the device of this process."""
    return local_device(choose_device(device))
