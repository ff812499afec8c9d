r"""How good a map is: scorers for searches, and the quality of a fit with its warnings.

Scorers, for ``GridSearchCV(scoring=...)``, are functions ``(estimator, X, y)``; larger is better.
They take a fitted map, or a pipeline that ends in one. Each chooses something else:

================================  =================================  =============================
Score                             compares                           chooses
================================  =================================  =============================
``score`` of a map                codes with the candidate's kernel  n_components, network, epochs
:func:`label_alignment_score`     codes with labels                  γ and the kernel
:func:`reconstruction_r2_score`   reconstructions with rows          decoder, n_components, epochs
================================  =================================  =============================

``score`` is the centred alignment (CKA), what ``GridSearchCV`` takes if you pass no `scoring`. It
compares each candidate with *its own* kernel: it tells how well that kernel is learnt, not how good
it is, and so cannot choose γ. ``docs/yardsticks.md`` has the numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dkae._support.checks import warn_caller
from dkae.grams import Floats, MatrixGram
from dkae.kernels import ideal_kernel
from dkae.metrics.grams import centered_alignment, code_gram, compare_grams, constant_alignment
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
        comparison = compare_grams(code_gram(codes), MatrixGram(prior_gram))
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


# --- scorers -------------------------------------------------------------------------------------


def label_alignment_score(estimator: Any, X: Any, y: Any = None) -> float:
    r"""Return the centred alignment in [0, 1] of the codes with the ideal kernel of labels.

    .. math:: A(HCH, HK_IH), \qquad (K_I)_{ij} = 1 \text{ if } y_i = y_j \text{, else } 0

    The target is the same for every kernel, so it **can choose γ** and the kernel: it prefers the
    one under which rows of a class are alike. It does not look at reconstructions.

    Parameters
    ----------
    estimator : transformer
        Any fitted estimator with `transform`.
    X : array-like of shape (n_samples, n_features)
        Rows to compare on. Time is O(n²), memory is not.
    y : array-like of shape (n_samples,)
        Labels. -1, None and NaN mean no label, as in `dkae.kernels.ideal_kernel`; of two classes,
        one may be called -1.
    """
    if y is None:
        raise ValueError("label_alignment_score needs labels: pass y, as in search.fit(X, y)")
    _check_methods(estimator, "transform")
    codes = np.asarray(estimator.transform(X))
    # Without known rows the kernel uses positions: of X it needs only the length.
    ideal = ideal_kernel(y).fit(None).on(range(len(codes)))
    return max(0.0, centered_alignment(code_gram(codes), ideal))


def reconstruction_r2_score(estimator: Any, X: Any, y: object = None) -> float:
    r"""Return R² of ``inverse_transform(transform(X))``; see `reconstruction_r2`.

    .. math:: 1 - \frac{\sum_i \| x_i - \hat x_i \|^2}{\sum_i \| x_i - \bar x \|^2}

    It chooses what decodes best: the decoder, n_components, the number of epochs. The target is the
    same for every kernel, but it **does not look at the kernel**: it prefers the γ and λ that
    restrict reconstructions least. Choose γ by it only if reconstruction is all that you need.

    Parameters
    ----------
    estimator : model with `transform` and `inverse_transform`
        Fitted. All steps of a pipeline are inverted: errors are in the units of X.
    X : array-like of shape (n_samples, ...)
        Rows. All features are pooled, each counts by its variance.
    y : object
        Ignored.
    """
    _check_methods(estimator, "transform", "inverse_transform")
    return reconstruction_r2(X, estimator.inverse_transform(estimator.transform(X)))


def _check_methods(estimator: Any, *methods: str) -> None:
    missing = [method for method in methods if not hasattr(estimator, method)]
    if missing:
        raise ValueError(
            f"estimator={type(estimator).__name__} has no {' and no '.join(missing)}: pass a "
            "fitted map, such as DeepKernelizedAutoencoder"
        )
