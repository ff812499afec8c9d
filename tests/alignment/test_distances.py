"""Eqs. 6 and 7 where digits are lost, without the diagonals and after centring."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dkae.alignment import alignment, centered, frobenius, offdiagonal

grams = (
    arrays(np.float64, (6, 4), elements=st.floats(-10, 10, width=32))
    .filter(lambda a: np.abs(a).max() > 1e-3)
    .map(lambda a: torch.from_numpy(a @ a.T))
)


def random_gram(seed, n=8, width=3, offset=0.0, dtype=torch.float64):
    codes = np.random.default_rng(seed).standard_normal((n, width)) + offset
    return torch.from_numpy(codes @ codes.T).to(dtype)


@given(grams, st.floats(1e-6, 1))
def test_small_losses_keep_their_digits(P, t):
    other = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 6)))
    D = other - (other * P).sum() / (P * P).sum() * P  # orthogonal to P
    C = P / P.norm() + t * D / D.norm()
    # ‖C‖ = √(1 + t²) and ⟨C, P⟩ = ‖P‖, so the angle between them is atan(t).
    assert frobenius(C, P).item() == pytest.approx(2 * math.sin(math.atan(t) / 2), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_extreme_scales_neither_overflow_nor_vanish_in_float32(scale):
    P = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    C = torch.eye(2)
    assert frobenius(scale * C, P) == pytest.approx(frobenius(C, P).item(), rel=1e-6)


@pytest.mark.parametrize("which", ["C", "P", "both"])
def test_a_zero_matrix_has_no_direction(which):
    C = torch.zeros(4, 4) if which in ("C", "both") else torch.ones(4, 4)
    P = torch.zeros(4, 4) if which in ("P", "both") else torch.eye(4)
    assert frobenius(C, P).item() == (0 if which == "both" else 1)
    assert alignment(C, P) == 0


def test_without_diagonals():
    C, P = random_gram(0), random_gram(1)
    off = ~torch.eye(8, dtype=torch.bool)
    c, p = C[off], P[off]
    expected = (c / c.norm() - p / p.norm()).norm().item()
    assert offdiagonal(C, P).item() == pytest.approx(expected)
    other = (C + torch.diag(torch.arange(8.0))).requires_grad_()
    loss = offdiagonal(other, P)
    assert loss.item() == pytest.approx(expected)
    loss.backward()
    assert (other.grad.diagonal() == 0).all()


def test_the_centred_distance_does_not_see_the_origin():
    P = random_gram(1)
    near, far = (centered(random_gram(0, offset=offset), P).item() for offset in (1, 1000))
    assert far == pytest.approx(near, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_small_centred_distances_keep_their_digits(dtype):
    P = random_gram(0)
    C = P + 1e-5 * random_gram(1)
    H = np.eye(8) - 1 / 8
    c, p = (H @ matrix.numpy() @ H for matrix in (C, P))
    exact = np.linalg.norm(c / np.linalg.norm(c) - p / np.linalg.norm(p))
    assert exact < 1e-4
    assert centered(C.to(dtype), P.to(dtype)).item() == pytest.approx(exact, rel=0.01)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e5])
def test_round_off_of_equal_codes_has_no_direction(dtype, value):
    codes = torch.full((50, 7), value, dtype=dtype, requires_grad=True)
    loss = centered(codes @ codes.T, random_gram(1, n=50, dtype=dtype))
    loss.backward()
    assert loss.item() == pytest.approx(1)
    assert (codes.grad == 0).all()
