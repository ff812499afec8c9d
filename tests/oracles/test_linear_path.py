"""The linear path and the start of a trained decoder, against formulas and ridge regression."""

from __future__ import annotations

import numpy as np
import pytest

from dkae.decoders import MLPDecoder, RidgeDecoder
from dkae.decoders.ridge import fit_ridge
from dkae.linear_path import choose_width, make_path
from dkae.training import Optimization


@pytest.mark.parametrize("seed", range(3))
def test_the_width_has_the_least_loss_of_equation_8_on_held_out_rows(seed):
    rng = np.random.default_rng(seed)
    codes, seen = rng.normal(size=(160, 8)) * np.arange(8, 0, -1), rng.normal(size=(160, 5))
    gram, held_out = codes @ codes.T, np.arange(160) % 8 == 0

    def loss(n_linear):
        path = make_path(codes[~held_out], seen[~held_out], 8, n_linear)
        c = np.hstack([codes[:, : path.n_kernel], seen @ path.directions])
        error = seen[held_out] - fit_ridge(c[~held_out], seen[~held_out]).predict(c[held_out])
        mine, prior = c[held_out] @ c[held_out].T, gram[np.ix_(held_out, held_out)]
        mine, prior = (a - np.diag(a.diagonal()) for a in (mine, prior))
        distance = np.linalg.norm(mine / np.linalg.norm(mine) - prior / np.linalg.norm(prior))
        return 0.9 * np.square(error).mean() / 15 + 0.1 * distance

    def block(ids):
        return gram[np.ix_(ids, ids)].astype(np.float32)

    chosen = choose_width(codes, seen, block, 8, is_smooth=False)
    assert chosen == min([0, 1, 2, 4, 6], key=loss)


@pytest.mark.parametrize("lies_in_unit_interval", [False, True])
def test_a_trained_decoder_starts_as_ridge_regression(lies_in_unit_interval, digits):
    rows = digits if lies_in_unit_interval else 3 * digits - 1
    codes = digits[:, 20:40] + np.float32(0.1)
    still = Optimization(learning_rate_init=1e-30)
    decoder = MLPDecoder(max_iter=1, optimization=still, validation_fraction=0, random_state=0)
    expected = RidgeDecoder().fit(codes, rows).predict(codes)
    if lies_in_unit_interval:  # what goes through the sigmoid
        expected = expected.clip(0.005, 0.995)
    np.testing.assert_allclose(decoder.fit(codes, rows).predict(codes), expected, atol=2e-3)
