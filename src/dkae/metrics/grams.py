r"""How close two Gram matrices a and b of n rows are, without an n × n array.

Both must be symmetric. They are read once, tile by tile, and only sums in float64 are kept; time
is O(n²). With the angle θ between the matrices as vectors of n² numbers,

.. math::
    A = \cos\theta = \frac{\langle a, b \rangle}{\|a\| \|b\|}, \qquad
    \sin^2\theta = \frac{\min_s \| b - s a \|^2}{\|b\|^2}, \qquad
    L_c = \sqrt{2 - 2 A} = \sin\theta \sqrt{\frac{2}{1 + A}} .

The last form does not subtract nearly equal numbers: small losses keep their digits.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from dkae._support.arrays import check_magnitude, finite_numbers, naming, real_numbers
from dkae.grams import FeatureGram, Gram, GramLike, as_gram, check_block_shape
from dkae.rows import RowArray, is_row_array

Doubles = NDArray[np.float64]

#: Rows of a tile: a tile in float64 is 8 MB.
N_TILE_ROWS = 1024
#: A centred matrix with less than this part of ‖a‖² is round-off and counts as zero.
CENTERED_ROUND_OFF = 1e-12
#: A tile with a larger sum of squares is searched for entries that are not finite or too large.
MOST_SQUARES = 1e200


def code_gram(codes: Any) -> Gram:
    """Return the Gram matrix of codes, ``codes @ codes.T``, read block by block.

    Parameters
    ----------
    codes : array-like of shape (n, n_components)
        Codes, or any other features. If they are on a disk, only the rows of a block are read.
    """
    with naming("codes", codes):
        if is_row_array(codes):
            codes = RowArray(codes)
        else:
            codes = check_array(codes, dtype=[np.float32, np.float64], input_name="codes")
    return FeatureGram(codes, "the Gram matrix of codes")


@dataclass(frozen=True)
class GramComparison:
    """The numbers that every measure of the pair (a, b) follows from."""

    #: The inner products ⟨a, a⟩, ⟨a, b⟩ and ⟨b, b⟩.
    aa: float
    ab: float
    bb: float
    #: The least ‖b - s a‖² over all factors s.
    residual: float
    #: The inner products of the centred matrices HaH and HbH, H = I - 11ᵀ / n.
    centered: tuple[float, float, float]
    #: The sum of all entries of b.
    total: float
    #: The number n of rows.
    n: int

    @property
    def alignment(self) -> float:
        """A(a, b) of Eq. 7; 0 where one of the matrices is zero."""
        return _cosine(self.aa, self.ab, self.bb)

    @property
    def centered_alignment(self) -> float:
        """A(HaH, HbH); 0 where one of the centred matrices is zero."""
        return _cosine(*self.centered)

    @property
    def constant_alignment(self) -> float:
        """A(11ᵀ, b): the alignment of constant codes, the floor of `alignment`."""
        # ⟨11ᵀ, b⟩ = Σ_ij b_ij, and ‖11ᵀ‖ = n.
        return _cosine(float(self.n) ** 2, self.total, self.bb)

    @property
    def alignment_loss(self) -> float:
        """L_c(a, b) of Eq. 6. A zero matrix has no direction: its distance to any other is 1."""
        if self.aa == 0 or self.bb == 0:
            return float(self.aa != self.bb)
        if self.alignment < 0:
            return math.sqrt(2 - 2 * self.alignment)
        sine = math.sqrt(min(1.0, self.residual / self.bb))
        return sine * math.sqrt(2 / (1 + self.alignment))

    @property
    def scale(self) -> float:
        """The factor s that makes s a nearest to b: ⟨a, b⟩ / ⟨a, a⟩."""
        return self.ab / self.aa if self.aa > 0 else 1.0


def compare_grams(a: GramLike, b: GramLike, names: tuple[str, str] = ("a", "b")) -> GramComparison:
    """Compare two symmetric matrices; error messages call them by `names`."""
    pair = as_gram(a, names[0]), as_gram(b, names[1])
    n = len(pair[0])
    if n != len(pair[1]):
        raise ValueError(
            f"{names[0]} has {n} rows, but {names[1]} has {len(pair[1])}: both must belong to the "
            "same rows"
        )
    aa = ab = bb = residual = 0.0
    row_sums = np.zeros((2, n))
    for rows, columns in _tiles(n):
        x, y = (_read(g, rows, columns, name) for g, name in zip(pair, names, strict=True))
        weight = 1 if rows == columns else 2  # a tile below the diagonal has a mirror image
        xx, xy, yy = (weight * float(np.vdot(u, v)) for u, v in ((x, x), (x, y), (y, y)))
        # With its own best factor t a tile leaves ‖y - t x‖². The common factor s adds (s - t)²
        # times the weights of both, as for the pooled variance of two samples: every term is
        # positive, nothing cancels.
        t = xy / xx if xx > 0 else 0.0
        rest = y - t * x
        residual += weight * float(np.vdot(rest, rest))
        if aa > 0 and xx > 0:
            residual += (ab / aa - t) ** 2 * xx * (aa / (aa + xx))
        aa, ab, bb = aa + xx, ab + xy, bb + yy
        row_sums[:, rows] += [x.sum(axis=1), y.sum(axis=1)]
        if weight == 2:
            row_sums[:, columns] += [x.sum(axis=0), y.sum(axis=0)]
    centered = _centered(np.array([[aa, ab], [ab, bb]]), row_sums)
    return GramComparison(aa, ab, bb, residual, centered, float(row_sums[1].sum()), n)


def kernel_alignment(a: GramLike, b: GramLike) -> float:
    r"""Return the kernel alignment A (Eq. 7): the cosine of the angle between two matrices.

    .. math:: A(a, b) = \frac{\langle a, b \rangle_F}{\|a\|_F \|b\|_F}

    It is 1 if they are proportional, and 0 if one of them is zero. Compare it with its floor,
    `constant_alignment` of the prior.
    """
    return compare_grams(a, b).alignment


def constant_alignment(gram: GramLike) -> float:
    r"""Return the alignment of a Gram matrix with a constant one: the floor of `kernel_alignment`.

    .. math:: A(\mathbf 1 \mathbf 1^\top, P) = \frac{\sum_{ij} P_{ij}}{n \, \|P\|_F}

    Codes that are the same for every row reach it: only the part above the floor was learnt.
    """
    checked = as_gram(gram, "gram")
    ones = code_gram(np.ones((len(checked), 1), np.float32))
    return compare_grams(ones, checked, ("constant", "gram")).alignment


def centered_alignment(a: GramLike, b: GramLike) -> float:
    r"""Return the alignment of the centred matrices, known as CKA.

    .. math:: A(HaH, HbH), \qquad H = I - \tfrac 1 n \mathbf 1 \mathbf 1^\top

    It is 0 if one of the centred matrices is zero, up to 1e-6 of the norm of the matrix itself.
    """
    return compare_grams(a, b).centered_alignment


def alignment_loss(a: GramLike, b: GramLike) -> float:
    r"""Return the normalised Frobenius distance of two matrices (Eq. 6).

    .. math::
        L_c(a, b) = \left\| \frac{a}{\|a\|_F} - \frac{b}{\|b\|_F} \right\|_F = \sqrt{2 - 2 A(a, b)}

    Small losses keep their digits. A zero matrix has no direction: its distance to any other is 1.
    """
    return compare_grams(a, b).alignment_loss


# --- tile by tile ---------------------------------------------------------------------------------


def _tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Yield the rows and columns of the tiles on and below the diagonal."""
    parts = [slice(i, min(i + N_TILE_ROWS, n)) for i in range(0, n, N_TILE_ROWS)]
    return ((rows, columns) for i, rows in enumerate(parts) for columns in parts[: i + 1])


def _read(gram: Gram, rows: slice, columns: slice, name: str) -> Doubles:
    """Return a tile in float64, checked."""
    ids, others = (np.arange(part.start, part.stop) for part in (rows, columns))
    block = gram.block(ids, None if rows == columns else others)
    tile: Doubles = real_numbers(block, name).astype(np.float64, copy=False)
    check_block_shape(tile, ids, others, name)
    # One sum clears ordinary tiles: squares do not cancel, and NaN and infinity carry over.
    if not np.vdot(tile, tile) < MOST_SQUARES:
        finite_numbers(tile, name, "check the kernel and the rows that it was computed from")
        check_magnitude(tile, name)
    return tile


def _centered(products: Doubles, row_sums: Doubles) -> tuple[float, float, float]:
    """Return ⟨HaH, HaH⟩, ⟨HaH, HbH⟩ and ⟨HbH, HbH⟩; round-off counts as zero."""
    # ⟨HaH, HbH⟩ = ⟨a, b⟩ - (2/n) Σ_i ra_i rb_i + sa sb / n², with row sums r and totals s.
    n, totals = row_sums.shape[1], row_sums.sum(axis=1)
    centered = products - 2 / n * row_sums @ row_sums.T + np.outer(totals, totals) / n**2
    is_round_off = centered.diagonal() <= CENTERED_ROUND_OFF * products.diagonal()
    aa, bb = np.where(is_round_off, 0, centered.diagonal())
    return float(aa), float(centered[0, 1]), float(bb)


def _cosine(aa: float, ab: float, bb: float) -> float:
    norms = math.sqrt(aa) * math.sqrt(bb)
    return max(-1.0, min(1.0, ab / norms)) if norms > 0 else 0.0
