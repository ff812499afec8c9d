r"""Distances of directions: Eq. 6 of the paper, and two variants that ignore part of the matrices.

With the code Gram :math:`C` and the prior Gram :math:`P`, the kernel alignment and the normalised
Frobenius distance of the paper (Eqs. 6 and 7) are

.. math::
    A(C, P) = \frac{\langle C, P \rangle_F}{\|C\|_F \|P\|_F}, \qquad
    L_c(C, P) = \left\| \frac{C}{\|C\|_F} - \frac{P}{\|P\|_F} \right\|_F = \sqrt{2 - 2 A(C, P)} .

The code uses the left form of :math:`L_c`. The right one subtracts two nearly equal numbers where
:math:`C` approaches :math:`P` (in float32 losses below 5e-4 are round-off) and has an
infinite slope there; the norm of the difference has neither problem.
"""

import functools
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor

#: Takes the code Gram and the prior Gram, returns one number with a gradient in the code Gram.
Measure: TypeAlias = Callable[[Tensor, Tensor], Tensor]

#: A centred matrix is round-off and counts as zero if no entry exceeds this many units of the
#: type's precision, relative to the largest entry before centring.
CENTERED_ROUND_OFF = 8.0


def of_blocks(measure: Measure) -> Measure:
    """Return a measure that raises unless it gets two Gram matrices of the same rows."""

    @functools.wraps(measure)
    def checked(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
        for name, gram in (("code_gram", code_gram), ("prior_gram", prior_gram)):
            if not isinstance(gram, Tensor) or not gram.is_floating_point() or gram.ndim != 2:
                raise TypeError(
                    f"{name} is a {type(gram).__name__}: pass a matrix of floats, as a torch tensor"
                )
        n, shapes = len(code_gram), {tuple(code_gram.shape), tuple(prior_gram.shape)}
        if shapes != {(n, n)}:
            raise ValueError(
                f"code_gram has shape {tuple(code_gram.shape)}, and prior_gram "
                f"{tuple(prior_gram.shape)}: pass square matrices of the same rows"
            )
        return measure(code_gram, prior_gram)

    return checked


@of_blocks
def alignment(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Kernel alignment :math:`A(C, P)` (Eq. 7): 1 if proportional, 0 if one of them is zero."""
    return (_unit(code_gram) * _unit(prior_gram)).sum().clamp(-1.0, 1.0)


@of_blocks
def frobenius(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Normalised Frobenius distance :math:`L_c(C, P)` (Eq. 6).

    It is 0 if and only if the matrices are proportional with a positive factor, and at most
    :math:`\sqrt 2` if both are positive semi-definite. A zero matrix has no direction: its
    distance to any other is 1, and its gradient is finite.
    """
    distance: Tensor = torch.linalg.vector_norm(_unit(code_gram) - _unit(prior_gram))
    return distance


@of_blocks
def offdiagonal(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Normalised Frobenius distance (Eq. 6) of the matrices without their diagonals.

    .. math:: L_c(C - \operatorname{diag} C,\; P - \operatorname{diag} P)

    A block has k entries on the diagonal and k² - k off it, so the diagonal weighs n / k times
    as much as in the matrix of all n rows. Near the minimum the gradients of blocks then average
    to another direction than the gradient of all pairs: a cosine of 0.78 at L_c = 0.05, and of
    0.99 without the diagonals (``benchmarks/alignment_measures.py``). The norms of codes are free.
    """
    return frobenius(_without_diagonal(code_gram), _without_diagonal(prior_gram))


@of_blocks
def centered(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
    r"""Normalised Frobenius distance (Eq. 6) of the doubly centred matrices.

    .. math:: L_c(HCH, HPH) = \sqrt{2 - 2\,\mathrm{CKA}(C, P)}, \qquad H = I - \tfrac1k 1 1^\top

    It does not see where the origin of code space is.
    """
    return frobenius(_centered(code_gram), _centered(prior_gram))


def _unit(gram: Tensor) -> Tensor:
    """Return the matrix scaled to Frobenius norm 1, and a zero matrix as it is."""
    # The largest entry is divided out first: float32 has no squares of entries beyond 1e±19.
    largest = gram.detach().abs().amax()
    gram = gram / torch.where(largest > 0, largest, torch.ones_like(largest))
    norm = torch.linalg.vector_norm(gram)
    return gram / torch.where(norm > 0, norm, torch.ones_like(norm))


def _without_diagonal(gram: Tensor) -> Tensor:
    return gram - torch.diag(gram.diagonal())


def _centered(gram: Tensor) -> Tensor:
    # One mean after the other: the second is then of small numbers.
    result = gram - gram.mean(dim=0, keepdim=True)
    result = result - result.mean(dim=1, keepdim=True)
    # Round-off must not count as a direction: its gradient would be huge.
    largest, left = gram.detach().abs().amax(), result.detach().abs().amax()
    return result * (left > CENTERED_ROUND_OFF * torch.finfo(gram.dtype).eps * largest)
