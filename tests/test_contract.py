"""scikit-learn's own checks of the estimator contract: every one of them, no expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from dkae import DeepKernelizedAutoencoder

SMALL = DeepKernelizedAutoencoder(
    3, hidden_layer_sizes=(8,), max_iter=2, steps_per_epoch=10, random_state=0
)


@parametrize_with_checks([SMALL])
def test_scikit_learn_check(estimator, check):
    check(estimator)


# The check of complex numbers makes NumPy warn before the estimator refuses them.
@pytest.mark.filterwarnings("ignore")
def test_none_of_the_checks_is_left_out():
    results = check_estimator(SMALL, on_fail=None, on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
    assert len(results) >= 47
