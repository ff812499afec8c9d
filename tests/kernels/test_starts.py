"""Where mixtures start, against densities of torch.distributions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dkae.kernels.cluster.starts import INITS, first_means, start_mixtures

ROWS = torch.randn(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("init", INITS)
def test_a_start_is_a_component_around_each_of_g_rows(init):
    rows = ROWS - ROWS.mean(dim=0)
    sizes, log_densities = start_mixtures(rows, 5, 3, init=init, reg_covar=1e-3, seed=7)
    assert sizes.tolist() == [2, 2, 2, 3, 3, 3, 4, 4, 4, 5, 5, 5]
    first = [first_means(rows, g, init, [7, i % 3, g]) for i, g in enumerate(sizes.tolist())]
    normal = torch.distributions.Normal(
        rows[np.concatenate(first)].unsqueeze(1), (rows.square().mean() + 1e-3).sqrt()
    )
    weights = torch.repeat_interleave(1 / sizes.double(), sizes).unsqueeze(1)
    expected = normal.log_prob(rows).sum(dim=2) + weights.log()
    torch.testing.assert_close(log_densities(slice(None)), expected)
    torch.testing.assert_close(log_densities(slice(5, 9)), expected[5:9])


@pytest.mark.parametrize("init", INITS)
def test_first_means_are_distinct_and_depend_on_the_seed_alone(init):
    a, b, c = (first_means(ROWS, 12, init, [0, q, 12]).tolist() for q in (1, 1, 2))
    assert len(set(a)) == 12
    assert a == b != c
