r"""How two Gram matrices a and b of n rows compare, without an n × n array.

Both are read once, tile by tile, and only sums in float64 are kept. With the angle θ between the
matrices as vectors of n² numbers,

.. math::
    A = \cos\theta = \frac{\langle a, b \rangle}{\|a\| \|b\|}, \qquad
    \sin^2\theta = \frac{\min_s \| b - s a \|^2}{\|b\|^2}, \qquad
    L_c = \sqrt{2 - 2 A} = \sin\theta \sqrt{\frac{2}{1 + A}} .

The last form does not subtract nearly equal numbers: small losses keep their digits. Where squares
of the entries would leave float64, each matrix is read in a unit of its own, a power of two.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dkae._support.arrays import real_numbers
from dkae._support.units import exponent_of, in_unit, largest_entry
from dkae.grams import Floats, Gram, GramLike, as_gram, check_block_shape
from dkae.kernels.features import FeatureGram

Doubles = NDArray[np.float64]

#: Rows of a tile: a tile in float64 is 8 MB.
N_TILE_ROWS = 1024
#: A centred matrix with less than this part of ‖a‖² is round-off and counts as zero.
CENTERED_ROUND_OFF = 1e-12
#: Sums of squares of entries up to 2 to this power are numbers of float64.
MOST = 490
#: Sums of squares of a tile that need no unit.
ORDINARY = (1e-150, 1e150)


@dataclass(frozen=True)
class GramComparison:
    """The numbers that every measure of the pair (a, b) follows from."""

    aa: float
    ab: float
    bb: float
    #: The least ‖b - s a‖² over all factors s.
    residual: float
    #: The inner products aa, ab and bb of the centred matrices HaH and HbH, H = I - 11ᵀ / n.
    centered: tuple[float, float, float]
    #: The sum of all entries of b.
    b_total: float
    #: The number n of rows.
    n: int
    #: The units 2ᵉ of a and b that all of the above is in; only `scale` depends on them.
    exponents: tuple[int, int] = (0, 0)

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
        """A(11ᵀ, b): what codes reach that are the same for every row, the floor of `alignment`."""
        # ⟨11ᵀ, b⟩ = Σ_ij b_ij, and ‖11ᵀ‖ = n.
        return _cosine(float(self.n) ** 2, self.b_total, self.bb)

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
        if self.aa == 0:
            return 1.0
        try:
            return math.ldexp(self.ab / self.aa, self.exponents[1] - self.exponents[0])
        except OverflowError as error:
            raise ValueError(
                "b is so much larger than a that the factor between them is no number in float64: "
                "scale b down, or a up"
            ) from error


def compare(a: GramLike, b: GramLike, names: tuple[str, str] = ("a", "b")) -> GramComparison:
    """Compare two symmetric matrices; `names` are theirs in error messages."""
    pair = (as_gram(a, names[0]), as_gram(b, names[1]))
    check_sizes(pair, names)
    sums, readers = _Sums(len(pair[0])), read_in_units(pair, names)
    for tile in tiles(readers):
        sums.add(tile)
    return sums.result((readers[0].exponent, readers[1].exponent))


def compare_grams(codes: Floats, prior: Gram) -> GramComparison:
    """Compare the Gram matrix of `codes` with the prior that they should represent."""
    return compare(FeatureGram(codes, "codes"), prior, ("codes", "prior"))


def check_sizes(pair: tuple[Gram, Gram], names: tuple[str, str]) -> None:
    """Reject two Gram matrices with different numbers of rows."""
    if len(pair[0]) != len(pair[1]):
        raise ValueError(
            f"{names[0]} has {len(pair[0])} rows, but {names[1]} has {len(pair[1])}: both must "
            "belong to the same rows"
        )


# --- the pass over the tiles ---------------------------------------------------------------------


class Tile(NamedTuple):
    """The same tile of several symmetric matrices."""

    rows: slice
    columns: slice
    #: In float64, because float32 has no squares of entries beyond 1e±19, and in the units of the
    #: readers, because float64 has none beyond 1e±154.
    values: tuple[Doubles, ...]

    @property
    def weight(self) -> int:
        """How often it counts: a tile below the diagonal stands for its mirror image too."""
        return 1 if self.rows == self.columns else 2


class Reader:
    """Reads tiles of one matrix in float64, in a unit 2ᵉ near the largest entry of the first.

    The unit is 1 for entries whose squares are numbers of float64.
    """

    def __init__(self, gram: Gram, name: str) -> None:
        self.gram, self._of_gram = gram.in_unit()
        self.name = name
        #: Unknown until a tile is not zero.
        self._of_tiles: int | None = None

    @property
    def exponent(self) -> int:
        """The unit's e."""
        return self._of_gram + (self._of_tiles or 0)

    def __len__(self) -> int:
        return len(self.gram)

    def read(self, rows: slice, columns: slice) -> Doubles:
        """Return a tile, and refuse what is none."""
        ids, others = (np.arange(part.start, part.stop) for part in (rows, columns))
        block = self.gram.block(ids, None if rows == columns else others)
        tile = real_numbers(block, self.name).astype(np.float64, copy=False)
        check_block_shape(tile, ids, others, self.name)
        # One sum tells ordinary tiles: squares do not cancel, and NaN and infinity carry over.
        if not self._of_tiles and ORDINARY[0] < np.vdot(tile, tile) < ORDINARY[1]:
            self._of_tiles = 0
            return tile
        largest = largest_entry(tile)
        if not math.isfinite(largest):
            raise ValueError(
                f"{self.name} has NaN or infinite entries: check the kernel and the rows that it "
                "was computed from"
            )
        if self._of_tiles is None and largest > 0:
            self._of_tiles = exponent_of(largest)
        exponent = self._of_tiles or 0
        if largest > 0 and math.frexp(largest)[1] - exponent > MOST:
            raise ValueError(
                f"{self.name} has entries near {largest:.3g} and, in its first rows, others that "
                "are 1e150 times smaller: no sum of squares holds both; leave out one kind of rows"
            )
        return in_unit(tile, exponent)


def read_in_units(grams: Sequence[Gram], names: Sequence[str]) -> list[Reader]:
    """Return a reader of each matrix; `names` are theirs in error messages."""
    return [Reader(gram, name) for gram, name in zip(grams, names, strict=True)]


def tiles(readers: Sequence[Reader]) -> Iterator[Tile]:
    """Yield the tiles on and below the diagonal, of all matrices together."""
    n = len(readers[0])
    ranges = [slice(i, min(i + N_TILE_ROWS, n)) for i in range(0, n, N_TILE_ROWS)]
    for i, rows in enumerate(ranges):
        for columns in ranges[: i + 1]:
            yield Tile(rows, columns, tuple(reader.read(rows, columns) for reader in readers))


class _Sums:
    """Sums over the tiles read so far."""

    def __init__(self, n: int) -> None:
        self.aa = self.ab = self.bb = self.residual = 0.0
        #: Subtracted before centring: HaH = H(a - c)H, and if a is far from 0 the sums of a - c
        #: keep digits that those of a would lose.
        self.shifts: Doubles | None = None
        #: The inner products of a - c and b - c, and the sums of their rows.
        self.shifted = np.zeros((2, 2))
        self.row_sums = np.zeros((2, n))

    def add(self, tile: Tile) -> None:
        a, b = tile.values
        weight = tile.weight
        aa, ab, bb = (weight * float(np.vdot(x, y)) for x, y in ((a, a), (a, b), (b, b)))
        # With its own best factor t a tile leaves ‖b - t a‖². The common factor s adds (s - t)²
        # times the weights of both, as for the pooled variance of two samples: every term is
        # positive, nothing cancels.
        t = ab / aa if aa > 0 else 0.0
        rest = b - t * a
        self.residual += weight * float(np.vdot(rest, rest))
        if self.aa > 0 and aa > 0:
            shift = self.ab / self.aa - t
            self.residual += shift * shift * aa * (self.aa / (self.aa + aa))
        self.aa, self.ab, self.bb = self.aa + aa, self.ab + ab, self.bb + bb
        self._add_shifted(tile)

    def _add_shifted(self, tile: Tile) -> None:
        if self.shifts is None:
            self.shifts = np.array([x.mean() for x in tile.values])
        a, b = (x - shift for x, shift in zip(tile.values, self.shifts, strict=True))
        products = [[np.vdot(a, a), np.vdot(a, b)], [np.vdot(a, b), np.vdot(b, b)]]
        self.shifted += tile.weight * np.array(products)
        for sums, x in zip(self.row_sums, (a, b), strict=True):
            sums[tile.rows] += x.sum(axis=1)
            if tile.weight == 2:
                sums[tile.columns] += x.sum(axis=0)

    def result(self, exponents: tuple[int, int]) -> GramComparison:
        # ⟨HaH, HbH⟩ = ⟨a, b⟩ - (2/n) Σ_i ra_i rb_i + sa sb / n², with row sums r and total sums s;
        # the same holds for a - c and b - c.
        n = self.row_sums.shape[1]
        products, totals = self.row_sums @ self.row_sums.T, self.row_sums.sum(axis=1)
        centered = self.shifted - 2 / n * products + np.outer(totals, totals) / n**2
        aa, ab, bb = (float(centered[i, j]) for i, j in ((0, 0), (0, 1), (1, 1)))
        aa = aa if aa > CENTERED_ROUND_OFF * self.aa else 0.0
        bb = bb if bb > CENTERED_ROUND_OFF * self.bb else 0.0
        shift = 0.0 if self.shifts is None else float(self.shifts[1])
        b_total = float(totals[1]) + n**2 * shift
        centred = (aa, ab, bb)
        sums = (self.aa, self.ab, self.bb, self.residual)
        return GramComparison(*sums, centred, b_total, n, exponents)


def _cosine(aa: float, ab: float, bb: float) -> float:
    norms = math.sqrt(aa) * math.sqrt(bb)
    return max(-1.0, min(1.0, ab / norms)) if norms > 0 else 0.0
