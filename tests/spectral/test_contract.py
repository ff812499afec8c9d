"""scikit-learn's own checks of the estimator contract: every one of them, no expected failure."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from dkae.spectral import KernelPCA, PreImage

ESTIMATORS = [
    KernelPCA(),
    KernelPCA(center=False),
    KernelPCA(1, solver="lanczos", random_state=0),
    KernelPCA(solver="lanczos", center=False, random_state=0),
    KernelPCA(2, preimage=PreImage(random_state=0)),
    KernelPCA(kernel="forest", kernel_params={"n_estimators": 10}, random_state=0),
    PreImage(),
    PreImage(alpha=0.5),
    PreImage(max_samples=50, random_state=0),
    PreImage(max_samples=50, approximation="subsample", random_state=0),
]

# The data of some checks have fewer components than are asked for, or more rows than 50.
pytestmark = [
    pytest.mark.filterwarnings("ignore:n_components=.* has only"),
    pytest.mark.filterwarnings("ignore:.* rows are more than max_samples=50"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


# The check of complex numbers makes NumPy warn before the estimator refuses them.
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("estimator", [ESTIMATORS[4], ESTIMATORS[6]], ids=repr)
def test_none_of_the_checks_is_left_out(estimator):
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
    assert len(results) >= 45
