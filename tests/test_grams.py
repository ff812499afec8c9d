"""Gram matrices against NumPy: each block is that part of a matrix."""

from __future__ import annotations

import operator
import pickle
import tracemalloc

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer

from dkae.grams import Gram, MatrixGram, RowsGram, as_gram, check_block, read_block
from dkae.kernels import PairwiseKernel, Precomputed, TransformerKernel

X = np.random.default_rng(0).normal(size=(150, 4)).astype(np.float32)
P = X @ X.T


def inner(a, b):
    return a @ (a if b is None else b).T


class Own(Gram):
    """A custom Gram: two methods."""

    def __len__(self):
        return len(X)

    def block(self, rows, columns=None):
        return inner(X[rows], None if columns is None else X[columns])


class NotEvenOne:
    """An object with the two methods of a Gram, of another class."""

    def __len__(self):
        return len(X)

    def block(self, rows, columns=None):
        return inner(X[rows], None if columns is None else X[columns]).tolist()


def grams():
    kernel = PairwiseKernel("linear").fit(X)
    features = TransformerKernel(FunctionTransformer().fit(X))
    return {
        "rows": RowsGram(X, inner, "inner products"),
        "matrix": MatrixGram(P),
        "custom": Own(),
        "an object's": as_gram(NotEvenOne(), "mine"),
        "of a kernel": kernel.on(X),
        "of features": features.fit(X).on(X),
        "of a matrix's rows": Precomputed(P, rows=X).fit(X).on(X),
        "part": RowsGram(np.vstack([X, X]), inner, "twice")[: len(X)],
        "sum": MatrixGram(P / 2) + RowsGram(X, inner, "x") * 0.5,
        "product": MatrixGram(P) * MatrixGram(np.ones_like(P)),
    }


every_gram = pytest.mark.parametrize("name", grams())
ROWS, COLUMNS = np.array([5, 0, 149, 5]), np.array([3, 120])


def close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@every_gram
def test_whatever_is_read_is_that_part_of_the_matrix(name):
    gram = grams()[name]
    assert isinstance(gram, Gram)
    assert len(gram) == 150
    assert "of 150 rows" in repr(gram)
    close(gram.diagonal(), P.diagonal())
    close(gram.block(ROWS), P[np.ix_(ROWS, ROWS)])
    close(gram.block(ROWS, COLUMNS), P[np.ix_(ROWS, COLUMNS)])
    for ids in ([7, 2, 2], np.array([-1, 0]), slice(3, 90, 7), slice(None, None, -1), X[:, 0] > 0):
        part, numbers = gram[ids], np.arange(150)[ids]
        assert len(part) == len(numbers)
        some = np.arange(len(numbers))[::2]
        close(part.block(some), P[np.ix_(numbers[some], numbers[some])])
        close(part.block(some, some[:1]), P[np.ix_(numbers[some], numbers[some[:1]])])


@every_gram
def test_algebra(name):
    ids = np.array([0, 17, 4])
    for combine, expected in (
        (lambda g: g + MatrixGram(P), 2 * P),
        (lambda g: g * MatrixGram(P), P * P),
        (lambda g: 3 * g, 3 * P),
        (lambda g: g * np.float64(0.5), 0.5 * P),
        (lambda g: np.float64(0.5) * g, 0.5 * P),
        (lambda g: np.int64(2) * g + g * g, 2 * P + P * P),
        (lambda g: (g + g)[20:40] * 2, 4 * P[20:40, 20:40]),
        (lambda g: pickle.loads(pickle.dumps(g * 2)), 2 * P),
    ):
        gram = combine(grams()[name])
        close(gram.block(ids, ids[:2]), expected[np.ix_(ids, ids[:2])])
        close(gram.diagonal(), expected.diagonal())


def test_what_grams_do_not_do():
    gram = Own()
    for ids in (3, np.zeros((2, 2), dtype=int)):
        with pytest.raises(TypeError, match="does not select rows: pass ids, a slice"):
            gram[ids]
    for ids in ([150], [True, False]):
        with pytest.raises(IndexError):
            gram[ids]
    for other in ("2", None, P, [1]):
        for combine in (operator.add, operator.mul):
            with pytest.raises(TypeError):
                combine(gram, other)
            with pytest.raises(TypeError):
                combine(other, gram)
    with pytest.raises(TypeError, match="not iterable"):
        list(gram)
    with pytest.raises(ValueError, match="the grams have 3 and 150 rows: combine those of the"):
        gram + MatrixGram(np.eye(3))


def test_a_gram_keeps_its_kernel_and_is_taken_as_it_is():
    kernel = PairwiseKernel().fit(X)
    gram = kernel.on(X)
    assert gram.kernel is gram[:5].kernel is kernel
    assert (gram + gram).kernel is None  # no kernel is known that this would be of
    assert as_gram(gram, "mine") is gram


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, bool])
def test_whole_numbers_do_not_wrap_around(dtype):
    matrix = np.full((3, 3), 100).astype(dtype)
    gram, rows = as_gram(matrix, "counts"), np.arange(3)
    total, product = matrix.astype(float) * 3, matrix.astype(float) ** 2
    close((gram + gram + gram).block(rows), total)
    close((gram * gram).block(rows), product)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_keep_their_precision(dtype):
    gram = MatrixGram(P.astype(dtype))
    assert (2 * gram + gram * gram).block(ROWS).dtype == dtype


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (P[:, :3], r"mine has shape \(150, 3\): pass a square Gram matrix, or code_gram"),
        (P[:, 0], r"mine has shape \(150,\): pass a square"),
        (P.astype(complex), "mine has entries of type complex128: pass a square NumPy array"),
        (np.empty((0, 0)), "mine is empty: pass the Gram matrix of at least one row"),
        (P + np.triu(P, 1), "mine is not symmetric"),
        (MatrixGram(P)[[]], "mine is empty"),
    ],
)
def test_values_that_are_not_grams(matrix, message):
    with pytest.raises(ValueError, match=message):
        as_gram(matrix, "mine")


def test_the_diagonal_of_many_rows_takes_little_memory():
    gram = RowsGram(np.ones((20_000, 1), np.float32), inner, "ones")
    tracemalloc.start()
    diagonal = gram.diagonal()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(diagonal, np.ones(20_000))
    assert peak < 4 * diagonal.nbytes  # the blocks along it are 64 times as large


# --- checks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "percent"), [(3.0, "25"), (-3.0, "100"), (999.0, "0.1")])
def test_an_indefinite_gram_is_accepted_with_a_warning_that_gives_the_share(first, percent):
    with pytest.warns(UserWarning, match=rf"not positive semi-definite.* {percent} % of the mass"):
        check_block(np.diag(np.float32([first, -1.0])), "gram")


def test_samples_that_are_not_grams():
    for block, message in (
        (np.zeros((3, 3)), "gram is zero on all of 3 sampled rows: there is nothing to align with"),
        (np.triu(np.ones((3, 3))), r"gram is not symmetric .*differ from their transposes"),
    ):
        with pytest.raises(ValueError, match=message):
            check_block(block, "gram")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (np.ones((2, 3)), r"mine.block returned shape \(2, 3\), expected \(2, 2\): it must return"),
        (np.full((2, 2), np.nan), "mine has NaN or infinite values"),
        (np.full((2, 2), 1e39), r"infinite values \(in float32\)"),
        (np.full((2, 2), -1e16), r"mine has entries up to 1e\+16: numbers beyond 1e15 .*, scale X"),
        (np.full((2, 2), "a"), "mine.block has entries of type .*: pass real numbers"),
    ],
    ids=["shape", "NaN", "inf", "large", "text"],
)
def test_blocks_that_are_not_blocks(block, message):
    class Custom(NotEvenOne):
        def block(self, rows, columns=None):
            return block

    with pytest.raises(ValueError, match=message):
        read_block(as_gram(Custom(), "mine"), np.arange(2))
