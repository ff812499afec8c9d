"""Eqs. 6 and 7 against closed forms and float64."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dkae.alignment import alignment, frobenius

matrices = arrays(np.float64, (6, 4), elements=st.floats(-10, 10, width=32)).filter(
    lambda a: np.abs(a).max() > 1e-3
)


def gram(codes: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(codes @ codes.T)


@given(matrices, matrices)
def test_both_forms_of_equation_7_agree(a, b):
    C, P = gram(a), gram(b)
    by_alignment = math.sqrt(max(0.0, 2 - 2 * alignment(C, P).item()))
    assert frobenius(C, P).item() == pytest.approx(by_alignment, abs=1e-7)


@given(matrices, matrices)
def test_loss_is_the_distance_of_the_normalised_matrices(a, b):
    C, P = a @ a.T, b @ b.T
    expected = np.linalg.norm(C / np.linalg.norm(C) - P / np.linalg.norm(P))
    assert frobenius(gram(a), gram(b)).item() == pytest.approx(expected, abs=1e-12)


@given(matrices, st.floats(1e-6, 1e6))
def test_loss_is_zero_for_proportional_matrices(a, factor):
    assert frobenius(factor * gram(a), gram(a)).item() < 1e-14


@given(matrices, st.floats(1e-6, 1))
def test_loss_is_not_zero_for_matrices_that_are_not_proportional(a, t):
    P = gram(a)
    other = torch.from_numpy(np.random.default_rng(0).standard_normal((6, 6)))
    D = other - (other * P).sum() / (P * P).sum() * P  # orthogonal to P
    C = P / P.norm() + t * D / D.norm()
    # ‖C‖ = √(1 + t²) and ⟨C, P⟩ = ‖P‖, so the angle between them is atan(t).
    assert frobenius(C, P).item() == pytest.approx(2 * math.sin(math.atan(t) / 2), rel=1e-6)


@given(matrices, matrices, st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_loss_does_not_depend_on_scale(a, b, s, t):
    C, P = gram(a), gram(b)
    assert frobenius(s * C, t * P).item() == pytest.approx(frobenius(C, P).item())


@given(matrices, matrices)
def test_loss_of_positive_semidefinite_pairs_is_at_most_root_two(a, b):
    assert frobenius(gram(a), gram(b)).item() <= math.sqrt(2) + 1e-12


@given(matrices, matrices)
def test_loss_is_symmetric(a, b):
    assert frobenius(gram(a), gram(b)) == frobenius(gram(b), gram(a))


def test_opposite_matrices_are_two_apart():
    P = torch.eye(3)
    assert alignment(P, -P) == pytest.approx(-1)
    assert frobenius(P, -P) == pytest.approx(2)


def test_float32_tells_small_losses_from_zero_where_the_other_form_cannot():
    rng = np.random.default_rng(0)
    P = gram(rng.standard_normal((50, 5)))
    C = P + 1e-6 * gram(rng.standard_normal((50, 5)))
    exact = frobenius(C, P).item()
    single = frobenius(C.float(), P.float()).item()
    assert exact < 1e-5
    assert single == pytest.approx(exact, rel=0.1)
    by_subtraction = math.sqrt(max(0.0, 2 - 2 * alignment(C.float(), P.float()).item()))
    assert abs(by_subtraction - exact) > 0.5 * exact


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12, 1e30])
def test_extreme_scales_neither_overflow_nor_vanish_in_float32(scale):
    P = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    C = torch.eye(2)
    assert frobenius(scale * C, P) == pytest.approx(frobenius(C, P).item(), rel=1e-6)


@pytest.mark.parametrize("which", ["C", "P", "both"])
def test_zero_matrices_give_finite_values_and_gradients(which):
    codes = torch.zeros(4, 2) if which in ("C", "both") else torch.ones(4, 2)
    codes.requires_grad_()
    P = torch.zeros(4, 4) if which in ("P", "both") else torch.eye(4)
    loss = frobenius(codes @ codes.T, P)
    loss.backward()
    assert loss.item() == (0 if which == "both" else 1)
    assert alignment(codes @ codes.T, P) == 0
    assert torch.isfinite(codes.grad).all()


def test_gradient_is_finite_at_the_minimum():
    codes = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), requires_grad=True)
    frobenius(codes @ codes.T, (codes @ codes.T).detach()).backward()
    assert torch.isfinite(codes.grad).all()
