"""Fitted kernels as plain data and tensors: those by name, and the Probabilistic Cluster Kernel."""

from typing import Any

import torch
from torch import Tensor

from dkae.kernels import PairwiseKernel, ProbabilisticClusterKernel
from dkae.kernels.cluster.mixtures import Mixtures
from dkae.persistence.plain import plain

#: Begins the names of a kernel's tensors.
PREFIX = "kernel."
_MIXTURES = ("sizes", "weights", "means", "covariances")
#: What the cluster kernel has learnt besides its mixtures.
_LEARNT = ("n_mixtures_", "n_iter_", "n_features_in_", "largest_")


def can_hold(kernel: Any) -> bool:
    """Say whether a file can hold a kernel; a subclass may compute something else."""
    return type(kernel) in (PairwiseKernel, ProbabilisticClusterKernel)


def describe_kernel(kernel: Any) -> tuple[dict[str, Any] | None, dict[str, Tensor]]:
    """Return what builds a fitted kernel again, and its tensors; None if a file cannot hold it."""
    if not can_hold(kernel):
        return None, {}
    if isinstance(kernel, PairwiseKernel):
        described: dict[str, Any] = plain(kernel.get_params() | {"gamma": kernel.gamma_})
        return described, {}
    params = {name: v for name, v in kernel.get_params().items() if name != "random_state"}
    learnt = {name: getattr(kernel, name) for name in _LEARNT if hasattr(kernel, name)}
    tensors = {name: getattr(kernel.mixtures_, name) for name in _MIXTURES}
    tensors |= {
        "offset": torch.from_numpy(kernel._offset),
        "basis": torch.from_numpy(kernel._basis),
    }
    return plain({"pck": params, "learnt": learnt}), {PREFIX + n: t for n, t in tensors.items()}


def rebuild_kernel(described: dict[str, Any] | None, tensors: dict[str, Tensor]) -> Any:
    """Return a fitted kernel; None if the file has none."""
    if described is None:
        return None
    if "pck" not in described:
        named = PairwiseKernel(**described)
        named.gamma_ = described["gamma"]
        return named
    kernel = ProbabilisticClusterKernel(**described["pck"])
    for name in _LEARNT:
        if name in described["learnt"]:
            setattr(kernel, name, described["learnt"][name])
    kernel.mixtures_ = Mixtures(*(tensors[PREFIX + name] for name in _MIXTURES))
    kernel._offset = tensors[PREFIX + "offset"].numpy()
    kernel._basis = tensors[PREFIX + "basis"].numpy()
    return kernel
