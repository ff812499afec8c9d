"""The loss that training minimises: reconstruction and alignment, weighted (Eq. 8)."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dkae.alignment import Measure, frobenius


class Losses(NamedTuple):
    """The loss of a batch and its two terms, each a tensor with one element."""

    total: Tensor
    reconstruction: Tensor
    #: None where no prior was given.
    alignment: Tensor | None


def dkae_loss(
    inputs: Tensor,
    codes: Tensor,
    reconstructions: Tensor,
    prior_gram: Tensor | None,
    alignment_weight: float,
    *,
    measure: Measure = frobenius,
) -> Losses:
    r"""Loss of one batch (Eq. 8); another `measure` takes the place of the paper's L_c.

    .. math::
        L = (1 - \lambda) \frac{1}{kd} \sum_i \| x_i - \tilde x_i \|_2^2
            + \lambda L_c(C_k, P_k), \qquad C_k = c\, c^\top

    The losses are computed in at least float32, also where the network ran in bfloat16. For λ = 0
    the prior may be left out; then L_c is not computed.
    """
    codes, reconstructions = _at_least_float32(codes), _at_least_float32(reconstructions)
    reconstruction = functional.mse_loss(reconstructions, inputs)
    if prior_gram is None:
        if alignment_weight != 0:
            raise ValueError(f"alignment_weight={alignment_weight:g} needs a prior_gram, got None")
        return Losses(reconstruction, reconstruction, None)
    alignment_term = measure(codes @ codes.T, prior_gram)
    # At the ends one term is left out, rather than multiplied by 0: this saves its backward pass.
    if alignment_weight == 0:
        total = reconstruction
    elif alignment_weight == 1:
        total = alignment_term
    else:
        total = (1 - alignment_weight) * reconstruction + alignment_weight * alignment_term
    return Losses(total, reconstruction, alignment_term)


def without_gaps(
    targets: Tensor, outputs: Tensor, weight: Tensor | None, unit: Any = None
) -> tuple[Tensor, Tensor]:
    """Return rows and reconstructions in a unit, with a mean squared error over known entries only.

    Missing entries do not differ. `weight` is the number of entries per known entry, None if no
    entry can be missing; `unit` is a number, a tensor or None for 1.
    """
    if unit is not None:
        unit = unit.to(targets.device) if isinstance(unit, Tensor) else unit
        targets, outputs = targets / unit, outputs / unit
    if weight is None:
        return targets, outputs
    factor = weight.sqrt()
    return factor * torch.where(targets.isnan(), outputs, targets), factor * outputs


def _at_least_float32(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))
