r"""Scorers for ``GridSearchCV(scoring=...)``: functions ``(estimator, X, y)``, larger is better.

They take a fitted `DeepKernelizedAutoencoder`, or a pipeline that ends in one. What they can choose
is not the same:

================================  ===================================  ==========================
Scorer                            compares codes with                  can it choose γ?
================================  ===================================  ==========================
``score`` of the estimator        the kernel of the candidate          no: near-constant ones win
:func:`centered_alignment_score`  the candidate's kernel, centred      no, but its floor is 0
:func:`label_alignment_score`     labels, the same for all candidates  yes
:func:`reconstruction_r2_score`   X, the same for all candidates       for the way back only
================================  ===================================  ==========================

As γ → 0 an RBF kernel becomes constant, and constant codes align with it. Without its mean it is
linear in ⟨x, y⟩, which codes learn easily too. A score that each candidate has with its own kernel
says how well that kernel is learnt, not how good it is. ``docs/yardsticks.md`` has the numbers.
"""

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from dkae.metrics.codes import code_gram, reconstruction_r2
from dkae.metrics.comparison import compare
from dkae.metrics.grams import compare_with_labels


def centered_alignment_score(estimator: Any, X: Any, y: object = None) -> float:
    r"""Return the centred alignment (CKA) in [0, 1] of the codes with the kernel on X.

    .. math:: A(HCH, HPH), \qquad C_{ij} = c(x_i)^\top c(x_j), \quad P_{ij} = \kappa(x_i, x_j)

    Constant codes have 0 here, not the floor near 1 that they have in ``score``. Use it to choose
    what belongs to one kernel: N_c, layers, λ, epochs. It **cannot choose γ**, nor between kernels,
    because each candidate is compared with its own. Near-constant RBF kernels are linear once they
    are centred: with ``alignment="centered"`` they win, with other losses, which hardly see what is
    not constant, they lose a little. Kernels near the identity always lose.

    Parameters
    ----------
    estimator : DeepKernelizedAutoencoder or Pipeline
        Fitted; a pipeline's last step is the model, and its kernel sees what the other steps give.
    X : array-like of shape (n_samples, n_features)
        Rows to compare on. Time is O(n²), memory is not: Gram matrices are read tile by tile.
    y : object
        Ignored.
    """
    head, model = split_pipeline(estimator)
    check_has_kernel(model, "estimator")
    rows = X if head is None else head.transform(X)
    prior = model.prior_gram(rows)  # first, because it raises if the kernel is missing
    comparison = compare(code_gram(model.transform(rows)), prior, ("codes", "prior"))
    return max(0.0, comparison.centered_alignment)


def label_alignment_score(estimator: Any, X: Any, y: Any = None) -> float:
    r"""Return the centred alignment in [0, 1] of the codes with the ideal kernel of labels.

    .. math:: A(HCH, HK_IH), \qquad (K_I)_{ij} = 1 \text{ if } y_i = y_j \text{, else } 0

    The target is the same for every kernel, so that it **can choose γ** and between kernels: it
    prefers the one under which rows of a class are alike. It does not look at the way back.

    Parameters
    ----------
    estimator : transformer
        Anything fitted with `transform`.
    X : array-like of shape (n_samples, n_features)
        Rows to compare on. Time is O(n²), memory is not.
    y : array-like of shape (n_samples,)
        Labels. -1, None and NaN mean no label, as in `dkae.kernels.ideal_kernel`; if there are two
        classes, -1 and another, that changes nothing.
    """
    if y is None:
        raise ValueError("label_alignment_score needs labels: pass y, as in search.fit(X, y)")
    _check_methods(estimator, "transform")
    codes = np.asarray(estimator.transform(X))
    return max(0.0, compare_with_labels(code_gram(codes), y).centered_alignment)


def reconstruction_r2_score(estimator: Any, X: Any, y: object = None) -> float:
    r"""Return R² of the way back, ``inverse_transform(transform(X))``; see `reconstruction_r2`.

    .. math:: 1 - \frac{\sum_i \| x_i - \hat x_i \|^2}{\sum_i \| x_i - \bar x \|^2}

    It chooses N_c, layers and epochs for the way back. The target is the same for every kernel, so
    that values can be compared; but it **does not look at the kernel**, and prefers the γ and the λ
    that hold the network back least. Choose γ by it only if the way back is all that you need.

    Parameters
    ----------
    estimator : model with `transform` and `inverse_transform`
        Fitted. Of a pipeline all steps are inverted: errors are in the units of X.
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
            "fitted model with it, such as DeepKernelizedAutoencoder"
        )


def check_has_kernel(model: Any, name: str) -> None:
    """Refuse a model without a kernel that codes could be compared with."""
    if not hasattr(model, "prior_gram"):
        raise ValueError(
            f"{name}={type(model).__name__} has no kernel to compare codes with: pass a "
            "DeepKernelizedAutoencoder, or a Pipeline whose last step is one"
        )


def split_pipeline(estimator: Any) -> tuple[Any, Any]:
    """Return the steps before the last (None if there are none) and the last step, the model."""
    if not isinstance(estimator, Pipeline):
        return None, estimator
    return (estimator[:-1] if len(estimator) > 1 else None), estimator[-1]
