"""How to train: the estimator's parameters of the same names, checked."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from torch import nn

from dkae._support.checks import check_boolean, check_choice, check_integer, check_number
from dkae._support.devices import PRECISIONS, choose_device
from dkae._support.warning import warn_caller
from dkae.alignment import make_measure
from dkae.networks import Autoencoder, KernelLayer
from dkae.training.optimization import LEARNING_RATES, check_optimizer
from dkae.training.sources import SHUFFLES, batches_per_epoch

#: The epochs of "auto" for a network that is drawn at random, and for one with computed codes.
NETWORK_EPOCHS = {"max_iter": 40, "decoder_max_iter": 10}
KERNEL_LAYER_EPOCHS = {"max_iter": 0, "decoder_max_iter": 10}
#: With fewer rows none can be spared to watch a decoder.
N_HELD_OUT_FROM = 40
#: Where nobody says how many, more would take longer than the epoch that they follow.
N_HELD_OUT_AT_MOST = 10_000


@dataclass(frozen=True)
class Settings:
    """Everything about training that is neither data, kernel nor network.

    The meaning of each is in the docstring of `DeepKernelizedAutoencoder`.
    """

    alignment: Any
    alignment_weight: float
    distillation: float
    batch_size: int
    max_iter: str | int
    steps_per_epoch: str | int
    pretrain_max_iter: int
    decoder_max_iter: str | int
    learning_rate: str
    learning_rate_init: float
    optimizer: Any
    max_grad_norm: float | None
    input_noise: float
    early_stopping: str | bool
    validation_fraction: float | None
    n_iter_no_change: int
    tol: float
    device: Any
    precision: str
    shuffle: str
    compile: bool

    def __post_init__(self) -> None:
        make_measure(self.alignment)
        check_number("alignment_weight", self.alignment_weight, 0, 1)
        check_number("distillation", self.distillation, 0)
        check_integer("batch_size", self.batch_size, at_least=2)
        _check_epochs("max_iter", self.max_iter)
        batches_per_epoch(1, 1, self.steps_per_epoch)
        check_integer("pretrain_max_iter", self.pretrain_max_iter, at_least=0)
        _check_epochs("decoder_max_iter", self.decoder_max_iter)
        if self.max_iter == self.pretrain_max_iter == self.decoder_max_iter == 0:
            raise ValueError(
                "max_iter=0, pretrain_max_iter=0 and decoder_max_iter=0 leave nothing to train: "
                "set one of them to at least 1"
            )
        check_choice("learning_rate", self.learning_rate, LEARNING_RATES)
        check_number("learning_rate_init", self.learning_rate_init, 0, open_low=True)
        check_optimizer(self.optimizer)
        if self.max_grad_norm is not None:
            check_number("max_grad_norm", self.max_grad_norm, 0, open_low=True)
        check_number("input_noise", self.input_noise, 0)
        if not (isinstance(self.early_stopping, str) and self.early_stopping == "auto"):
            check_boolean("early_stopping", self.early_stopping)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, 0, 1, open_high=True)
        if self.early_stopping is True and self.validation_fraction == 0:
            raise ValueError(
                "early_stopping=True needs rows to watch, but validation_fraction=0 holds none "
                "out: use None or a number such as 0.1"
            )
        check_integer("n_iter_no_change", self.n_iter_no_change, at_least=1)
        check_number("tol", self.tol, 0)
        choose_device(self.device)
        check_choice("precision", self.precision, PRECISIONS)
        check_choice("shuffle", self.shuffle, SHUFFLES)
        check_boolean("compile", self.compile)

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return the settings that are the estimator's parameters."""
        values = {field.name: getattr(estimator, field.name) for field in fields(cls)}
        if not (isinstance(estimator.epoch, str) and estimator.epoch == "deprecated"):
            warn_caller("the parameter epoch is now called steps_per_epoch", FutureWarning)
            values["steps_per_epoch"] = estimator.epoch
        # NumPy's numbers would get into the states of optimizer and schedule, and so into files.
        return cls(**{k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()})

    def budget(self, network: nn.Module, n_rows: int) -> Self:
        """Return the settings with what "auto" means for a network and so many rows.

        A network that is drawn at random learns end to end, then its decoder alone. One whose codes
        are computed has only a decoder to learn, which starts as ridge regression: rows are held
        out to see that it gets better.
        """
        is_computed = isinstance(network, KernelLayer)
        automatic: dict[str, Any] = dict(KERNEL_LAYER_EPOCHS if is_computed else NETWORK_EPOCHS)
        can_hold_out = n_rows >= N_HELD_OUT_FROM and self.validation_fraction != 0
        automatic["early_stopping"] = is_computed and can_hold_out
        chosen = {n: v for n, v in automatic.items() if getattr(self, n) == "auto"}
        return replace(self, **chosen)

    def check_encoder(self, network: nn.Module, *, is_started: bool) -> None:
        """Refuse to leave an encoder as it was drawn."""
        if isinstance(network, Autoencoder) and network.n_pretrained == len(network.layers):
            return
        if not (is_started or self.max_iter or self.pretrain_max_iter):
            raise ValueError(
                "max_iter=0 and pretrain_max_iter=0 leave the encoder, or layers of it, untrained: "
                "set one of them to at least 1, or pass a trained network, network=model.network_"
            )

    @property
    def held_out(self) -> tuple[float, int | None]:
        """Share of the rows that is kept for validation, and how many at most."""
        if self.validation_fraction is None:
            return 0.1 if self.early_stopping else 0.0, N_HELD_OUT_AT_MOST
        return float(self.validation_fraction), None


def _check_epochs(name: str, value: Any) -> None:
    if not (isinstance(value, str) and value == "auto"):
        check_integer(name, value, at_least=0)
