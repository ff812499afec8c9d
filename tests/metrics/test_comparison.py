"""Measures of a pair of Gram matrices by tiles, against the dense formulas."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dkae import metrics
from dkae.alignment import alignment, frobenius
from dkae.kernels import PairwiseKernel
from dkae.metrics import comparison
from dkae.metrics.comparison import compare_grams


@given(st.integers(2, 40), st.integers(1, 50), st.integers(0, 100))
def test_tiles_give_the_dense_result(n_rows, tile, seed):
    rng = np.random.default_rng(seed)
    X, codes = (rng.standard_normal((n_rows, 3)).astype(np.float32) for _ in range(2))
    kernel = PairwiseKernel("rbf").fit(X)
    C, P = (torch.from_numpy(g).double() for g in (codes @ codes.T, kernel.gram(X)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "N_TILE_ROWS", tile)
        result = compare_grams(codes, kernel.on(X))
    assert result.alignment == pytest.approx(alignment(C, P).item(), abs=1e-6)
    assert result.alignment_loss == pytest.approx(frobenius(C, P).item(), abs=1e-6)
    H = torch.eye(n_rows, dtype=torch.float64) - 1 / n_rows
    centred = alignment(H @ C @ H, H @ P @ H).item()
    assert result.centered_alignment == pytest.approx(centred, abs=1e-5)
    error = torch.linalg.norm(result.scale * C - P) / torch.linalg.norm(P)
    assert result.relative_error == pytest.approx(error.item(), abs=1e-6)
    assert result.scale == pytest.approx(((C * P).sum() / (C * C).sum()).item(), rel=1e-4)
    floor = (P.sum() / (n_rows * torch.linalg.norm(P))).item()
    assert result.constant_alignment == pytest.approx(floor, abs=1e-6)


def test_rows_choose_a_part_of_the_prior():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3)).astype(np.float32)
    kernel, rows = PairwiseKernel("rbf").fit(X), np.array([3, 9, 11])
    part = compare_grams(X[rows], kernel.on(X)[rows])
    assert part == compare_grams(X[rows], kernel.on(X[rows]))


def test_scale_makes_codes_reproduce_a_proportional_kernel():
    X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    result = compare_grams(X / 2, PairwiseKernel("linear").fit(X).on(X))
    assert result.scale == pytest.approx(4)
    assert result.alignment == pytest.approx(1)
    assert result.alignment_loss == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("scale", [1e-15, 1e-8, 1e8, 1e15])
def test_extreme_scales(scale):
    X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
    prior = PairwiseKernel("rbf", gamma=0.1).fit(X).on(X)
    expected = compare_grams(X, prior)
    result = compare_grams((X * scale).astype(np.float32), prior)
    assert result.alignment == pytest.approx(expected.alignment, rel=1e-5)
    assert result.scale == pytest.approx(expected.scale / scale**2, rel=1e-4)


def test_zero_codes_are_useless_but_harmless():
    X = np.ones((4, 2), np.float32)
    result = compare_grams(0 * X, PairwiseKernel("linear").fit(X).on(X))
    assert (result.alignment, result.alignment_loss, result.scale) == (0, 1, 1)


def test_codes_of_other_rows_are_refused():
    X = np.ones((4, 2), np.float32)
    with pytest.raises(ValueError, match="codes has 3 rows, but prior has 4: both must belong"):
        compare_grams(X[:3], PairwiseKernel("linear").fit(X).on(X))


@pytest.mark.parametrize("measure", [metrics.centered_alignment, metrics.alignment_loss_curve])
def test_nothing_of_size_n_by_n_is_built(measure):
    X = np.random.default_rng(0).standard_normal((4_000, 3)).astype(np.float32)
    gram = metrics.code_gram(X)
    tracemalloc.start()
    measure(X if measure is metrics.alignment_loss_curve else gram, gram)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.8 * 4 * len(X) ** 2  # some tiles of 8 MB, not 64 MB
