"""Parameters of kernels and measures: each value matters, or works, or the error names it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics.pairwise import rbf_kernel

from dkae.alignment import make_measure
from dkae.kernels import (
    ForestKernel,
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    TransformerKernel,
    ideal_kernel,
    make_kernel,
    normalize,
)

X = np.random.default_rng(0).uniform(0.1, 1, (20, 3))
RBF = PairwiseKernel("rbf")


class Unprintable:
    def __repr__(self):
        raise RuntimeError("it has no repr")


ODD = [
    object(), Unprintable(), Fraction(1, 2), 2**63, 10**400, 10**5000, "abc", b"x", float("nan"),
    float("inf"), -1, 0, 0.5, None, True, 1j, [], {}, {1}, np.ones(2), [[1], [1, 2]],
]  # fmt: skip

KERNELS = {
    "PairwiseKernel": PairwiseKernel("poly"),
    "FunctionKernel": FunctionKernel(rbf_kernel),
    "GaussianProcessKernel": GaussianProcessKernel(None),
    "Precomputed": Precomputed(X @ X.T),
    "IdealKernel": ideal_kernel(np.arange(20) % 3),
    "ProbabilisticClusterKernel": ProbabilisticClusterKernel(3, 1, random_state=0),
    "ForestKernel": ForestKernel(n_estimators=2, random_state=0),
    "TransformerKernel": TransformerKernel(None),
    "SumKernel": RBF + RBF,
    "ProductKernel": RBF * RBF,
    "NormalizedKernel": normalize(RBF),
}
PARAMETERS = [(name, p) for name, kernel in KERNELS.items() for p in kernel.get_params(deep=False)]
#: Parameters that errors call otherwise.
CALLED = {"metric": "kernel", "function": "kernel", "gram_matrix": "gram"}


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS)
@pytest.mark.filterwarnings("ignore")
def test_odd_values_work_or_are_named(name, parameter):
    # A huge but finite number makes the values of the kernel infinite.
    names = (CALLED.get(parameter, parameter), "check the kernel and its parameters")
    unnamed = []
    for value in ODD:
        kernel = type(KERNELS[name])(**KERNELS[name].get_params(deep=False) | {parameter: value})
        try:
            kernel.fit(X).gram(X)
        except (TypeError, ValueError) as error:
            if not any(n in str(error) for n in names):
                unnamed.append((type(value), error))
    assert not unnamed


#: Another value of each parameter, for which the kernel is another one.
OTHERS = {
    PairwiseKernel("poly"): {"metric": "rbf", "gamma": "scale", "degree": 2, "coef0": 0.5},
    ForestKernel(n_estimators=9, random_state=0): {
        "forest": ExtraTreesRegressor(3, random_state=0).fit(X, X[:, 0]),
        "n_estimators": 8, "max_depth": 2, "random_state": 1,
    },
    ProbabilisticClusterKernel(6, 4, random_state=0): {
        "max_components": 5, "n_initializations": 3, "reg_covar": 0.1, "max_fit_samples": 12,
        "max_iter": 12, "tol": 0.5, "tolerance": 0.5, "random_state": 1,
    },
    RBF + PairwiseKernel("linear"): {"kernels": [RBF, RBF], "weights": [2, 1]},
}  # fmt: skip


@pytest.mark.parametrize("kernel", OTHERS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.filterwarnings("ignore:.*mixtures")
def test_every_parameter_matters(kernel):
    assert {*OTHERS[kernel], "device"} >= {*kernel.get_params(deep=False)}
    expected = clone(kernel).fit(X).gram(X)
    for name, value in OTHERS[kernel].items():
        other = type(kernel)(**clone(kernel).get_params(deep=False) | {name: value})
        assert not np.array_equal(other.fit(X).gram(X), expected), name


@pytest.mark.parametrize(
    ("make", "name"),
    [(make_kernel, "kernel"), (make_measure, "alignment")],
    ids=["kernel", "measure"],
)
def test_what_is_neither_a_name_nor_a_function(make, name):
    for value in ODD:
        with pytest.raises((TypeError, ValueError), match=f"^{name}="):
            make(value)
