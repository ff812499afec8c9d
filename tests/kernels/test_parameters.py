"""Odd values of the parameters of kernels and measures: each works, or the error names it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
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
    center,
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
    "CenteredKernel": center(RBF),
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


@pytest.mark.parametrize(
    ("make", "name"),
    [(make_kernel, "kernel"), (make_measure, "alignment")],
    ids=["kernel", "measure"],
)
def test_what_is_neither_a_name_nor_a_function(make, name):
    for value in ODD:
        with pytest.raises((TypeError, ValueError), match=f"^{name}="):
            make(value)
