"""How to train: the estimator's parameters of the same names, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
import torch

from dkae._runtime.checks import check_boolean, check_choice, check_integer, check_number
from dkae._runtime.devices import PRECISIONS, choose_device
from dkae.training.batches import batches_per_epoch

__all__ = ["LEARNING_RATES", "Optimizer", "Schedule", "Settings"]

Optimizer = torch.optim.Optimizer
Schedule = torch.optim.lr_scheduler.LRScheduler


def _constant(optimizer: Optimizer, peak: float, n_steps: int) -> Schedule:
    return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)


def _cosine(optimizer: Optimizer, peak: float, n_steps: int) -> Schedule:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)


def _onecycle(optimizer: Optimizer, peak: float, n_steps: int) -> Schedule:
    # With fewer than ten steps its warm-up of 30 % may be less than one step, which it refuses.
    return torch.optim.lr_scheduler.OneCycleLR(optimizer, peak, total_steps=max(n_steps, 10))


#: Learning-rate schedules by name.
LEARNING_RATES: dict[str, Callable[[Optimizer, float, int], Schedule]] = {
    "constant": _constant,
    "cosine": _cosine,
    "onecycle": _onecycle,
}


@dataclass(frozen=True)
class Settings:
    """Everything about training that is neither data, kernel nor network.

    The meaning of each is in the docstring of `DeepKernelizedAutoencoder`.
    """

    alignment_weight: float
    batch_size: int
    max_iter: int
    epoch: str | int
    pretrain_max_iter: int
    decoder_max_iter: int
    learning_rate: str
    learning_rate_init: float
    max_grad_norm: float | None
    input_noise: float
    early_stopping: bool
    validation_fraction: float | None
    n_iter_no_change: int
    tol: float
    device: str
    precision: str

    def __post_init__(self) -> None:
        check_number("alignment_weight", self.alignment_weight, 0, 1)
        check_integer("batch_size", self.batch_size, at_least=2)
        check_integer("max_iter", self.max_iter, at_least=0)
        batches_per_epoch(1, 1, self.epoch)
        check_integer("pretrain_max_iter", self.pretrain_max_iter, at_least=0)
        check_integer("decoder_max_iter", self.decoder_max_iter, at_least=0)
        if self.max_iter == self.pretrain_max_iter == self.decoder_max_iter == 0:
            raise ValueError(
                "max_iter=0, pretrain_max_iter=0 and decoder_max_iter=0 leave nothing to train: "
                "set one of them to at least 1"
            )
        check_choice("learning_rate", self.learning_rate, LEARNING_RATES)
        check_number("learning_rate_init", self.learning_rate_init, 0, open_low=True)
        if self.max_grad_norm is not None:
            check_number("max_grad_norm", self.max_grad_norm, 0, open_low=True)
        check_number("input_noise", self.input_noise, 0)
        check_boolean("early_stopping", self.early_stopping)
        if self.validation_fraction is not None:
            check_number("validation_fraction", self.validation_fraction, 0, 1, open_high=True)
        if self.early_stopping and self.validation_fraction == 0:
            raise ValueError(
                "early_stopping=True needs rows to watch, but validation_fraction=0 holds none "
                "out: use None or a number such as 0.1"
            )
        check_integer("n_iter_no_change", self.n_iter_no_change, at_least=1)
        check_number("tol", self.tol, 0)
        choose_device(self.device)
        check_choice("precision", self.precision, PRECISIONS)

    @classmethod
    def of(cls, estimator: object) -> Self:
        """Return the settings that are the estimator's parameters."""
        values = {field.name: getattr(estimator, field.name) for field in fields(cls)}
        # NumPy's numbers would get into the states of optimizer and schedule, and so into files.
        return cls(**{k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()})

    def check_encoder(self, n_given: int, n_layers: int) -> None:
        """Refuse to leave layers of the encoder as they were drawn: all that are not given."""
        if n_given < n_layers and not (self.max_iter or self.pretrain_max_iter):
            raise ValueError(
                f"max_iter=0 and pretrain_max_iter=0 leave {n_layers - n_given} of the {n_layers} "
                "layers of the encoder untrained: set one of them to at least 1, or pass all "
                "layers trained, fit(X, pretrained=network)"
            )

    @property
    def held_out_fraction(self) -> float:
        """Share of the rows that is kept for validation."""
        if self.validation_fraction is None:
            return 0.1 if self.early_stopping else 0.0
        return float(self.validation_fraction)
