r"""How two Gram matrices a and b of n rows compare, without an n × n array.

Both are read once, tile by tile, and only sums in float64 are kept. With the angle θ between the
matrices as vectors of n² numbers,

.. math::
    A = \cos\theta = \frac{\langle a, b \rangle}{\|a\| \|b\|}, \qquad
    \sin^2\theta = \frac{\min_s \| b - s a \|^2}{\|b\|^2}, \qquad
    L_c = \sqrt{2 - 2 A} = \sin\theta \sqrt{\frac{2}{1 + A}} .

The last form does not subtract nearly equal numbers: small losses keep their digits.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae._support.arrays import check_magnitude, finite_numbers, real_numbers
from dkae.grams import FeatureGram, Floats, Gram, GramLike, as_gram, check_block_shape

Doubles = NDArray[np.float64]

#: Rows of a tile: a tile in float64 is 8 MB.
N_TILE_ROWS = 1024
#: A centred matrix with less than this part of ‖a‖² is round-off and counts as zero.
CENTERED_ROUND_OFF = 1e-12
#: A tile with a larger sum of squares is searched for entries that are not finite or too large.
MOST_SQUARES = 1e200


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
        return self.relative_error * math.sqrt(2 / (1 + self.alignment))

    @property
    def relative_error(self) -> float:
        """‖s a - b‖ / ‖b‖ with the best factor s: the sine of the angle. `b` must not be zero."""
        return math.sqrt(min(1.0, self.residual / self.bb))

    @property
    def scale(self) -> float:
        """The factor s that makes s a nearest to b: ⟨a, b⟩ / ⟨a, a⟩."""
        return self.ab / self.aa if self.aa > 0 else 1.0


def compare_grams(codes: Floats, prior: Gram) -> GramComparison:
    """Compare the Gram matrix of `codes` with the prior that they should represent."""
    return compare(FeatureGram(codes, "codes"), prior, ("codes", "prior"))


def compare(a: GramLike, b: GramLike, names: tuple[str, str] = ("a", "b")) -> GramComparison:
    """Compare two symmetric matrices; error messages call them by `names`."""
    pair = as_gram(a, names[0]), as_gram(b, names[1])
    check_sizes(pair, names)
    sums = _Sums(len(pair[0]))
    for tile in tiles(pair, names):
        sums.add(tile)
    return sums.result()


def check_sizes(pair: tuple[Gram, Gram], names: tuple[str, str]) -> None:
    """Raise if two Gram matrices have different numbers of rows."""
    if len(pair[0]) != len(pair[1]):
        raise ValueError(
            f"{names[0]} has {len(pair[0])} rows, but {names[1]} has {len(pair[1])}: both must "
            "belong to the same rows"
        )


class Tile(NamedTuple):
    """The same tile of several symmetric matrices, in float64."""

    rows: slice
    columns: slice
    values: tuple[Doubles, ...]

    @property
    def weight(self) -> int:
        """How often it counts: a tile below the diagonal stands for its mirror image too."""
        return 1 if self.rows == self.columns else 2


def tiles(grams: Sequence[Gram], names: Sequence[str]) -> Iterator[Tile]:
    """Yield the tiles on and below the diagonal, of all matrices together."""
    n = len(grams[0])
    ranges = [slice(i, min(i + N_TILE_ROWS, n)) for i in range(0, n, N_TILE_ROWS)]
    for i, rows in enumerate(ranges):
        for columns in ranges[: i + 1]:
            named = zip(grams, names, strict=True)
            values = tuple(_read(gram, rows, columns, name) for gram, name in named)
            yield Tile(rows, columns, values)


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


class _Sums:
    """Sums over the tiles read so far."""

    def __init__(self, n: int) -> None:
        self.aa = self.ab = self.bb = self.residual = 0.0
        self.row_sums = np.zeros((2, n))

    def add(self, tile: Tile) -> None:
        a, b = tile.values
        aa, ab, bb = (tile.weight * float(np.vdot(x, y)) for x, y in ((a, a), (a, b), (b, b)))
        # With its own best factor t a tile leaves ‖b - t a‖². The common factor s adds (s - t)²
        # times the weights of both, as for the pooled variance of two samples: every term is
        # positive, nothing cancels.
        t = ab / aa if aa > 0 else 0.0
        rest = b - t * a
        self.residual += tile.weight * float(np.vdot(rest, rest))
        if self.aa > 0 and aa > 0:
            shift = self.ab / self.aa - t
            self.residual += shift * shift * aa * (self.aa / (self.aa + aa))
        self.aa, self.ab, self.bb = self.aa + aa, self.ab + ab, self.bb + bb
        for sums, values in zip(self.row_sums, (a, b), strict=True):
            sums[tile.rows] += values.sum(axis=1)
            if tile.weight == 2:
                sums[tile.columns] += values.sum(axis=0)

    def result(self) -> GramComparison:
        n = self.row_sums.shape[1]
        totals = self.row_sums.sum(axis=1)
        # ⟨HaH, HbH⟩ = ⟨a, b⟩ - (2/n) Σ_i ra_i rb_i + sa sb / n², with row sums r and totals s.
        products = np.array([[self.aa, self.ab], [self.ab, self.bb]])
        centered = products - 2 / n * self.row_sums @ self.row_sums.T
        centered += np.outer(totals, totals) / n**2
        is_round_off = centered.diagonal() <= CENTERED_ROUND_OFF * products.diagonal()
        aa, bb = np.where(is_round_off, 0, centered.diagonal())
        return GramComparison(
            *(self.aa, self.ab, self.bb, self.residual),
            centered=(float(aa), float(centered[0, 1]), float(bb)),
            total=float(totals[1]),
            n=n,
        )


def _cosine(aa: float, ab: float, bb: float) -> float:
    norms = math.sqrt(aa) * math.sqrt(bb)
    return max(-1.0, min(1.0, ab / norms)) if norms > 0 else 0.0
