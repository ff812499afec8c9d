r"""Kernels in torch: κ(x, rows) with gradients in x, for those that have a formula.

.. math::
    \text{rbf: } e^{-\gamma \|x - y\|_2^2}, \quad
    \text{laplacian: } e^{-\gamma \|x - y\|_1}, \quad
    \text{poly: } (\gamma x^\top y + c_0)^p, \quad
    \text{sigmoid: } \tanh(\gamma x^\top y + c_0) .
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dkae.grams import Floats
from dkae.kernels.bandwidth import in_units
from dkae.kernels.base import Kernel
from dkae.kernels.labels import IdealKernel
from dkae.kernels.pairwise import PairwiseKernel
from dkae.kernels.precomputed import Precomputed


def _rbf(x: Tensor, y: Tensor, gamma: float) -> Tensor:
    # Around the mean of y: far from the origin, the squares of float32 would cancel.
    mean = y.mean(dim=0)
    x, y = x - mean, y - mean
    squares = x.square().sum(dim=1)[:, None] + y.square().sum(dim=1) - 2 * x @ y.T
    return torch.exp(-gamma * squares.clamp(min=0))


def _laplacian(x: Tensor, y: Tensor, gamma: float) -> Tensor:
    return torch.exp(-gamma * torch.cdist(x, y, p=1))


def _linear(x: Tensor, y: Tensor) -> Tensor:
    return x @ y.T


def _poly(x: Tensor, y: Tensor, gamma: float, degree: float, coef0: float) -> Tensor:
    return (gamma * x @ y.T + coef0) ** degree


def _sigmoid(x: Tensor, y: Tensor, gamma: float, coef0: float) -> Tensor:
    return torch.tanh(gamma * x @ y.T + coef0)


def _cosine(x: Tensor, y: Tensor) -> Tensor:
    return F.normalize(_unit_rows(x)) @ F.normalize(_unit_rows(y)).T


def _unit_rows(x: Tensor) -> Tensor:
    """Return rows in units of their largest entries where squares would leave float32."""
    largest = x.detach().abs().amax(dim=1, keepdim=True)
    is_ordinary = (largest > 1e-9) & (largest < 1e9) | (largest == 0)
    return x / torch.where(is_ordinary, torch.ones_like(largest), largest)


#: The formula of each of scikit-learn's kernels, and the parameters that it has.
FORMULAS: dict[str, tuple[Callable[..., Tensor], tuple[str, ...]]] = {
    "rbf": (_rbf, ("gamma",)),
    "laplacian": (_laplacian, ("gamma",)),
    "linear": (_linear, ()),
    "poly": (_poly, ("gamma", "degree", "coef0")),
    "polynomial": (_poly, ("gamma", "degree", "coef0")),
    "sigmoid": (_sigmoid, ("gamma", "coef0")),
    "cosine": (_cosine, ()),
}


class FormulaRows(nn.Module):
    """κ(x, rows) by a formula, as a torch module that holds the rows."""

    #: It has gradients in x.
    is_smooth = True
    rows: Tensor

    def __init__(self, metric: str, params: dict[str, float], rows: Tensor) -> None:
        super().__init__()
        self.config: dict[str, Any] = {"metric": metric, "params": params}
        self.register_buffer("rows", rows)

    def forward(self, x: Tensor) -> Tensor:
        formula, _ = FORMULAS[self.config["metric"]]
        params: dict[str, Any] = self.config["params"]
        x, rows, gamma = in_units(self.config["metric"], x, self.rows, params.get("gamma"))
        return formula(x, rows, **params if gamma is None else params | {"gamma": gamma})

    def extra_repr(self) -> str:
        return f"{self.config}, {len(self.rows)} rows"


class EvaluatedRows(nn.Module):
    """κ(x, rows) by the kernel itself, in NumPy: no gradients."""

    is_smooth = False
    rows: Tensor

    def __init__(self, kernel: Kernel | None, rows: Floats) -> None:
        super().__init__()
        self.register_buffer("rows", torch.tensor(rows))
        self.kernel: Kernel | None = None
        if kernel is not None:
            self.attach(kernel)

    def attach(self, kernel: Kernel) -> None:
        """Take the kernel, of which a model that was read from a file may know nothing."""
        self.kernel = kernel
        self.towards = kernel.towards(self.rows.numpy())

    def forward(self, x: Tensor) -> Tensor:
        if self.kernel is None:
            raise ValueError(
                "codes are made of values of a kernel that the model's file does not hold: call "
                "model.attach_kernel(kernel) first"
            )
        block = self.towards(x.detach().cpu().numpy())
        return torch.from_numpy(block).to(x.device)

    def __deepcopy__(self, memo: dict[int, Any]) -> EvaluatedRows:
        return copy.copy(self)  # a fitted kernel does not change, and may be large

    def extra_repr(self) -> str:
        return f"{self.kernel}, {len(self.rows)} rows"


class Filled(nn.Module):
    """A function of rows, with missing values taken for `fill`."""

    fill: Tensor

    def __init__(self, function: nn.Module, fill: Tensor) -> None:
        super().__init__()
        self.function = function
        self.is_smooth = function.is_smooth
        self.register_buffer("fill", fill.clone())

    def forward(self, x: Tensor) -> Tensor:
        values: Tensor = self.function(torch.where(x.isnan(), self.fill, x))
        return values


def knows_new_rows(kernel: Kernel | None) -> bool:
    """Say whether a kernel can be evaluated at rows that it has not seen."""
    return kernel is not None and not isinstance(kernel, (Precomputed, IdealKernel))


def has_formula(kernel: Kernel) -> bool:
    """Say whether a kernel can be evaluated in torch; not a subclass, which may differ."""
    return type(kernel) is PairwiseKernel and kernel.metric in FORMULAS


def rows_module(kernel: Kernel, rows: Floats, fill: Tensor | None = None) -> nn.Module:
    """Return κ(x, rows) of a fitted kernel as a torch module, by its formula if it has one.

    Kernels that do not take missing values see `fill` in their place.
    """
    if fill is not None and not kernel.takes_missing:
        known = torch.where(torch.from_numpy(rows).isnan(), fill, torch.from_numpy(rows))
        return Filled(rows_module(kernel, known.numpy()), fill)
    if not has_formula(kernel):
        return EvaluatedRows(kernel, rows)
    return FormulaRows(kernel.metric, formula_params(kernel), torch.tensor(rows))


def formula_params(kernel: Any) -> dict[str, float]:
    """Return the parameters that the formula of a fitted kernel has."""
    params = {"gamma": kernel.gamma_, "degree": kernel.degree, "coef0": kernel.coef0}
    return {name: float(params[name]) for name in FORMULAS[kernel.metric][1]}
