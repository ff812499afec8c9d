"""The whole training of a network: who is held out, what is told, where it runs."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from dkae._runtime.devices import choose_device, single_threaded_blas
from dkae.alignment import make_measure
from dkae.grams import Floats, Gram, Rows
from dkae.networks import check_decoder
from dkae.training.callbacks import EarlyStopping, History
from dkae.training.checkpoint import Checkpoint
from dkae.training.engine import Engine
from dkae.training.fingerprint import fingerprint
from dkae.training.loss import dkae_loss
from dkae.training.optimization import Optimization
from dkae.training.phases import plan_phases
from dkae.training.settings import Settings
from dkae.training.sources import BatchSource, split_rows
from dkae.training.teacher import Teacher
from dkae.training.trainer import Trainer, check_finite, is_finite


class Training:
    """Trains a network in place on the rows X and their Gram matrix, once.

    `rng` draws the rows that are held out, the batches and the noise; differences of rows are
    measured in `unit`; `landmarks` are rows whose kernel values the network uses; `teacher` has
    target codes; `callbacks` are those of the user and the progress bar; the file `checkpoint`
    keeps the state.
    """

    def __init__(
        self,
        network: nn.Module,
        X: Floats,
        gram: Gram,
        settings: Settings,
        *,
        rng: np.random.Generator,
        unit: Tensor | None = None,
        landmarks: Rows | None = None,
        teacher: Teacher | None = None,
        callbacks: Sequence[Any] = (),
        checkpoint: Path | None = None,
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
            listeners.append(Checkpoint(checkpoint, run))
        engine = Engine(choose_device(settings.device), settings.precision, settings.max_grad_norm)
        # Drawn before the state of `rng` is that of a checkpoint: the same rows in each call.
        rows = split_rows(len(X), settings.held_out_fraction, rng)
        source = BatchSource(
            X,
            gram,
            *rows,
            settings.batch_size,
            settings.steps_per_epoch,
            rng,
            engine.device,
            landmarks,
            teacher,
        )
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
            interruption = error
        self.network.eval()
        self.network.zero_grad(set_to_none=True)  # gradients take as much memory as the weights
        if interruption is not None and not is_finite(self.network):
            raise interruption  # such a model is not worth keeping
        check_finite(self.network)
        return interruption
