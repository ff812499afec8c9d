"""One list of all measures of two Gram matrices, and every law over it."""

from __future__ import annotations

import tracemalloc
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dkae import metrics
from dkae.kernels import PairwiseKernel

N = 7


def cosine(a, b):
    return np.vdot(a, b) / np.sqrt(np.vdot(a, a) * np.vdot(b, b))


def centred(a):
    H = np.eye(len(a)) - 1 / len(a)
    return H @ a @ H


def dense_loss(a, b):
    return np.linalg.norm(a / np.linalg.norm(a) - b / np.linalg.norm(b))


class Law(NamedTuple):
    """A measure, its dense formula, and its value for equal matrices."""

    measure: object
    oracle: object
    best: float


LAWS = [
    Law(metrics.kernel_alignment, cosine, 1),
    Law(metrics.centered_alignment, lambda a, b: cosine(centred(a), centred(b)), 1),
    Law(metrics.alignment_loss, dense_loss, 0),
]
every_law = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.measure.__name__)


def is_spread(codes):
    return np.linalg.norm(centred(codes @ codes.T)) > 1e-2 * np.linalg.norm(codes @ codes.T) > 1e-4


#: Positive semi-definite matrices, not zero and not nearly so after centring.
grams = (
    arrays(np.float64, (N, 3), elements=st.floats(-10, 10, width=16))
    .filter(is_spread)
    .map(lambda codes: codes @ codes.T)
)
#: Codes far from the origin: centring leaves a hundredth of their Gram matrix.
LOPSIDED = np.full((N, 3), -6.1953125)
LOPSIDED[:2, 0] = -4, -3.5
factors = st.floats(1e-6, 1e6)
few = settings(max_examples=15)


@pytest.fixture(params=[3, 1024], ids=["small tiles", "one tile"], scope="module", autouse=True)
def tile_rows(request):
    """Every test runs with tiles smaller than its matrices too: 7 = 3 + 3 + 1."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dkae.metrics.grams.N_TILE_ROWS", request.param)
        yield request.param


class Blocks:
    """A Gram matrix that can only be read by blocks, and remembers which entries were read."""

    def __init__(self, gram):
        self.gram, self.reads = gram, []

    def __len__(self):
        return len(self.gram)

    def block(self, rows, columns=None):
        columns = rows if columns is None else columns
        self.reads.append((rows, columns))
        return self.gram[np.ix_(rows, columns)].astype(np.float32)


def random_gram(seed=0, n=N):
    codes = np.random.default_rng(seed).standard_normal((n, 3))
    return codes @ codes.T


@every_law
@pytest.mark.parametrize("negative", [0, 5, 100])
@few
@given(a=grams, b=grams)
def test_dense_formula(law, negative, a, b):
    # With a part that is not positive semi-definite, the alignment can be negative.
    b = b - negative * np.diag(np.arange(N))
    assert law.measure(a, b) == pytest.approx(law.oracle(a, b), abs=1e-9)


@every_law
@few
@given(a=grams, c=factors)
@example(a=LOPSIDED @ LOPSIDED.T, c=3.0)
def test_proportional_matrices_are_best(law, a, c):
    assert law.measure(a, c * a) == pytest.approx(law.best, abs=1e-11)


@every_law
@few
@given(a=grams, b=grams, s=factors, t=factors, order=st.permutations(range(N)))
def test_order_and_scale_do_not_matter_nor_which_is_first(law, a, b, s, t, order):
    p = np.ix_(order, order)
    expected = pytest.approx(law.measure(a, b), abs=1e-9)
    assert law.measure(a[p], b[p]) == expected
    assert law.measure(s * a, t * b) == expected
    assert law.measure(b, a) == expected


@every_law
@few
@given(a=grams, b=grams)
def test_blocks_give_the_same_as_arrays(law, a, b):
    dense = law.measure(a.astype(np.float32), b.astype(np.float32))
    assert law.measure(Blocks(a), Blocks(b)) == dense


@every_law
def test_each_pair_of_rows_is_read_once_and_by_tiles(law, tile_rows):
    a = Blocks(random_gram(0))
    law.measure(a, random_gram(1))
    assert max(max(map(len, read)) for read in a.reads) <= tile_rows
    seen = np.zeros((N, N), int)
    for rows, columns in a.reads:
        seen[np.ix_(rows, columns)] += 1
    assert (np.maximum(seen, seen.T) == 1).all()


@every_law
def test_whole_numbers_lists_and_truth_values_are_matrices_too(law):
    same, b = np.add.outer(range(N), range(N)) % 3 == 0, random_gram()
    expected = law.measure(same.astype(float), b)
    for kind in (same, same.astype(np.uint8), same.tolist(), same.astype(np.float16)):
        assert law.measure(kind, b) == expected


def test_nothing_of_size_n_by_n_is_built(tile_rows):
    X = np.random.default_rng(0).standard_normal((100 * tile_rows, 3)).astype(np.float32)
    gram = metrics.code_gram(X[:4000])
    tracemalloc.start()
    metrics.centered_alignment(gram, gram)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < max(0.8 * 4 * len(gram) ** 2, 2**20)  # some tiles of 8 MB, not 64 MB


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.ones((N, 3)), r"has shape \(7, 3\): pass a square .* code_gram\(codes\)"),
        (np.triu(np.ones((N, N))), "is not symmetric .* by up to 1"),
        (np.full((N, N), np.nan), "has NaN or infinite values"),
        (Blocks(np.diag([*np.ones(N - 1), np.inf])), "has NaN or infinite values"),
        (1e120 * np.eye(N), "has .*beyond 1e15"),
        (1j * np.eye(N), "has entries of type complex128: pass a square NumPy array of real"),
        (PairwiseKernel("rbf"), r"has entries of type object: .* such as kernel.on\(X\)"),
        (Blocks(np.zeros((0, 0))), "is empty: pass the Gram matrix of at least one row"),
    ],
)
def test_an_error_names_the_matrix(name, bad, message):
    other = {"a": "b", "b": "a"}[name]
    with pytest.raises(ValueError, match=f"^{name} {message}"):
        metrics.kernel_alignment(**{name: bad, other: random_gram()})


@every_law
def test_matrices_of_different_sizes(law):
    with pytest.raises(ValueError, match="a has 8 rows, but b has 7: both must belong to the"):
        law.measure(np.eye(N + 1), Blocks(np.eye(N)))
    bad = Blocks(np.eye(N))
    bad.block = lambda rows, columns=None: np.ones((len(rows), 1), np.float32)
    with pytest.raises(ValueError, match=r"b.block returned shape \(\d, 1\), expected"):
        law.measure(np.eye(N), bad)
