"""Batches: distinct rows, independent draws, the right block of the prior."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dkae.kernels import PairwiseKernel
from dkae.training.sources import BatchSource, batches_per_epoch

X = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
PRIOR = PairwiseKernel("rbf").fit(X).on(X)


def source(rows=None, batch_size=20, seed=0) -> BatchSource:
    rows = np.arange(len(X)) if rows is None else rows
    rng, device = np.random.default_rng(seed), torch.device("cpu")
    return BatchSource(X, PRIOR, rows, rows, batch_size, "samples", rng, device)


def row_numbers(batch) -> list[int]:
    return [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in batch.targets.numpy()]


def test_the_paper_has_4900_batches_an_epoch():
    assert batches_per_epoch(14_000, 200, "pairs") == 4900
    assert batches_per_epoch(14_000, 200, "samples") == 70


@given(st.integers(2, 10_000), st.integers(2, 500))
def test_epochs_have_enough_batches(n, k):
    k_used = min(n, k)
    samples, pairs = (batches_per_epoch(n, k, epoch) for epoch in ("samples", "pairs"))
    assert (samples - 1) * k_used < n <= samples * k_used
    assert (pairs - 1) * k_used**2 < n**2 <= pairs * k_used**2


def test_epoch_may_be_a_number():
    assert batches_per_epoch(14_000, 200, 37) == 37


@pytest.mark.parametrize("epoch", [0, 1.5, True, None])
def test_impossible_epochs(epoch):
    with pytest.raises(ValueError, match=r"steps_per_epoch=.* must be a whole number"):
        batches_per_epoch(10, 2, epoch)


def test_unknown_epoch_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"steps_per_epoch='pair' is not.*did you mean 'pairs'"):
        batches_per_epoch(10, 2, "pair")


@given(st.integers(1, 80), st.integers(0, 1000))
def test_rows_of_a_batch_are_distinct_and_allowed(batch_size, seed):
    allowed = np.arange(0, 60, 2)
    rows = row_numbers(source(allowed, batch_size, seed).draw())
    assert len(set(rows)) == len(rows) == min(batch_size, 30)
    assert set(rows) <= set(allowed)


def test_block_belongs_to_the_rows():
    batch = source().draw()
    rows = np.array(row_numbers(batch))
    np.testing.assert_array_equal(batch.prior_gram, PRIOR.block(rows))


def test_a_batch_without_its_block_is_the_same_batch():
    with_prior, without = source(), source()
    for noise in (0.0, 0.5, 0.0):
        a = with_prior.draw(True, input_noise=noise)
        b = without.draw(False, input_noise=noise)
        assert torch.equal(a.inputs, b.inputs)
        assert torch.equal(a.targets, b.targets)
        assert b.prior_gram is None


def test_draws_are_seeded_and_every_row_is_as_likely():
    draws = [row_numbers(source(seed=1).draw()) for _ in range(2)]
    assert draws[0] == draws[1]
    one = source(seed=2)
    counts = np.bincount(
        np.concatenate([row_numbers(one.draw()) for _ in range(600)]), minlength=60
    )
    # Binomial(600, 1/3): six standard deviations are 70.
    assert np.abs(counts - 200).max() < 70


def test_a_row_may_return_in_the_next_batch_at_once():
    one = source(batch_size=30)
    assert set(row_numbers(one.draw())) & set(row_numbers(one.draw()))


def test_noise_is_on_the_inputs_only_and_of_random_size():
    batch = source(batch_size=60).draw(input_noise=0.5)
    clean = source(batch_size=60).draw()
    assert torch.equal(batch.targets, clean.targets)
    assert torch.equal(batch.prior_gram, clean.prior_gram)
    noise = batch.inputs - batch.targets
    sizes = noise.std(dim=1)
    # A standard deviation drawn from U(0, a) gives a mean square of a²/3.
    many = torch.cat(
        [
            source(seed=i).draw(input_noise=0.5).inputs - source(seed=i).draw().inputs
            for i in range(200)
        ]
    )
    assert many.square().mean().item() == pytest.approx(0.5**2 / 3, rel=0.05)
    assert sizes.max() > 4 * sizes.min()


def test_without_noise_inputs_are_the_targets():
    batch = source().draw()
    assert torch.equal(batch.inputs, batch.targets)


@pytest.mark.parametrize("batch_size", [7, 20, 60, 100])
def test_blocks_cover_every_row_once_in_parts_of_nearly_equal_size(batch_size):
    allowed = np.arange(10, 60)
    blocks = [row_numbers(batch) for batch in source(allowed, batch_size).held_out()]
    assert sorted(np.concatenate(blocks)) == allowed.tolist()
    sizes = [len(block) for block in blocks]
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1
