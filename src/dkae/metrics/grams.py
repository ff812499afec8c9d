"""How close two Gram matrices are, one function for each measure.

Matrices must be symmetric and are read tile by tile; time is O(n²).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dkae._support.checks import check_integer, check_state, check_takes
from dkae.grams import GramLike, Rows, as_gram
from dkae.kernels import ideal_kernel
from dkae.metrics.clusters import count_labels
from dkae.metrics.codes import code_gram
from dkae.metrics.comparison import GramComparison, check_sizes, compare


def kernel_alignment(a: GramLike, b: GramLike) -> float:
    r"""Return the kernel alignment A (Eq. 7): the cosine of the angle between two matrices.

    .. math:: A(a, b) = \frac{\langle a, b \rangle_F}{\|a\|_F \|b\|_F}

    It is 1 if they are proportional, and 0 if one of them is zero. Compare it with its floor,
    `constant_alignment` of the prior.
    """
    return compare(a, b).alignment


def constant_alignment(gram: GramLike) -> float:
    r"""Return the alignment of a Gram matrix with a constant one: the floor of `kernel_alignment`.

    .. math:: A(\mathbf 1 \mathbf 1^\top, P) = \frac{\sum_{ij} P_{ij}}{n \, \|P\|_F}

    Codes that are the same for every row reach it: only the part above the floor was learnt.
    """
    checked = as_gram(gram, "gram")
    ones = code_gram(np.ones((len(checked), 1), np.float32))
    return compare(ones, checked, ("constant", "gram")).alignment


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
    """Return L_c of a Gram matrix against the ideal kernel: 1 for the same label, else 0.

    Parameters
    ----------
    gram : GramLike of n rows
        For instance ``code_gram(codes)``.
    y : array-like of shape (n,)
        Labels; -1, None and NaN mean no label, as in `dkae.kernels.ideal_kernel`.
    """
    return compare_with_labels(gram, y).alignment_loss


def compare_with_labels(gram: GramLike, y: Any) -> GramComparison:
    """Compare a Gram matrix with the ideal kernel of the labels of its rows."""
    checked = as_gram(gram, "gram")
    n_labels = count_labels(y, "y")
    if n_labels != len(checked):
        raise ValueError(
            f"y has {n_labels} labels, but gram has {len(checked)} rows: pass one label for each "
            "row"
        )
    # Without known rows the kernel uses positions: of X it needs only the length.
    ideal = ideal_kernel(y).fit(None).on(range(n_labels))
    return compare(checked, ideal, ("gram", "the ideal kernel of y"))


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
        k, at most n. The rows are shuffled and cut into ⌊n/k⌋ blocks; the rest is dropped.
    random_state : int, RandomState or None, default=None
        Seed of the shuffling.
    """
    check_takes("measure", measure, "two Gram matrices", 2)
    pair = (as_gram(a, "a", check_entries=False), as_gram(b, "b", check_entries=False))
    check_sizes(pair, ("a", "b"))
    k, n = check_integer("block_size", block_size, at_least=1), len(pair[0])
    if k > n:
        raise ValueError(f"block_size={k} is more than the {n} rows of a and b: pass at most {n}")
    order: Rows = check_state(random_state).permutation(n)[: n - n % k]
    blocks = order.reshape(-1, k)
    return float(np.mean([measure(*(gram.block(rows) for gram in pair)) for rows in blocks]))
