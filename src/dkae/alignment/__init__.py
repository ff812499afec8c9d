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

from dkae.alignment.distances import alignment, centered, frobenius, offdiagonal
from dkae.alignment.divergences import bures, jensen_renyi, logdet, von_neumann
from dkae.alignment.measures import MEASURES, Measure, check_width, make_measure

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
