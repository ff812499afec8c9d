"""The kernels that a code space can be aligned with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel as _GPKernel

from dkae._runtime.checks import check_choice
from dkae.kernels.base import Kernel, Prior, check_block
from dkae.kernels.cluster import ProbabilisticClusterKernel
from dkae.kernels.compose import center, normalize
from dkae.kernels.features import FeatureKernel, TransformerKernel
from dkae.kernels.labels import ideal_gram
from dkae.kernels.pairwise import (
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    pairwise_names,
)
from dkae.kernels.partitions import ForestKernel
from dkae.kernels.precomputed import Precomputed

__all__ = [
    "FeatureKernel",
    "ForestKernel",
    "FunctionKernel",
    "GaussianProcessKernel",
    "Kernel",
    "PairwiseKernel",
    "Precomputed",
    "Prior",
    "ProbabilisticClusterKernel",
    "TransformerKernel",
    "center",
    "check_block",
    "ideal_gram",
    "make_kernel",
    "normalize",
]

#: Kernels that learn an ensemble from the data, by name.
ENSEMBLES: dict[str, type[Kernel]] = {"forest": ForestKernel, "pck": ProbabilisticClusterKernel}


def make_kernel(
    kernel: Any,
    *,
    gamma: str | float | None = "median",
    degree: float = 3,
    coef0: float = 1,
    kernel_params: Mapping[str, Any] | None = None,
    random_state: Any = None,
) -> Kernel:
    """Return the unfitted kernel object that the user's `kernel` stands for.

    Parameters
    ----------
    kernel : str, callable, scikit-learn Gaussian-process kernel or Kernel
        A name of :func:`~dkae.kernels.pairwise.pairwise_names`, ``"pck"`` (the Probabilistic
        Cluster Kernel) or ``"forest"``, a function ``(X, Y) -> Gram``,
        an object of ``sklearn.gaussian_process.kernels``, or a kernel of this package.
    gamma, degree, coef0
        Parameters of the kernels that are given by name.
    kernel_params : mapping, optional
        Keyword arguments of a callable, or parameters of "pck" and "forest".
    random_state : int, RandomState or None
        Seed of "pck" and "forest".
    """
    if isinstance(kernel, Kernel):
        return clone(kernel)  # type: ignore[no-any-return]
    if isinstance(kernel, _GPKernel):
        return GaussianProcessKernel(clone(kernel))
    if callable(kernel):
        return FunctionKernel(kernel, kernel_params)
    if kernel == "precomputed":
        raise ValueError("kernel='precomputed' needs the Gram matrix: call fit(X, gram=P)")
    name = check_choice("kernel", kernel, [*pairwise_names(), *ENSEMBLES, "precomputed"])
    if name in ENSEMBLES:
        return ENSEMBLES[name](**({"random_state": random_state} | dict(kernel_params or {})))
    return PairwiseKernel(name, gamma=gamma, degree=degree, coef0=coef0)
