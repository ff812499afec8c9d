"""Kernels of known rows: Gram matrices in memory and on disk, and labels."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel

from dkae.grams import read_block
from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (30, 4)).astype(np.float32)
P = rbf_kernel(X).astype(np.float32)
LABELS = np.arange(30) % 3
DOUBLED, DOUBLED_P = np.vstack([X, X[:1]]), np.pad(P, (0, 1), mode="wrap")


class TestPrecomputed:
    def test_without_rows_the_order_counts(self):
        gram, ids = Precomputed(P).fit(X).on(X), np.array([4, 1])
        np.testing.assert_array_equal(gram.block(ids), P[np.ix_(ids, ids)])

    def test_with_rows_any_part_in_any_order_is_found(self):
        kernel, part = Precomputed(P, rows=X).fit(X[:5]), np.array([20, 3, 11])
        np.testing.assert_array_equal(kernel.gram(X[part]), P[np.ix_(part, part)])
        block = kernel.on(X[part]).block(np.array([2, 0]))
        np.testing.assert_array_equal(block, P[np.ix_([11, 20], [11, 20])])

    def test_rows_are_recognised_in_any_type_and_duplicates_share_a_row(self):
        kernel = Precomputed(DOUBLED_P, rows=DOUBLED.astype(np.float64)).fit(DOUBLED)
        np.testing.assert_array_equal(kernel.gram(DOUBLED[-1:], X[3:4]), P[:1, 3:4])

    def test_clone_shares_the_matrix_and_repr_reads_nothing(self):
        kernel = Precomputed(P, rows=X)
        assert clone(kernel).gram_matrix is P
        assert clone(kernel).rows is X
        assert repr(kernel) == "Precomputed(<30 x 30>, rows=...)"

    def test_lists_are_accepted(self):
        np.testing.assert_array_equal(Precomputed(P.tolist()).fit(X).gram(X), P)

    @pytest.mark.parametrize(
        ("gram", "message"),
        [
            (P[:, :-1], r"gram has shape \(30, 29\).*square"),
            (P[0], r"gram has shape \(30,\).*square"),
            (P * 1j, "gram has entries of type complex"),
            (scipy.sparse.csr_array(P), "gram has entries of type object"),
            (P + np.triu(P, 1), "gram is not symmetric.*differ from their transposes"),
            (0 * P, "gram is zero everywhere"),
            (np.where(np.eye(30) > 0, np.nan, P), "gram has NaN or infinite"),
            (1e39 * P.astype(np.float64), "gram has NaN or infinite"),
            (1e20 * P, r"gram has entries up to 1e\+20: numbers beyond 1e15 .*, or divide"),
        ],
        ids=["wide", "vector", "complex", "sparse", "asymmetric", "zero", "NaN", "inf", "large"],
    )
    def test_matrices_that_are_not_gram_matrices(self, gram, message):
        with pytest.raises(ValueError, match=message):
            Precomputed(gram).fit(X)

    def test_a_single_asymmetric_entry_is_found_in_a_large_matrix(self):
        large = np.eye(700, dtype=np.float32)
        large[690, 3] = 0.5
        with pytest.raises(ValueError, match="not symmetric"):
            Precomputed(large).fit(np.zeros((700, 1), np.float32))

    def test_of_a_memmap_only_the_needed_blocks_are_read(self, tmp_path):
        class Spy(np.memmap):
            entries = 0

            def __getitem__(self, index):
                out = super().__getitem__(index)
                Spy.entries += np.size(out)
                return out

        np.save(tmp_path / "gram.npy", rbf_kernel(RNG.uniform(0, 1, (500, 2))))
        spy = np.load(tmp_path / "gram.npy", mmap_mode="r").view(Spy)
        gram = Precomputed(spy).fit(np.zeros((500, 2))).on(np.zeros((500, 2)))
        assert Spy.entries == 0
        gram.block(np.arange(20))
        assert Spy.entries == 20 * 20

    def test_in_a_memmap_a_bad_entry_is_found_when_its_block_is_read(self, tmp_path):
        bad = P.copy()
        bad[7, 7] = np.inf
        np.save(tmp_path / "gram.npy", bad)
        gram = Precomputed(np.load(tmp_path / "gram.npy", mmap_mode="r")).fit(X).on(X)
        assert read_block(gram, np.arange(7)).shape == (7, 7)
        with pytest.raises(ValueError, match="gram has NaN or infinite"):
            read_block(gram, np.arange(8))


class TestIdealKernel:
    @pytest.mark.parametrize(
        "labels",
        [
            [4, 0, 4, -1, -1],
            ["a", "b", "a", -1, -1],
            np.array([0, 1, 0, -1, -1], dtype=object),
            [0.0, 1.0, 0.0, np.nan, np.nan],
            ["a", "b", "a", None, None],
            pd.Series([4, 0, 4, pd.NA, pd.NA], dtype="Int64"),
        ],
        ids=repr,
    )
    def test_it_is_1_where_labels_agree_and_a_missing_label_is_no_class(self, labels):
        gram = ideal_kernel(labels).fit(X[:5]).gram(X[:5])
        expected = np.zeros((5, 5))
        expected[:3, :3] = [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
        np.testing.assert_array_equal(gram, expected)

    def test_rows_without_label_are_left_to_the_other_kernel(self):
        labels = np.where(np.arange(30) < 10, LABELS, -1)
        gram = (ideal_kernel(labels) + PairwiseKernel("rbf", gamma=1)).fit(X).gram(X)
        expected = rbf_kernel(X, gamma=1)
        expected[:10, :10] += LABELS[:10, None] == LABELS[:10]
        np.testing.assert_allclose(gram, expected, rtol=1e-5)

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (np.full(30, -1), "no label but -1"),
            (LABELS[:, None], r"labels has shape \(30, 1\)"),
            (3, r"labels has shape \(\)"),
        ],
        ids=["none", "column", "number"],
    )
    def test_arrays_that_are_not_labels(self, labels, message):
        with pytest.raises(ValueError, match=message):
            ideal_kernel(labels).fit(X)


@pytest.mark.parametrize(
    ("kernel", "rows", "message"),
    [
        (Precomputed(P, rows=X), np.vstack([X[:1], X[:1] + 1]), "row 1 of X is not among the 30 "),
        (Precomputed(P, rows=X[:-1]), X, r"gram has shape \(30, 30\), but rows has 29 rows"),
        (Precomputed(DOUBLED_P + np.eye(31), rows=DOUBLED), X, "rows 0 and 30 are equal vectors"),
        (Precomputed(P), X[:12], r"shape \(30, 30\), but X has 12 rows: pass that of"),
        (ideal_kernel(LABELS), X[:12], "labels has 30 entries, but X has 12 rows"),
        (ideal_kernel([0, 1], rows=X[[0, 0]]), X[:1], "rows 0 and 1 are equal vectors"),
    ],
    ids=["unknown", "few rows", "ambiguous", "part", "labels of others", "ambiguous labels"],
)
def test_rows_that_are_not_known(kernel, rows, message):
    with pytest.raises(ValueError, match=message):
        kernel.fit(X).on(rows)
