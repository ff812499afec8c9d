r"""How far the Gram matrix C of the codes is from the prior Gram matrix P.

Each measure takes both and returns one number with a gradient in C: 0 if they are proportional,
for any scale of either. Both are tensors; networks and kernels are unknown here.

===================== ======================================================== ===============
Function              What it compares                                         Range
===================== ======================================================== ===============
:func:`frobenius`     the matrices as vectors (Eq. 6 of the paper)             0 to √2
:func:`offdiagonal`   the same without the diagonals                           0 to 2
:func:`centered`      the same after centring in feature space (CKA)           0 to √2
:func:`logdet`        the spectra on a logarithmic scale; C needs full rank    0 to about 3
:func:`von_neumann`   relative entropy of C to P                               0 to log(k / ε)
:func:`jensen_renyi`  entropy of the mean against the mean entropy             0 to 1
:func:`bures`         roots: the distance of two normal distributions          0 to 2
===================== ======================================================== ===============

:func:`alignment` is the cosine of Eq. 7, 1 if they are proportional.
"""

from typing import Any

import torch
from torch import Tensor

from dkae._support.checks import check_choice, check_takes, warn_caller
from dkae.alignment.distances import Measure, alignment, centered, frobenius, offdiagonal
from dkae.alignment.divergences import bures, jensen_renyi, logdet, von_neumann

__all__ = [
    "MEASURES",
    "Measure",
    "alignment",
    "bures",
    "centered",
    "check_width",
    "frobenius",
    "jensen_renyi",
    "logdet",
    "make_measure",
    "offdiagonal",
    "von_neumann",
]

#: The measures by name.
MEASURES: dict[str, Measure] = {
    measure.__name__: measure
    for measure in (frobenius, offdiagonal, centered, logdet, von_neumann, jensen_renyi, bures)
}

_REMEDY = "compute it with torch operations on code_gram, without item, detach or NumPy"


def make_measure(alignment: str | Measure) -> Measure:
    """Return the measure of that name, or a custom one with a check of its results."""
    if callable(alignment):
        check_takes("alignment", alignment, "two Gram matrices", 2)
        return _checked(alignment)
    return MEASURES[check_choice("alignment", alignment, MEASURES)]


def check_width(alignment: str | Measure, n_components: int, batch_size: int) -> None:
    """Warn if codes are too narrow for a measure that needs Gram matrices of full rank."""
    if alignment in ("logdet", logdet) and n_components < batch_size:
        warn_caller(
            "alignment='logdet' needs Gram matrices of full rank, but with n_components="
            f"{n_components} that of batch_size={batch_size} codes is singular: set n_components "
            "to at least batch_size, or choose another measure, such as 'von_neumann'"
        )


def _checked(measure: Measure) -> Measure:
    """Return a measure that raises unless its result is one number with a gradient."""
    name = getattr(measure, "__name__", type(measure).__name__)
    is_first = True

    def checked(code_gram: Tensor, prior_gram: Tensor) -> Tensor:
        nonlocal is_first
        loss: Any = measure(code_gram, prior_gram)
        if not isinstance(loss, Tensor):
            raise ValueError(f"alignment={name} returned {loss!r}, expected a tensor: {_REMEDY}")
        if loss.numel() != 1:
            raise ValueError(
                f"alignment={name} returned a tensor of shape {tuple(loss.shape)}, expected one "
                "number: sum it, or take its mean or norm"
            )
        if code_gram.requires_grad and torch.is_grad_enabled() and not loss.requires_grad:
            raise ValueError(f"alignment={name} has no gradient: {_REMEDY}")
        # Later the trainer looks: a check at every step would wait for the GPU.
        if is_first and not loss.isfinite() and (code_gram + prior_gram).isfinite().all():
            raise ValueError(
                f"alignment={name} returned {loss.item()} at its first call, expected a finite "
                "number: keep divisors, roots and logarithms away from zero"
            )
        is_first = False
        return loss.reshape(())

    return checked
