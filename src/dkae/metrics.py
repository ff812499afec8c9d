r"""Measures of what a code space is worth, one function for each.

Gram matrices are passed as :data:`GramLike`: an (n, n) array, or an object that is read block by
block, such as ``kernel.on(X)`` or :func:`code_gram` of codes. They are taken to be symmetric and
are gone through tile by tile, so that nothing of size n × n is built; time is O(n²).

===========================  ====  ==========================================
Measure                      best  worst (for positive semi-definite matrices)
===========================  ====  ==========================================
:func:`alignment`            1     0
:func:`centered_alignment`   1     0
:func:`alignment_loss`       0     √2
:func:`relative_error`       0     1
===========================  ====  ==========================================

Measures of clusters against classes are in :mod:`dkae.agreement`, and here by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import trustworthiness
from sklearn.utils import check_array, check_random_state

from dkae.agreement import ClusteringScores, cluster_accuracy, clustering_scores, count_labels
from dkae.checks import check_integer, check_number
from dkae.comparison import Doubles, GramLike, as_prior, check_sizes, compare, tiles
from dkae.kernels.base import Prior, Rows
from dkae.kernels.features import FeaturePrior
from dkae.kernels.labels import ideal_gram

__all__ = [
    "ClusteringScores",
    "GramLike",
    "alignment",
    "alignment_loss",
    "alignment_loss_curve",
    "centered_alignment",
    "cluster_accuracy",
    "clustering_scores",
    "code_gram",
    "ideal_loss",
    "mean_over_blocks",
    "psnr",
    "reconstruction_error",
    "relative_error",
    "trustworthiness",
]

#: Entries of X that are looked at together: 8 MB in float64.
N_CHUNK_ENTRIES = 2**20
#: Rows of codes that are looked at together.
N_CHUNK_ROWS = 1024


# --- two Gram matrices ---------------------------------------------------------------------------


def alignment(a: GramLike, b: GramLike) -> float:
    r"""Return the kernel alignment (Eq. 7): the cosine of the angle between two matrices.

    .. math:: A(a, b) = \frac{\langle a, b \rangle_F}{\|a\|_F \|b\|_F}

    It is 1 if they are proportional, and 0 if one of them is zero.
    """
    return compare(a, b).alignment


def centered_alignment(a: GramLike, b: GramLike) -> float:
    r"""Return the alignment of the centred matrices, known as CKA.

    .. math:: A(HaH, HbH), \qquad H = I - \tfrac 1 n \mathbf 1 \mathbf 1^\top

    It is 0 if one of the centred matrices is zero, up to 1e-6 of the norm of the matrix itself.
    """
    return compare(a, b).centered_alignment


def alignment_loss(a: GramLike, b: GramLike) -> float:
    r"""Return the normalised Frobenius distance of two matrices (Eq. 6).

    .. math::
        L_c(a, b) = \left\| \frac{a}{\|a\|_F} - \frac{b}{\|b\|_F} \right\|_F = \sqrt{2 - 2 A(a, b)}

    Small losses keep their digits. A zero matrix has no direction: its distance to any other is 1.
    """
    return compare(a, b).alignment_loss


def relative_error(a: GramLike, b: GramLike) -> float:
    r"""Return the relative Frobenius error of `a` as an approximation of `b`, up to scale.

    .. math::
        \frac{\|s a - b\|_F}{\|b\|_F}, \qquad s = \frac{\langle a, b \rangle}{\langle a, a \rangle}
    """
    comparison = compare(a, b)
    if comparison.bb == 0:
        raise ValueError(
            "b is zero everywhere, and no error is relative to zero: pass a matrix that is not"
        )
    return comparison.relative_error


def ideal_loss(gram: GramLike, y: Any) -> float:
    """Return L_c of a Gram matrix against the ideal kernel of labels: 1 for the same label, else 0.

    Parameters
    ----------
    gram : GramLike of n rows
        For instance ``code_gram(codes)``.
    y : array-like of shape (n,)
        Labels; -1, None and NaN stand for no label, as in `dkae.kernels.ideal_gram`.
    """
    prior = as_prior(gram, "gram")
    n_labels = count_labels(y, "y")
    if n_labels != len(prior):
        raise ValueError(
            f"y has {n_labels} labels, but gram has {len(prior)} rows: pass one label for each row"
        )
    # Without rows of its own the kernel goes by their order, and looks at nothing but their number.
    ideal = ideal_gram(y).fit(None).on(range(n_labels))
    return compare(prior, ideal, ("gram", "the ideal kernel of y")).alignment_loss


def mean_over_blocks(
    measure: Callable[[GramLike, GramLike], float],
    a: GramLike,
    b: GramLike,
    block_size: int = 200,
    random_state: int | np.random.RandomState | None = None,
) -> float:
    """Return the mean of a measure over blocks of rows, as training sees the matrices.

    Parameters
    ----------
    measure : callable
        A measure of two Gram matrices, such as `alignment_loss`; it gets the blocks as arrays.
    a, b : GramLike of n rows
        Only the blocks are read.
    block_size : int, default=200
        k, at most n. The rows are shuffled and cut into ⌊n/k⌋ blocks; those left over are dropped.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.
    """
    pair = (as_prior(a, "a", check_entries=False), as_prior(b, "b", check_entries=False))
    check_sizes(pair, ("a", "b"))
    k, n = check_integer("block_size", block_size, at_least=1), len(pair[0])
    if k > n:
        raise ValueError(f"block_size={k} is more than the {n} rows of a and b: pass at most {n}")
    order: Rows = check_random_state(random_state).permutation(n)[: n - n % k]
    blocks = order.reshape(-1, k)
    return float(np.mean([measure(*(gram.block(rows) for gram in pair)) for rows in blocks]))


# --- codes ---------------------------------------------------------------------------------------


def code_gram(codes: Any) -> Prior:
    """Return the Gram matrix of codes, ``codes @ codes.T``, to be read block by block.

    Parameters
    ----------
    codes : array-like of shape (n, n_components)
        Codes, or any other features.
    """
    return FeaturePrior(_check_codes(codes), "the Gram matrix of codes")


def alignment_loss_curve(codes: Any, prior: GramLike) -> Doubles:
    r"""Return L_c of the first m components of the codes, for every m, in one pass over the prior.

    With the components :math:`z_i`, the columns of the codes :math:`Z`, and
    :math:`Z_m = (z_1, \dots, z_m)`,

    .. math::
        \langle Z_m Z_m^\top, P \rangle = \sum_{i \le m} z_i^\top P z_i, \qquad
        \| Z_m Z_m^\top \|^2 = \| Z_m^\top Z_m \|^2 = \sum_{i, j \le m} (z_i^\top z_j)^2 .

    Parameters
    ----------
    codes : array-like of shape (n, n_components)
        Codes, the most important component first, such as scores of kernel PCA.
    prior : GramLike of n rows
        Gram matrix that they should represent.

    Returns
    -------
    array of shape (n_components,)
        The losses for m = 1, 2, ...; values below 1e-7 cannot be told from zero.
    """
    Z, P = _check_codes(codes), as_prior(prior, "prior")
    check_sizes((FeaturePrior(Z, "codes"), P), ("codes", "prior"))
    with_prior, prior_squares = np.zeros(Z.shape[1]), 0.0
    for tile in tiles((P,), ("prior",)):
        (values,) = tile.values
        left, right = (Z[part].astype(np.float64) for part in (tile.rows, tile.columns))
        with_prior += tile.weight * np.einsum("im,im->m", left, values @ right)
        prior_squares += tile.weight * float(np.vdot(values, values))
    squares = _products_of_columns(Z) ** 2
    code_norms = np.sqrt(squares.cumsum(axis=0).cumsum(axis=1).diagonal())
    return _losses(with_prior.cumsum(), code_norms, math.sqrt(prior_squares))


def _products_of_columns(Z: NDArray[Any]) -> Doubles:
    """Return ZᵀZ in float64, from chunks of rows: there is no copy of the codes in float64."""
    products = np.zeros((Z.shape[1], Z.shape[1]))
    for start in range(0, len(Z), N_CHUNK_ROWS):
        chunk = Z[start : start + N_CHUNK_ROWS].astype(np.float64)
        products += chunk.T @ chunk
    return products


def _losses(products: Doubles, code_norms: Doubles, prior_norm: float) -> Doubles:
    """Return √(2 - 2A), and the distance to a zero matrix as `alignment_loss` has it."""
    norms = code_norms * prior_norm
    cosines = np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0)
    losses: Doubles = np.sqrt(2 - 2 * np.clip(cosines, -1, 1))
    losses[norms == 0] = ((code_norms > 0) != (prior_norm > 0))[norms == 0]
    return losses


def _check_codes(codes: Any) -> NDArray[Any]:
    checked: NDArray[Any] = check_array(codes, dtype=[np.float32, np.float64], input_name="codes")
    return checked


# --- reconstructions -----------------------------------------------------------------------------


def reconstruction_error(X: Any, X_hat: Any) -> float:
    r"""Return the mean squared error over all entries (Eq. 3, averaged as in Eq. 8).

    .. math:: \frac{1}{nd} \sum_{i=1}^{n} \| x_i - \hat x_i \|^2

    Parameters
    ----------
    X, X_hat : array-like of the same shape, with rows along the first axis
        Rows and their reconstructions. There is no copy of them in float64, only one of few rows.
    """
    a, b = _check_numbers(X, "X"), _check_numbers(X_hat, "X_hat")
    if a.shape != b.shape:
        raise ValueError(
            f"X has shape {a.shape}, but X_hat has shape {b.shape}: pass a reconstruction of each "
            "row, in the same order"
        )
    step = max(1, N_CHUNK_ENTRIES * len(a) // a.size)
    total = 0.0
    for start in range(0, len(a), step):
        rows = slice(start, start + step)
        difference = _finite_chunk(a[rows], "X") - _finite_chunk(b[rows], "X_hat")
        total += float(np.vdot(difference, difference))
    return total / a.size


def psnr(X: Any, X_hat: Any, peak: float = 1.0) -> float:
    r"""Return the peak signal-to-noise ratio in decibels; infinite if nothing was lost.

    .. math:: 10 \log_{10} \frac{\text{peak}^2}{\text{MSE}}

    Parameters
    ----------
    X, X_hat : array-like of the same shape
        Rows and their reconstructions.
    peak : float, default=1.0
        The range of the values: 1 for pixels in [0, 1], 255 for bytes.
    """
    peak = check_number("peak", peak, 0, open_low=True)
    error = reconstruction_error(X, X_hat)
    return 20 * math.log10(peak) - 10 * math.log10(error) if error > 0 else math.inf


def _check_numbers(X: Any, name: str) -> NDArray[Any]:
    values = np.asarray(X)
    if values.dtype.kind not in "buif":
        raise ValueError(f"{name} has entries of type {values.dtype}: pass real numbers")
    if values.ndim == 0:
        raise ValueError(f"{name} is a single number: pass an array with one row for each sample")
    if values.size == 0:
        raise ValueError(f"{name} has shape {values.shape} and is empty: pass at least one entry")
    return values


def _finite_chunk(values: NDArray[Any], name: str) -> Doubles:
    chunk = values.astype(np.float64)
    if not np.isfinite(chunk).all():
        raise ValueError(f"{name} has NaN or infinite values: leave out or impute these rows")
    return chunk
