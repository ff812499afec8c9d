"""The loss of a batch at both ends of λ, and with other measures and types."""

from __future__ import annotations

import pytest
import torch

from dkae.alignment import MEASURES, frobenius
from dkae.training.loss import dkae_loss


def test_weight_zero_is_exactly_the_autoencoder_and_one_exactly_the_alignment():
    generator = torch.Generator().manual_seed(0)
    x, codes, back = (torch.randn(5, n, generator=generator) for n in (4, 3, 4))
    prior = torch.eye(5)
    error = torch.nn.functional.mse_loss(back, x)
    assert dkae_loss(x, codes, back, prior, 0).total == error
    assert dkae_loss(x, codes, back, None, 0) == (error, error, None)
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
