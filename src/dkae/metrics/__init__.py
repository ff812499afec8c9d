r"""Measures of the quality of a code space, one function each.

Gram matrices are passed as :data:`GramLike`: an (n, n) array, or an object that is read block by
block, such as ``kernel.on(X)`` or :func:`code_gram` of codes. They must be symmetric and are read
tile by tile, so that nothing of size n × n is built; time is O(n²). :func:`compare_grams` returns
all measures of a pair at once.

=============================  ====  ==========================================
Measure                        best  worst (for positive semi-definite matrices)
=============================  ====  ==========================================
:func:`kernel_alignment` A     1     0; constant codes have `constant_alignment`
:func:`alignment_loss` L_c     0     √2
:func:`centered_alignment`     1     0; constant codes have 0
=============================  ====  ==========================================

``score`` of a map is the centred alignment of its codes with its kernel. For
``GridSearchCV(scoring=...)`` there are :func:`label_alignment_score`, which can choose γ, and
:func:`reconstruction_r2_score`; see `dkae.metrics.quality`.
"""

from dkae.grams import GramLike
from dkae.metrics.grams import (
    GramComparison,
    alignment_loss,
    centered_alignment,
    code_gram,
    compare_grams,
    constant_alignment,
    kernel_alignment,
)
from dkae.metrics.quality import Quality, label_alignment_score, reconstruction_r2_score
from dkae.metrics.reconstructions import reconstruction_error, reconstruction_r2

__all__ = [
    "GramComparison",
    "GramLike",
    "Quality",
    "alignment_loss",
    "centered_alignment",
    "code_gram",
    "compare_grams",
    "constant_alignment",
    "kernel_alignment",
    "label_alignment_score",
    "reconstruction_error",
    "reconstruction_r2",
    "reconstruction_r2_score",
]
