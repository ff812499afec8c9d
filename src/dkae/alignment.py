r"""How far the Gram matrix of the codes is from the prior, and the loss that training minimises.

With the code Gram :math:`C` and the prior Gram :math:`P`, the kernel alignment and the normalised
Frobenius distance of the paper (Eqs. 6 and 7) are

.. math::
    A(C, P) = \frac{\langle C, P \rangle_F}{\|C\|_F \|P\|_F}, \qquad
    L_c(C, P) = \left\| \frac{C}{\|C\|_F} - \frac{P}{\|P\|_F} \right\|_F = \sqrt{2 - 2 A(C, P)} .

The code uses the left form of :math:`L_c`. The right one subtracts two nearly equal numbers where
:math:`C` approaches :math:`P` (in float32 it cannot tell losses below 5e-4 from zero) and has an
infinite slope there; the norm of the difference has neither hazard.

Only tensors are known here, neither networks nor kernels.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Losses", "alignment", "alignment_loss", "dkae_loss", "reconstruction_loss"]


class Losses(NamedTuple):
    """The loss of a batch and its two terms, each a tensor with one element."""

    total: Tensor
    reconstruction: Tensor
    #: None where no prior was given.
    alignment: Tensor | None


def alignment(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Kernel alignment :math:`A(C, P)` (Eq. 7): 1 if proportional, 0 if one of them is zero."""
    return (_unit(code_gram) * _unit(prior_gram)).sum().clamp(-1.0, 1.0)


def alignment_loss(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Normalised Frobenius distance :math:`L_c(C, P)` (Eq. 6).

    It is 0 if and only if the matrices are proportional with a positive factor, and at most
    :math:`\sqrt 2` if both are positive semi-definite. A zero matrix has no direction: its
    distance to any other is 1, and its gradient is finite.
    """
    distance: Tensor = torch.linalg.vector_norm(_unit(code_gram) - _unit(prior_gram))
    return distance


def reconstruction_loss(inputs: Tensor, reconstructions: Tensor) -> Tensor:
    r"""Squared error (Eq. 3) averaged over the k·d entries, as in Eq. 8.

    .. math:: \frac{1}{kd} \sum_{i=1}^{k} \| x_i - \tilde x_i \|_2^2
    """
    return torch.nn.functional.mse_loss(reconstructions, inputs)


def dkae_loss(
    inputs: Tensor,
    codes: Tensor,
    reconstructions: Tensor,
    prior_gram: Tensor | None,
    alignment_weight: float,
) -> Losses:
    r"""Loss of one batch (Eq. 8).

    .. math::
        L = (1 - \lambda) \frac{1}{kd} \sum_i \| x_i - \tilde x_i \|_2^2
            + \lambda L_c(C_k, P_k), \qquad C_k = c\, c^\top

    The losses are computed in at least float32, also where the network ran in bfloat16. For λ = 0
    the prior may be left out; then L_c is not computed.
    """
    codes, reconstructions = _at_least_float32(codes), _at_least_float32(reconstructions)
    reconstruction = reconstruction_loss(inputs, reconstructions)
    if prior_gram is None:
        if alignment_weight != 0:
            raise ValueError(f"alignment_weight={alignment_weight:g} needs a prior_gram, got None")
        return Losses(reconstruction, reconstruction, None)
    alignment_term = alignment_loss(codes @ codes.T, prior_gram)
    # At the ends one term is left out, rather than multiplied by 0: this saves its backward pass.
    if alignment_weight == 0:
        total = reconstruction
    elif alignment_weight == 1:
        total = alignment_term
    else:
        total = (1 - alignment_weight) * reconstruction + alignment_weight * alignment_term
    return Losses(total, reconstruction, alignment_term)


def _unit(gram: Tensor) -> Tensor:
    """Return the matrix scaled to Frobenius norm 1, and a zero matrix as it is."""
    # The largest entry is divided out first: squares of entries beyond 1e±19 leave float32.
    largest = gram.detach().abs().amax()
    gram = gram / torch.where(largest > 0, largest, torch.ones_like(largest))
    norm = torch.linalg.vector_norm(gram)
    return gram / torch.where(norm > 0, norm, torch.ones_like(norm))


def _at_least_float32(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))
