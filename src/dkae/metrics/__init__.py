r"""Measures of the quality of a code space, one function each.

Gram matrices are passed as :data:`GramLike`: an (n, n) array, or an object that is read block by
block, such as ``kernel.on(X)`` or :func:`code_gram` of codes. They must be symmetric and are read
tile by tile, so that nothing of size n × n is built; time is O(n²).

===========================  ====  ==========================================
Measure                      best  worst (for positive semi-definite matrices)
===========================  ====  ==========================================
:func:`alignment`            1     0
:func:`centered_alignment`   1     0
:func:`alignment_loss`       0     √2
:func:`relative_error`       0     1
===========================  ====  ==========================================

For ``GridSearchCV(scoring=...)`` there are :func:`centered_alignment_score`,
:func:`label_alignment_score` and :func:`reconstruction_r2_score`; see `dkae.metrics.scorers` for
what each of them can choose.
"""

from sklearn.manifold import trustworthiness

from dkae.grams import GramLike
from dkae.metrics.clusters import ClusteringScores, cluster_accuracy, clustering_scores
from dkae.metrics.codes import (
    alignment_loss_curve,
    code_gram,
    psnr,
    reconstruction_error,
    reconstruction_r2,
)
from dkae.metrics.comparison import GramComparison, compare_grams
from dkae.metrics.grams import (
    alignment,
    alignment_loss,
    centered_alignment,
    ideal_loss,
    mean_over_blocks,
    relative_error,
)
from dkae.metrics.scorers import (
    centered_alignment_score,
    label_alignment_score,
    reconstruction_r2_score,
)

__all__ = [
    "ClusteringScores",
    "GramComparison",
    "GramLike",
    "alignment",
    "alignment_loss",
    "alignment_loss_curve",
    "centered_alignment",
    "centered_alignment_score",
    "cluster_accuracy",
    "clustering_scores",
    "code_gram",
    "compare_grams",
    "ideal_loss",
    "label_alignment_score",
    "mean_over_blocks",
    "psnr",
    "reconstruction_error",
    "reconstruction_r2",
    "reconstruction_r2_score",
    "relative_error",
    "trustworthiness",
]
