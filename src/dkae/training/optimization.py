"""How weights move: the optimizer and the schedule of its learning rate."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from sklearn.base import BaseEstimator
from torch import nn

from dkae._support.checks import check_choice, check_number, check_takes

Optimizer = torch.optim.Optimizer
Schedule = torch.optim.lr_scheduler.LRScheduler


def _adam(parameters: Iterable[nn.Parameter], lr: float) -> Optimizer:
    return torch.optim.Adam(parameters, lr, fused=True)  # a third of the time of the default


def _constant(optimizer: Optimizer, n_steps: int, is_ours: bool) -> Schedule:
    return torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)


def _cosine(optimizer: Optimizer, n_steps: int, is_ours: bool) -> Schedule:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, n_steps)


def _onecycle(optimizer: Optimizer, n_steps: int, is_ours: bool) -> Schedule:
    return torch.optim.lr_scheduler.OneCycleLR(
        optimizer,
        [group["lr"] for group in optimizer.param_groups],
        # With fewer than ten steps its warm-up of 30 % may be less than one step, which it refuses.
        total_steps=max(n_steps, 10),
        cycle_momentum=is_ours,  # a user's optimizer keeps its own momentum
    )


#: Of the schedule without an end: steps of its rise, and those after which its decline sets in.
RISE, DECLINE = 50, 1000


def endless_factor(step: int) -> float:
    """Return the part of the largest rate: up along a line, then down with the root of the step."""
    return min(1.0, (step + 1) / RISE) / math.sqrt(1 + step / DECLINE)


def _endless(optimizer: Optimizer, n_steps: int, is_ours: bool) -> Schedule:
    return torch.optim.lr_scheduler.LambdaLR(optimizer, endless_factor)


#: Learning-rate schedules by name.
LEARNING_RATES: dict[str, Callable[[Optimizer, int, bool], Schedule]] = {
    "constant": _constant,
    "cosine": _cosine,
    "endless": _endless,
    "onecycle": _onecycle,
}


class Optimization(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Which optimizer, on which schedule.

    Parameters
    ----------
    optimizer : "adam" or callable, default="adam"
        A function ``(parameters, lr)`` that returns a torch optimizer is called for each phase.
    learning_rate : {"onecycle", "cosine", "constant", "endless"}, default="onecycle"
        Schedule of the learning rate. "endless" rises over 50 steps and then falls as
        1 / √(1 + t/1000), however many steps there will be. "onecycle" also moves the first moment
        of "adam" between 0.95 and 0.85, as is usual with it.
    learning_rate_init : float, default=0.002
        The (largest) learning rate.
    max_grad_norm : float, optional
        Gradients are clipped to this norm.
    """

    def __init__(
        self,
        optimizer: Any = "adam",
        *,
        learning_rate: str = "onecycle",
        learning_rate_init: float = 0.002,
        max_grad_norm: float | None = None,
    ) -> None:
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.learning_rate_init = learning_rate_init
        self.max_grad_norm = max_grad_norm

    def check(self) -> None:
        """Check the parameters."""
        check_choice("learning_rate", self.learning_rate, LEARNING_RATES)
        check_number("learning_rate_init", self.learning_rate_init, 0, open_low=True)
        if self.max_grad_norm is not None:
            check_number("max_grad_norm", self.max_grad_norm, 0, open_low=True)
        given = self.optimizer
        if callable(given):
            check_takes("optimizer", given, "parameters and a learning rate", 2)
        elif not self._is_adam:
            got = repr(given) if isinstance(given, str) else f"<{type(given).__name__}>"
            raise ValueError(
                f"optimizer={got} is not known: expected 'adam', or a function (parameters, lr) "
                "that makes one for each phase, such as torch.optim.SGD"
            )

    @property
    def _is_adam(self) -> bool:
        return isinstance(self.optimizer, str) and self.optimizer == "adam"

    def start(
        self, parameters: Sequence[nn.Parameter], factor: float, n_steps: int
    ) -> tuple[Optimizer, Schedule]:
        """Return the optimizer of a phase of `n_steps` steps, and its schedule."""
        make = _adam if self._is_adam else self.optimizer
        optimizer = make(parameters, self.learning_rate_init * factor)
        name = getattr(make, "__name__", repr(make))
        if not isinstance(optimizer, Optimizer):
            raise ValueError(
                f"optimizer={name} returned a {type(optimizer).__name__}: expected a "
                "torch.optim.Optimizer of the parameters that it is given"
            )
        given = {id(p) for p in parameters}
        if not all(id(p) in given for group in optimizer.param_groups for p in group["params"]):
            raise ValueError(
                f"optimizer={name} returned an optimizer of other parameters: make a new one of "
                "those that it is given, at each call"
            )
        return optimizer, LEARNING_RATES[self.learning_rate](optimizer, n_steps, self._is_adam)
