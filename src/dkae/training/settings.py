"""How to train: the parameters of a map of the same names, checked."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from dkae._support.checks import check_integer, check_number
from dkae._support.devices import choose_device
from dkae.alignment import make_measure
from dkae.training.batches import batches_per_epoch
from dkae.training.optimization import Optimization


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything about training that is neither data, kernel nor network.

    The docstring of `DeepKernelizedAutoencoder` has the meaning of each.
    """

    alignment: Any = "frobenius"
    alignment_weight: float = 0.0
    batch_size: int = 200
    max_iter: int = 0
    steps_per_epoch: str | int = "auto"
    pretrain_max_iter: int = 0
    decoder_max_iter: int = 0
    input_noise: float = 0.0
    validation_fraction: float = 0.0
    device: Any = "auto"
    optimization: Optimization = field(default_factory=Optimization)

    def __post_init__(self) -> None:
        make_measure(self.alignment)
        check_number("alignment_weight", self.alignment_weight, 0, 1)
        check_integer("batch_size", self.batch_size, at_least=2)
        batches_per_epoch(1, 1, self.steps_per_epoch)
        for name in ("max_iter", "pretrain_max_iter", "decoder_max_iter"):
            check_integer(name, getattr(self, name), at_least=0)
        if self.max_iter == self.pretrain_max_iter == self.decoder_max_iter == 0:
            raise ValueError(
                "max_iter=0, pretrain_max_iter=0 and decoder_max_iter=0 leave nothing to train: "
                "set one of them to at least 1"
            )
        check_number("input_noise", self.input_noise, 0)
        check_number("validation_fraction", self.validation_fraction, 0, 1, open_high=True)
        choose_device(self.device)
        self.optimization.check()

    @classmethod
    def of(cls, model: Any, **others: Any) -> Settings:
        """Return the settings that are parameters of a model; `others` are those that are not."""
        given = Optimization() if model.optimization is None else model.optimization
        if not isinstance(given, Optimization):
            raise ValueError(
                f"optimization is a {type(given).__name__}: pass dkae.training.Optimization(...)"
            )
        names = [f.name for f in fields(cls) if hasattr(model, f.name)]
        values = {name: getattr(model, name) for name in names} | others
        return cls(**_plain(values | {"optimization": Optimization(**_plain(given.get_params()))}))

    def one_pass(self) -> Settings:
        """Return the settings of one epoch over all rows, at a rate that needs to know no end.

        The whole network learns in it if it learns in `fit`, and otherwise the decoder.
        """
        endless = self.optimization.get_params() | {"learning_rate": "endless"}
        return replace(
            self,
            max_iter=int(self.max_iter > 0),
            decoder_max_iter=int(self.max_iter == 0),
            pretrain_max_iter=0,
            optimization=Optimization(**endless),
            steps_per_epoch="samples",
            validation_fraction=0.0,
        )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return values with Python's numbers: those of NumPy would get into optimizers and files."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in values.items()}
