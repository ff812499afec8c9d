"""Kernels that users bring: names, callables, Gaussian-process kernels, Gram matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from dkae import DeepKernelizedAutoencoder
from dkae.grams import negative_mass
from dkae.kernels import PairwiseKernel, Precomputed, check_block, make_kernel
from dkae.kernels.pairwise import pairwise_names

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (30, 4)).astype(np.float32)
P = rbf_kernel(X).astype(np.float32)


@pytest.mark.parametrize("name", pairwise_names())
def test_named_kernels_are_those_of_scikit_learn(name):
    ours = make_kernel(name, gamma=0.3, degree=2, coef0=0.7).fit(X).gram(X)
    theirs = pairwise_kernels(X, metric=name, filter_params=True, gamma=0.3, degree=2, coef0=0.7)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_callable_gets_whole_arrays_and_its_parameters():
    calls = []

    def kernel(A, B, power):
        calls.append((A.shape, B.shape))
        return (A @ B.T) ** power

    gram = make_kernel(kernel, kernel_params={"power": 2}).fit(X).gram(X, X[:7])
    assert calls == [((30, 4), (7, 4))]
    np.testing.assert_allclose(gram, (X @ X[:7].T) ** 2)


def test_gaussian_process_kernels_keep_their_algebra():
    kernel = 2.0 * gp.RBF(0.5) * gp.Matern() + gp.WhiteKernel(0.1)
    np.testing.assert_allclose(make_kernel(kernel).fit(X).gram(X), kernel(X), rtol=1e-6)


def test_given_kernel_objects_are_cloned_not_fitted_in_place():
    mine = PairwiseKernel("rbf")
    make_kernel(mine).fit(X)
    assert not hasattr(mine, "gamma_")


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"kernel='rfb' is not known.*did you mean 'rbf'"):
        make_kernel("rfb")


def test_precomputed_by_name_says_how_to_pass_the_matrix():
    with pytest.raises(ValueError, match=r"fit\(X, gram=P\)"):
        make_kernel("precomputed")


def test_callable_of_the_wrong_shape():
    def rows_only(A, B):
        return A.sum(axis=1)

    with pytest.raises(ValueError, match=r"rows_only returned .* \(30,\), expected \(30, 30\)"):
        make_kernel(rows_only).gram(X)


def test_callable_that_is_not_finite():
    with pytest.raises(ValueError, match="NaN or infinite"):
        make_kernel(lambda A, B: np.full((len(A), len(B)), np.nan)).gram(X)


@pytest.mark.parametrize("view", [lambda G: np.broadcast_to(1.0, G.shape), lambda G: G[::-1]])
def test_callable_may_return_any_kind_of_view(view, tiny):
    tiny(kernel=lambda A, B: view((A @ B.T)[::-1])).fit(X)


def test_callable_that_is_not_symmetric():
    prior = make_kernel(lambda A, B: A[:, :1] - 2 * B[:, 0]).fit(X).on(X)
    with pytest.raises(ValueError, match=r"not symmetric .*differ from their transposes"):
        check_block(prior.block(np.arange(30)), "kernel")


def test_negative_mass_is_the_share_of_the_spectrum():
    assert negative_mass(np.diag([3.0, 0.0, -1.0])) == 0.25
    assert negative_mass(P.astype(np.float64)) < 1e-7


@pytest.mark.parametrize(("first", "percent"), [(3.0, "25"), (-3.0, "100"), (999.0, "0.1")])
def test_indefinite_gram_is_accepted_with_a_warning_that_says_how_much(first, percent):
    with pytest.warns(UserWarning, match=rf"not positive semi-definite.* {percent} % of the mass"):
        check_block(np.diag(np.float32([first, -1.0])), "gram")


class TestPrecomputed:
    def test_without_rows_the_order_counts(self):
        prior = Precomputed(P).fit(X).on(X)
        rows = np.array([4, 1])
        np.testing.assert_array_equal(prior.block(rows), P[np.ix_(rows, rows)])

    def test_with_rows_any_part_in_any_order_is_found(self):
        kernel = Precomputed(P, rows=X).fit(X[:5])
        part = np.array([20, 3, 11])
        np.testing.assert_array_equal(kernel.gram(X[part]), P[np.ix_(part, part)])
        np.testing.assert_array_equal(
            kernel.on(X[part]).block(np.array([2, 0])), P[np.ix_([11, 20], [11, 20])]
        )

    def test_rows_are_recognised_in_any_type_and_duplicates_share_a_row(self):
        doubled, gram = np.vstack([X, X[:1]]), np.pad(P, (0, 1), mode="wrap")
        kernel = Precomputed(gram, rows=doubled.astype(np.float64)).fit(doubled)
        np.testing.assert_array_equal(kernel.gram(doubled[-1:], X[3:4]), P[:1, 3:4])

    def test_unknown_row_is_named(self):
        kernel = Precomputed(P, rows=X).fit(X)
        with pytest.raises(ValueError, match="row 1 of X is not among the 30 known rows"):
            kernel.on(np.vstack([X[:1], X[:1] + 1]))

    def test_rows_of_another_number(self):
        with pytest.raises(ValueError, match=r"gram has shape \(30, 30\), but rows has 29 rows"):
            Precomputed(P, rows=X[:-1]).fit(X)

    def test_equal_rows_with_different_values_are_refused(self):
        doubled, gram = np.vstack([X, X[:1]]), np.pad(P, (0, 1), mode="wrap") + np.eye(31)
        with pytest.raises(ValueError, match="rows 0 and 30 are equal vectors"):
            Precomputed(gram, rows=doubled).fit(doubled)

    @pytest.mark.parametrize("gram", [P * 1j, scipy.sparse.csr_array(P)])
    def test_complex_and_sparse_matrices_are_refused(self, gram):
        with pytest.raises(ValueError, match="gram has entries of type"):
            Precomputed(gram).fit(X)

    def test_clone_shares_the_matrix(self):
        kernel = Precomputed(P, rows=X)
        assert clone(kernel).gram_matrix is P
        assert clone(kernel).rows is X

    def test_repr_is_short_and_reads_nothing(self):
        assert repr(Precomputed(P, rows=X)) == "Precomputed(<30 x 30>, rows=...)"

    def test_lists_are_accepted(self):
        kernel = Precomputed(P.tolist()).fit(X)
        np.testing.assert_array_equal(kernel.gram(X), P)

    @pytest.mark.parametrize(
        ("gram", "message"),
        [
            (P[:, :-1], r"gram has shape \(30, 29\).*square"),
            (P[0], r"gram has shape \(30,\).*square"),
            (P + np.triu(P, 1), "gram is not symmetric.*differ from their transposes"),
            (0 * P, "gram is zero everywhere"),
            (np.where(np.eye(30) > 0, np.nan, P), "gram has NaN or infinite"),
            (1e39 * P.astype(np.float64), "gram has NaN or infinite"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:overflow:RuntimeWarning")
    def test_what_is_no_gram_matrix_is_refused(self, gram, message):
        with pytest.raises(ValueError, match=message):
            Precomputed(gram).fit(X)

    def test_a_single_asymmetric_entry_is_found_in_a_large_matrix(self):
        large = np.eye(700, dtype=np.float32)
        large[690, 3] = 0.5
        with pytest.raises(ValueError, match="not symmetric"):
            Precomputed(large).fit(np.zeros((700, 1), np.float32))

    def test_matrix_of_other_rows(self):
        kernel = Precomputed(P).fit(X)
        with pytest.raises(ValueError, match=r"shape \(30, 30\), but X has 12 rows: pass that of"):
            kernel.on(X[:12])


def test_only_the_needed_blocks_of_a_memmap_are_read(tmp_path):
    class Spy(np.memmap):
        entries = 0

        def __getitem__(self, index):
            out = super().__getitem__(index)
            Spy.entries += np.size(out)
            return out

    np.save(tmp_path / "gram.npy", rbf_kernel(RNG.uniform(0, 1, (500, 2))))
    spy = np.load(tmp_path / "gram.npy", mmap_mode="r").view(Spy)
    prior = Precomputed(spy).fit(np.zeros((500, 2))).on(np.zeros((500, 2)))
    assert Spy.entries == 0
    prior.block(np.arange(20))
    assert Spy.entries == 20 * 20


def test_non_finite_entry_of_a_memmap_is_found_when_its_block_is_read(tmp_path):
    bad = P.copy()
    bad[7, 7] = np.inf
    np.save(tmp_path / "gram.npy", bad)
    model = DeepKernelizedAutoencoder(3, hidden_layer_sizes=(5,))
    with pytest.raises(ValueError, match="gram has NaN or infinite"):
        model.fit(X, gram=np.load(tmp_path / "gram.npy", mmap_mode="r"))
