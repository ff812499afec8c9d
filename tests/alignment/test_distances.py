"""Distances without the diagonals and after centring, against dense formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dkae import metrics
from dkae.alignment import centered, frobenius, offdiagonal


def random_gram(seed, n=8, width=3, offset=0.0, dtype=torch.float64):
    codes = np.random.default_rng(seed).standard_normal((n, width)) + offset
    return torch.from_numpy(codes @ codes.T).to(dtype)


def test_without_diagonals():
    C, P = random_gram(0), random_gram(1)
    off = ~torch.eye(8, dtype=torch.bool)
    c, p = C[off], P[off]
    assert offdiagonal(C, P).item() == pytest.approx((c / c.norm() - p / p.norm()).norm().item())


def test_the_diagonal_is_free_without_it():
    C, P = random_gram(0), random_gram(1)
    other = C + torch.diag(torch.arange(8.0))
    assert offdiagonal(other, P) == pytest.approx(offdiagonal(C, P).item())
    assert frobenius(other, P).item() != pytest.approx(frobenius(C, P).item(), rel=0.01)


def test_diagonals_have_no_gradient_without_them():
    C = random_gram(0).requires_grad_()
    offdiagonal(C, random_gram(1)).backward()
    assert (C.grad.diagonal() == 0).all()


def test_centred_distance_is_that_of_cka():
    C, P = random_gram(0, offset=1), random_gram(1)
    cka = metrics.centered_alignment(C.numpy(), P.numpy())
    assert centered(C, P).item() == pytest.approx(math.sqrt(2 - 2 * cka), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_small_centred_distances_keep_their_digits(dtype):
    P = random_gram(0)
    C = P + 1e-5 * random_gram(1)
    H = np.eye(8) - 1 / 8
    c, p = (H @ matrix.numpy() @ H for matrix in (C, P))
    exact = np.linalg.norm(c / np.linalg.norm(c) - p / np.linalg.norm(p))
    assert exact < 1e-4
    assert centered(C.to(dtype), P.to(dtype)).item() == pytest.approx(exact, rel=0.01)


def test_centred_distance_does_not_see_the_origin():
    P = random_gram(2)
    at_zero, far = (centered(random_gram(0, offset=offset), P).item() for offset in (0, 1000))
    assert far == pytest.approx(at_zero, rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e5])
def test_round_off_of_equal_codes_has_no_direction(dtype, value):
    codes = torch.full((50, 7), value, dtype=dtype, requires_grad=True)
    loss = centered(codes @ codes.T, random_gram(1, n=50, dtype=dtype))
    loss.backward()
    assert loss.item() == pytest.approx(1)
    assert (codes.grad == 0).all()
