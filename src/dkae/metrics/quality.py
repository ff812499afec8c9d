"""How good a fit is, on a sample of its rows, and a warning if it is bad."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkae._support.warning import warn_caller
from dkae.grams import Floats, MatrixGram
from dkae.metrics.codes import code_gram
from dkae.metrics.comparison import compare_grams
from dkae.metrics.grams import constant_alignment
from dkae.metrics.reconstructions import reconstruction_r2


@dataclass(frozen=True)
class Quality:
    """The measures of codes and reconstructions of a sample."""

    #: A(C, P), the alignment of codes with the kernel, and the same of centred matrices.
    alignment: float
    centered_alignment: float
    #: A(C, 11ᵀ), the alignment of codes with a constant kernel.
    constant_alignment: float
    #: R² of the reconstructions; NaN if the map has none.
    r2: float
    #: ⟨C, P⟩ / ⟨C, C⟩, the factor between inner products of codes and the kernel.
    scale: float
    #: Whether the kernel has the same value for all pairs of rows, up to round-off.
    is_constant: bool = False

    @classmethod
    def of(
        cls,
        codes: Floats,
        prior_gram: Floats,
        rows: Floats,
        decoded: Floats | None,
        scale: Any = None,
    ) -> "Quality":
        """Measure codes against the Gram matrix of the rows, and decoded rows against rows.

        R² counts features in units of `scale`; see `reconstruction_r2`.
        """
        comparison = compare_grams(codes, MatrixGram(prior_gram))
        return cls(
            alignment=max(0.0, comparison.alignment),
            centered_alignment=max(0.0, comparison.centered_alignment),
            constant_alignment=constant_alignment(code_gram(codes)),
            r2=np.nan if decoded is None else reconstruction_r2(rows, decoded, scale=scale),
            scale=comparison.scale,
            is_constant=comparison.n > 1 and comparison.centered[2] == 0,
        )

    def warn_if_bad(self, alignment_weight: float | None = None) -> None:
        """Warn if codes cannot tell rows apart, are far from the kernel, or do not decode.

        `alignment_weight` is λ of a map that is trained, None of one whose codes are computed.
        """
        is_trained = alignment_weight is not None
        if alignment_weight != 0 and self.is_constant:
            _warn(
                "the kernel is constant on these rows, so that codes cannot tell them apart: scale "
                "X (standardize=True), or choose gamma or another kernel"
            )
        elif alignment_weight != 0 and self.alignment < self.constant_alignment:
            remedy = "train for longer (max_iter), raise alignment_weight, " if is_trained else ""
            _warn(
                "the codes are nearer to a constant kernel (alignment "
                f"{self.constant_alignment:.3f}) than to the kernel ({self.alignment:.3f}): "
                f"{remedy}raise n_components, or scale X (standardize=True)"
            )
        if alignment_weight != 1 and self.r2 < 0:
            trained = "train for longer (max_iter, decoder_max_iter), lower alignment_weight"
            _warn(
                f"the reconstructions are worse than the mean of the rows (R² = {self.r2:.3g}): "
                f"{trained if is_trained else 'choose another decoder'}, or raise n_components"
            )


def _warn(message: str) -> None:
    warn_caller(message, ConvergenceWarning)
