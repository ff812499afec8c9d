r"""How good a fit is, on a sample of its rows, and a warning if it is bad.

.. math:: R^2 = 1 - \frac{\sum_{ij} (x_{ij} - \tilde x_{ij})^2 / s_j^2}
    {\sum_{ij} (x_{ij} - \bar x_j)^2 / s_j^2}

with the scales s that the network sees features in. Missing values do not count.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkae._support.warning import warn_caller
from dkae.grams import Floats, MatrixGram
from dkae.metrics.comparison import compare_grams

#: A deviation below this part of the numbers themselves is round-off.
ROUND_OFF = 1e-14


@dataclass(frozen=True)
class Quality:
    """What codes and reconstructions of a sample are worth."""

    #: A(C, P), the alignment of codes with the kernel, and the same of centred matrices.
    alignment: float
    centered_alignment: float
    #: A(C, 1), the alignment of codes with a constant kernel.
    constant_alignment: float
    #: Of the reconstructions.
    r2: float
    #: ⟨C, P⟩ / ⟨C, C⟩, the factor between inner products of codes and the kernel.
    scale: float

    @classmethod
    def of(
        cls, codes: Floats, prior_gram: Floats, rows: Floats, decoded: Floats, scale: Any = 1.0
    ) -> "Quality":
        """Measure codes against the Gram matrix of the rows, and decoded rows against rows."""
        comparison = compare_grams(codes, MatrixGram(prior_gram))
        ones = MatrixGram(np.ones_like(prior_gram))
        return cls(
            alignment=max(0.0, comparison.alignment),
            centered_alignment=max(0.0, comparison.centered_alignment),
            constant_alignment=compare_grams(codes, ones).alignment,
            r2=r_squared(rows, decoded, scale),
            scale=comparison.scale,
        )

    def warn_if_bad(self, alignment_weight: float) -> None:
        """Warn if codes are nearer to a constant kernel than to theirs, or do not decode."""
        if alignment_weight > 0 and self.alignment < self.constant_alignment:
            warn_caller(
                f"the codes are nearer to a constant kernel (alignment "
                f"{self.constant_alignment:.3f}) than to the kernel ({self.alignment:.3f}): train "
                "for longer (max_iter), raise n_components or alignment_weight, or scale X",
                ConvergenceWarning,
            )
        if alignment_weight < 1 and self.r2 < 0:
            warn_caller(
                f"the reconstructions are worse than the mean of the rows (R² = {self.r2:.3g}): "
                "train for longer (max_iter, decoder_max_iter), raise n_components, or lower "
                "alignment_weight",
                ConvergenceWarning,
            )


def r_squared(rows: Floats, decoded: Floats, scale: Any = 1.0) -> float:
    """Return R² over all entries, each feature in units of `scale`; 0 where nothing varies."""
    flat = [np.asarray(a, dtype=np.float64).reshape(len(a), -1) for a in (rows, decoded)]
    x, y = (a / np.reshape(scale, -1) for a in flat)
    known = np.isfinite(x)
    n = np.maximum(known.sum(axis=0), 1)
    deviation = np.where(known, x - np.where(known, x, 0).sum(axis=0) / n, 0)
    error = np.where(known, x - y, 0)
    total = float(np.square(deviation).sum())
    # What is round-off of equal numbers does not count.
    least = ROUND_OFF**2 * float(np.square(np.where(known, x, 0)).sum())
    return 1 - float(np.square(error).sum()) / total if total > least else 0.0
