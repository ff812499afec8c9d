"""The quality of a fit against dense formulas, and its warnings."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from dkae import metrics
from dkae.metrics import Quality

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)).astype(np.float32)
CODES = RNG.normal(size=(60, 3)).astype(np.float32) + 1
CONSTANT = (
    r"^the kernel is constant on these rows, .*: scale X \(standardize=True\), or choose gamma or"
)
NEAR_CONSTANT = (
    r"^the codes are nearer to a constant kernel \(alignment 0\.500\) than to the kernel "
    r"\(0\.400\): "
)
BELOW_THE_MEAN = r"^the reconstructions are worse than the mean of the rows \(R² = -0\.01\): "


def test_it_has_the_measures_of_codes_and_reconstructions():
    prior, decoded = rbf_kernel(X), X + 0.1
    found = Quality.of(CODES, prior, X, decoded, scale=2)
    C, P = CODES.astype(float) @ CODES.T, prior.astype(float)
    assert found.alignment == pytest.approx(metrics.kernel_alignment(C, P), abs=1e-6)
    assert found.centered_alignment == pytest.approx(metrics.centered_alignment(C, P), abs=1e-6)
    ones = np.ones_like(P)
    assert found.constant_alignment == pytest.approx(metrics.kernel_alignment(C, ones), abs=1e-6)
    assert found.scale == pytest.approx((C * P).sum() / (C * C).sum(), rel=1e-5)
    assert found.r2 == metrics.reconstruction_r2(X, decoded, scale=2)
    assert not found.is_constant
    assert np.isnan(Quality.of(CODES, prior, X, None).r2)


def quality(**values):
    good = {
        "alignment": 0.9,
        "centered_alignment": 0.8,
        "constant_alignment": 0.5,
        "r2": 0.5,
        "scale": 1.0,
    }
    return Quality(**(good | values))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "alignment_weight", "message"),
    [
        ({}, 0.1, None),
        ({}, None, None),
        ({"r2": np.nan}, None, None),
        ({"alignment": 0.4}, 0.1, NEAR_CONSTANT + r"train for longer \(max_iter\), raise align"),
        ({"alignment": 0.4}, None, NEAR_CONSTANT + r"raise n_components, or scale X \(standardi"),
        ({"alignment": 0.4}, 0, None),  # the codes are not aligned with a kernel
        ({"r2": -0.01}, 0.1, BELOW_THE_MEAN + r"train for longer \(max_iter, decoder_max_iter\)"),
        ({"r2": -0.01}, None, BELOW_THE_MEAN + "choose another decoder, or raise n_comp"),
        ({"r2": -0.01}, 1, None),  # rows are not reconstructed
        ({"is_constant": True}, 0.1, CONSTANT),
        ({"is_constant": True, "alignment": 0.4}, None, CONSTANT),  # one warning, not two
        ({"is_constant": True}, 0, None),
    ],
)
def test_a_warning_comes_if_what_was_asked_for_is_bad(values, alignment_weight, message):
    if message is None:
        quality(**values).warn_if_bad(alignment_weight)
        return
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        quality(**values).warn_if_bad(alignment_weight)
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("codes", [np.ones((60, 2), np.float32), CODES])
def test_a_constant_kernel_is_warned_of(codes):
    """Its alignment with constant codes is 1, and no other number shows that nothing is learnt."""
    found = Quality.of(codes, np.full((60, 60), 0.214, np.float32), X, X)
    assert found.centered_alignment == 0
    with pytest.warns(ConvergenceWarning, match=CONSTANT):
        found.warn_if_bad()


def test_a_kernel_that_varies_little_is_not_constant():
    assert not Quality.of(CODES, rbf_kernel(X.astype(float), gamma=1e-5), X, X).is_constant
    assert not Quality.of(CODES[:1], np.ones((1, 1)), X[:1], X[:1]).is_constant  # a single row
