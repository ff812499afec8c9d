"""The loss of a batch by hand, against finite differences, and at both ends of λ."""

from __future__ import annotations

import math

import pytest
import torch

from dkae.alignment import MEASURES, frobenius
from dkae.training.loss import dkae_loss, reconstruction_loss


@pytest.mark.parametrize("weight", [0.0, 0.1, 0.5, 1.0])
def test_gradients_agree_with_finite_differences(weight):
    generator = torch.Generator().manual_seed(0)

    def random(*shape):
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    x, prior = random(6, 4), random(6, 3)
    codes, back = random(6, 3).requires_grad_(), random(6, 4).requires_grad_()

    def loss(c, r):
        # The factor keeps both inputs in the graph where one term is left out.
        unused = 0 * (c.sum() + r.sum())
        return dkae_loss(x, c, r, prior @ prior.T, weight).total + unused

    assert torch.autograd.gradcheck(loss, (codes, back))


def test_reconstruction_loss_is_averaged_over_all_entries():
    x, back = torch.zeros(2, 5), torch.full((2, 5), 3.0)
    per_sample = ((x - back) ** 2).sum(dim=1)  # Eq. 3
    assert reconstruction_loss(x, back) == per_sample.sum() / (2 * 5)  # first term of Eq. 8


def test_equation_8_by_hand():
    x, back = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5], [1.0]])
    codes, prior = torch.tensor([[1.0], [0.0]]), torch.eye(2)
    # C = diag(1, 0), so A = 1 / √2 and L_c = √(2 - √2); L_r / kd = 0.25 / 2
    losses = dkae_loss(x, codes, back, prior, 0.25)
    assert losses.total == pytest.approx(0.75 * 0.125 + 0.25 * math.sqrt(2 - math.sqrt(2)))


def test_weight_zero_is_exactly_the_autoencoder_and_one_exactly_the_alignment():
    generator = torch.Generator().manual_seed(0)
    x, codes, back = (torch.randn(5, n, generator=generator) for n in (4, 3, 4))
    prior = torch.eye(5)
    assert dkae_loss(x, codes, back, prior, 0).total == reconstruction_loss(x, back)
    assert dkae_loss(x, codes, back, None, 0) == (reconstruction_loss(x, back),) * 2 + (None,)
    assert dkae_loss(x, codes, back, prior, 1).total == frobenius(codes @ codes.T, prior)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_another_measure_takes_the_place_of_the_papers(measure):
    generator = torch.Generator().manual_seed(0)
    x, codes, back = (torch.randn(5, n, generator=generator) for n in (4, 3, 4))
    prior = torch.exp(-torch.cdist(x, x))
    losses = dkae_loss(x, codes, back, prior, 0.25, measure=measure)
    assert losses.alignment == measure(codes @ codes.T, prior)
    assert losses.total == 0.75 * losses.reconstruction + 0.25 * losses.alignment


def test_losses_of_a_bfloat16_network_are_float32():
    x, codes = torch.ones(4, 3), torch.ones(4, 2, dtype=torch.bfloat16)
    losses = dkae_loss(x, codes, x.bfloat16(), torch.eye(4), 0.5)
    assert all(loss.dtype == torch.float32 for loss in losses)


@pytest.mark.parametrize("weight", [0.1, 1])
def test_an_alignment_to_nothing_is_refused(weight):
    x = torch.zeros(4, 3)
    with pytest.raises(ValueError, match=rf"alignment_weight={weight} needs a prior_gram, got No"):
        dkae_loss(x, x, x, None, weight)
