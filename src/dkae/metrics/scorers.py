r"""Scorers for ``GridSearchCV(scoring=...)``: functions ``(estimator, X, y)``, larger is better.

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

from typing import Any

import numpy as np

from dkae.metrics.codes import code_gram
from dkae.metrics.grams import compare_with_labels
from dkae.metrics.reconstructions import reconstruction_r2


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
    return max(0.0, compare_with_labels(code_gram(codes), y).centered_alignment)


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
