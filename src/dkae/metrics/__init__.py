r"""Measures of the quality of a code space, one function each.

Gram matrices are passed as :data:`GramLike`: an (n, n) array, or an object that is read block by
block, such as ``kernel.on(X)`` or :func:`code_gram` of codes. They must be symmetric and are read
tile by tile, so that nothing of size n × n is built; time is O(n²).

=============================  ====  ==========================================
Measure                        best  worst (for positive semi-definite matrices)
=============================  ====  ==========================================
:func:`kernel_alignment` A     1     0; constant codes have `constant_alignment`
:func:`alignment_loss` L_c     0     √2
:func:`centered_alignment`     1     0; constant codes have 0
:func:`relative_error`         0     1
=============================  ====  ==========================================

``score`` of a map is the centred alignment of its codes with its kernel. For
``GridSearchCV(scoring=...)`` there are :func:`label_alignment_score`, which can choose γ, and
:func:`reconstruction_r2_score`; see `dkae.metrics.scorers`.
"""

from sklearn.manifold import trustworthiness

from dkae.grams import GramLike
from dkae.metrics.clusters import ClusteringScores, cluster_accuracy, clustering_scores
from dkae.metrics.codes import alignment_loss_curve, code_gram
from dkae.metrics.comparison import GramComparison, compare_grams
from dkae.metrics.grams import (
    alignment_loss,
    centered_alignment,
    constant_alignment,
    ideal_loss,
    kernel_alignment,
    mean_over_blocks,
    relative_error,
)
from dkae.metrics.quality import Quality
from dkae.metrics.reconstructions import psnr, reconstruction_error, reconstruction_r2
from dkae.metrics.scorers import label_alignment_score, reconstruction_r2_score

__all__ = [
    "ClusteringScores",
    "GramComparison",
    "GramLike",
    "Quality",
    "alignment_loss",
    "alignment_loss_curve",
    "centered_alignment",
    "cluster_accuracy",
    "clustering_scores",
    "code_gram",
    "compare_grams",
    "constant_alignment",
    "ideal_loss",
    "kernel_alignment",
    "label_alignment_score",
    "mean_over_blocks",
    "psnr",
    "reconstruction_error",
    "reconstruction_r2",
    "reconstruction_r2_score",
    "relative_error",
    "trustworthiness",
]
