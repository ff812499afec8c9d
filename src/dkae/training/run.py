"""The whole training of a network: who is held out, what is told, where it runs."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from dkae._support.devices import choose_device, single_threaded_blas
from dkae._support.processes import DistributedProcesses, local_device, present
from dkae.alignment import make_measure
from dkae.grams import Gram, Rows
from dkae.networks import check_decoder
from dkae.rows import RowArray
from dkae.training.callbacks import EarlyStopping, History
from dkae.training.checkpoint import Checkpoint
from dkae.training.distributed import DistributedEngine
from dkae.training.engine import Engine
from dkae.training.fingerprint import fingerprint
from dkae.training.loss import dkae_loss
from dkae.training.optimization import Optimization
from dkae.training.phases import plan_phases
from dkae.training.prefetch import Prefetching
from dkae.training.settings import Settings
from dkae.training.sources import BatchSource, Source, split_rows
from dkae.training.teacher import Teacher
from dkae.training.trainer import Trainer, check_finite, is_finite


class Training:
    """Trains a network in place on the rows X and their Gram matrix, once.

    `rng` draws the rows that are held out, the batches and the noise; differences of rows are
    measured in `unit`; `landmarks` are rows whose kernel values the network uses; `teacher` has
    target codes; `has_gaps` says that values may be missing; `callbacks` are those of the user and
    the progress bar; the file `checkpoint` keeps the state. `source` has batches of its own, in
    place of those of X.
    """

    def __init__(
        self,
        network: nn.Module,
        X: Any,
        gram: Gram,
        settings: Settings,
        *,
        rng: np.random.Generator,
        unit: Tensor | None = None,
        landmarks: Rows | None = None,
        teacher: Teacher | None = None,
        has_gaps: bool = False,
        callbacks: Sequence[Any] = (),
        checkpoint: Path | None = None,
        source: Source | None = None,
    ) -> None:
        self.network = network
        self.history = History()
        self.phases = plan_phases(network, settings, unit)
        if settings.decoder_max_iter:
            check_decoder(network, X[:2])
        listeners: list[Any] = [self.history]
        if settings.early_stopping:
            listeners.append(EarlyStopping(settings.n_iter_no_change, settings.tol))
        listeners += callbacks
        if checkpoint is not None:  # the last one: it keeps what the others have made of an epoch
            run = fingerprint(network, X, gram, settings, rng)
            listeners.append(Checkpoint(checkpoint, run, present()))
        engine = make_engine(settings)
        if source is None:
            # Drawn before the state of `rng` is that of a checkpoint: the same rows in each call.
            rows = split_rows(len(X), settings.held_out[0], rng, settings.held_out[1])
            source = BatchSource(
                X,
                gram,
                np.sort(rows[0]) if settings.shuffle == "chunks" else rows[0],
                rows[1],
                settings.batch_size,
                settings.steps_per_epoch,
                rng,
                engine.device,
                landmarks,
                teacher,
                settings.shuffle,
                has_gaps,
                engine.processes,
            )
            if isinstance(X, RowArray) or engine.device.type != "cpu":
                source = Prefetching(source)
        loss = partial(dkae_loss, measure=make_measure(settings.alignment))
        optimization = Optimization(
            settings.optimizer, settings.learning_rate, settings.learning_rate_init
        )
        self.trainer = Trainer(network, loss, source, listeners, engine, optimization)

    def run(self) -> KeyboardInterrupt | None:
        """Train, and return the interruption that ended it; the network keeps what it learnt."""
        interruption = None
        try:
            with single_threaded_blas(self.trainer.engine.device):
                self.trainer.run(self.phases)
        except KeyboardInterrupt as error:
            if self.trainer.engine.processes.size > 1:
                raise  # the others wait for this one, and are to hear of it
            interruption = error
        finally:
            if isinstance(self.trainer.source, Prefetching):
                self.trainer.source.close()
        self.network.eval()
        self.network.zero_grad(set_to_none=True)  # gradients take as much memory as the weights
        if interruption is not None and not is_finite(self.network):
            raise interruption  # such a model is not worth keeping
        check_finite(self.network)
        return interruption


def make_engine(settings: Settings) -> Engine:
    """Return the engine of the processes that work together now, or of this one."""
    device, processes = local_device(choose_device(settings.device)), present()
    options = (settings.precision, settings.max_grad_norm, settings.compile)
    if isinstance(processes, DistributedProcesses):
        return DistributedEngine(device, *options, processes)
    return Engine(device, *options)
