"""scikit-learn's own checks: each map, network and decoder, and none is left out."""

from __future__ import annotations

from functools import partial

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator,
    estimator_checks_generator,
    parametrize_with_checks,
)

from dkae import InvertibleNystroem, KernelPCA
from dkae.kernels import ForestKernel
from tests.laws.maps import MAPS, make
from tests.nets import Residual

ESTIMATORS = [
    *MAPS.values(),
    make("autoencoder", network=partial(Residual, width=8)),
    make(
        "autoencoder",
        standardize=True,
        missing="mask",
        kernel=ForestKernel(n_estimators=3, random_state=0),
    ),
    make("nystroem, ridge", standardize=True, missing="mask", n_linear=1),
    InvertibleNystroem(random_state=0),
    *(MAPS[name].decoder for name in MAPS if name.startswith("nystroem") and "sci" not in name),
    KernelPCA(1, center=False, solver="lanczos", decoder=None, random_state=0),
]

pytestmark = pytest.mark.filterwarnings("ignore")  # of tiny and odd data


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_check_is_left_out(estimator):
    assert len(list(estimator_checks_generator(estimator))) >= 46


def test_no_check_is_skipped():
    results = check_estimator(MAPS["nystroem, ridge"], on_fail=None, on_skip=None)
    assert {result["status"] for result in results} == {"passed"}
