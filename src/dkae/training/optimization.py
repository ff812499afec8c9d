"""How weights move: the optimizer and the schedule of its learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from dkae._runtime.checks import check_choice

Optimizer = torch.optim.Optimizer
Schedule = torch.optim.lr_scheduler.LRScheduler


def _adam(parameters: Iterable[nn.Parameter], lr: float) -> Optimizer:
    return torch.optim.Adam(parameters, lr, fused=True)  # a third of the time of the default


#: Optimizers by name.
OPTIMIZERS: dict[str, Callable[[Iterable[nn.Parameter], float], Optimizer]] = {"adam": _adam}


def _constant(optimizer: Optimizer, peak: float, n_steps: int) -> Schedule:
    return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)


def _cosine(optimizer: Optimizer, peak: float, n_steps: int) -> Schedule:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)


def _onecycle(optimizer: Optimizer, peak: float, n_steps: int) -> Schedule:
    has_momentum = not {"momentum", "betas"}.isdisjoint(optimizer.defaults)
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        peak,
        # With fewer than ten steps its warm-up of 30 % may be less than one step, which it refuses.
        total_steps=max(n_steps, 10),
        cycle_momentum=has_momentum,
    )


#: Learning-rate schedules by name.
LEARNING_RATES: dict[str, Callable[[Optimizer, float, int], Schedule]] = {
    "constant": _constant,
    "cosine": _cosine,
    "onecycle": _onecycle,
}


@dataclass(frozen=True)
class Optimization:
    """Which optimizer, on which schedule; the estimator's parameters of the same names."""

    optimizer: Any = "adam"
    learning_rate: str = "onecycle"
    learning_rate_init: float = 0.002

    def start(
        self, parameters: Sequence[nn.Parameter], factor: float, n_steps: int
    ) -> tuple[Optimizer, Schedule]:
        """Return the optimizer of a phase of `n_steps` steps, and its schedule."""
        peak = self.learning_rate_init * factor
        is_name = isinstance(self.optimizer, str)
        optimizer = (OPTIMIZERS[self.optimizer] if is_name else self.optimizer)(parameters, peak)
        if not isinstance(optimizer, Optimizer):
            raise ValueError(
                f"optimizer={_name(self.optimizer)} returned a {type(optimizer).__name__}: "
                "expected a torch.optim.Optimizer of the parameters that it is given"
            )
        return optimizer, LEARNING_RATES[self.learning_rate](optimizer, peak, n_steps)


def check_optimizer(optimizer: Any) -> None:
    """Refuse what is neither a name nor a factory."""
    if not callable(optimizer):
        check_choice("optimizer", optimizer, OPTIMIZERS)


def _name(optimizer: Any) -> str:
    return getattr(optimizer, "__name__", repr(optimizer))
