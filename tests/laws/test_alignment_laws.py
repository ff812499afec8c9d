"""One list of all measures of code Gram against prior Gram, and every law over it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dkae.alignment import MEASURES

K = 6
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
#: Each law is tried for every measure.
few = settings(max_examples=15)
factors = st.floats(1e-6, 1e6)
seeds = st.integers(0, 10_000)
#: Fewer components than rows, as many, and more.
widths = st.sampled_from([1, 3, K, 2 * K])


def gram(codes):
    codes = torch.as_tensor(codes)
    return codes @ codes.T


def random_codes(seed, width, k=K):
    return torch.randn(k, width, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def smooth_gram(k):
    """Return an RBF Gram matrix of points on a line, with eigenvalues over many magnitudes."""
    x = torch.linspace(0, 3, k, dtype=torch.float64)
    return torch.exp(-((x[:, None] - x) ** 2))


def is_no_constant(codes):
    centred = codes - codes.mean(axis=0)
    return np.linalg.norm(centred @ centred.T) > 1e-2 * np.linalg.norm(codes @ codes.T) > 1e-4


#: Positive semi-definite matrices, not zero and not nearly so after centring; many are singular,
#: and have equal rows, zero rows or repeated eigenvalues.
grams = (
    arrays(np.float64, (K, 4), elements=st.floats(-10, 10, width=16))
    .filter(is_no_constant)
    .map(gram)
)


@every_measure
@few
@given(C=grams, P=grams, c=factors)
def test_it_is_zero_for_proportional_matrices_and_never_negative(measure, C, P, c):
    assert measure(C, P).item() >= 0
    assert 0 <= measure(c * C, C).item() < 1e-9


@every_measure
@few
@given(seed=seeds, code_width=widths, prior_width=widths, t=st.floats(0.05, 1))
def test_it_is_positive_for_all_others(measure, seed, code_width, prior_width, t):
    P = gram(random_codes(seed, prior_width))
    other = gram(random_codes(seed + 1, code_width))
    assert measure((1 - t) * P + t * other, P).item() > 1e-6
    assert measure(other, torch.eye(K)).item() > 1e-3


@every_measure
@few
@given(C=grams, P=grams, s=factors, t=factors, order=st.permutations(range(K)))
def test_scale_and_order_do_not_matter(measure, C, P, s, t, order):
    expected = pytest.approx(measure(C, P).item(), rel=1e-8, abs=1e-9)
    assert measure(s * C, t * P).item() == expected
    assert measure(C[order][:, order], P[order][:, order]).item() == expected


HARD = {
    "C of rank 1": (gram(random_codes(0, 1)), smooth_gram(K)),
    "P of rank 1": (smooth_gram(K), gram(random_codes(0, 1))),
    "both of rank 2": (gram(random_codes(0, 2)), gram(random_codes(1, 2))),
    "C = I": (torch.eye(K), smooth_gram(K)),
    "P = I": (gram(random_codes(0, 3)), torch.eye(K)),
    "C = P = I": (torch.eye(K), torch.eye(K)),
    "C of two blocks": (torch.block_diag(torch.ones(3, 3), torch.ones(3, 3)), smooth_gram(K)),
    "P of two blocks": (gram(random_codes(0, K)), torch.block_diag(*2 * [torch.ones(3, 3)])),
    "C of ones": (torch.ones(K, K), smooth_gram(K)),
    "P of ones": (smooth_gram(K), torch.ones(K, K)),
    "C = 0": (torch.zeros(K, K), smooth_gram(K)),
    "P = 0": (smooth_gram(K), torch.zeros(K, K)),
    "C = P = 0": (torch.zeros(K, K), torch.zeros(K, K)),
    "C = P": (smooth_gram(K), smooth_gram(K)),
    "C = 3P, singular": (3 * gram(random_codes(0, 2)), gram(random_codes(0, 2))),
    "C indefinite": (gram(random_codes(0, 3)) - torch.eye(K), smooth_gram(K)),
    "P indefinite": (smooth_gram(K), gram(random_codes(0, 3)) - 2 * torch.eye(K)),
    "one row": (torch.tensor([[2.0]]), torch.tensor([[3.0]])),
}


@every_measure
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_values_and_gradients_are_finite_where_it_is_hard(measure, dtype):
    for case, pair in HARD.items():
        C, P = (matrix.to(dtype, copy=True) for matrix in pair)
        C.requires_grad_()
        loss = measure(C, P)
        loss.backward()
        assert loss.isfinite(), case
        assert C.grad.isfinite().all(), case
    dead = torch.zeros(K, 3, dtype=dtype, requires_grad=True)
    measure(dead @ dead.T, smooth_gram(K).to(dtype)).backward()
    assert dead.grad.isfinite().all()


@every_measure
def test_float32_gives_the_same_as_float64(measure):
    for width in (5, 20, 40):
        exact = random_codes(0, width, k=20).requires_grad_()
        single = exact.detach().float().requires_grad_()
        P = smooth_gram(20)
        losses = measure(gram(exact), P), measure(gram(single), P.float())
        for loss in losses:
            loss.backward()
        assert [loss.dtype for loss in losses] == [torch.float64, torch.float32]
        assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-5)
        assert single.grad.dtype == torch.float32
        assert (single.grad - exact.grad).norm() < 2e-4 * exact.grad.norm()


@every_measure
def test_only_the_code_gram_has_a_gradient(measure):
    C, P = gram(random_codes(0, 3)).requires_grad_(), smooth_gram(K)
    loss = measure(C, P)
    assert loss.shape == ()
    assert loss.requires_grad
    assert not measure(C.detach(), P).requires_grad


@every_measure
@pytest.mark.parametrize("width", [3, 20])
def test_gradient_descent_on_codes_descends(measure, width):
    codes, P = random_codes(0, width, k=12).requires_grad_(), smooth_gram(12)
    losses, rate = [], None
    for _ in range(6):
        loss = measure(gram(codes), P)
        losses.append(loss.item())
        (slope,) = torch.autograd.grad(loss, codes)
        rate = rate or (0.02 * codes.norm() / slope.norm()).item()
        codes = (codes - rate * slope).detach().requires_grad_()
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.98 * losses[0]


@every_measure
def test_entries_that_are_not_finite_give_nan_for_the_trainer_to_report(measure):
    for side, bad in product((0, 1), (np.nan, np.inf)):
        pair = gram(random_codes(0, 3)), smooth_gram(K)
        pair[side][1, 2] = bad
        assert measure(pair[0].requires_grad_(), pair[1]).isnan()
