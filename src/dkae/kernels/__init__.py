"""The kernels that a code space can be aligned with."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel as _GPKernel

from dkae._support.checks import check_choice, check_mapping
from dkae._support.warning import warn_caller
from dkae.grams import Gram, as_gram, check_block, sample_rows
from dkae.kernels.base import Kernel
from dkae.kernels.cluster import ProbabilisticClusterKernel
from dkae.kernels.compose import center, normalize
from dkae.kernels.features import FeatureKernel, TransformerKernel
from dkae.kernels.labels import ideal_gram as ideal_gram
from dkae.kernels.labels import ideal_kernel
from dkae.kernels.pairwise import (
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    pairwise_names,
)
from dkae.kernels.partitions import ForestKernel
from dkae.kernels.precomputed import Precomputed
from dkae.rows import as_rows

__all__ = [
    "FeatureKernel",
    "ForestKernel",
    "FunctionKernel",
    "GaussianProcessKernel",
    "Kernel",
    "PairwiseKernel",
    "Precomputed",
    "ProbabilisticClusterKernel",
    "TransformerKernel",
    "center",
    "gram_of",
    "ideal_kernel",
    "make_kernel",
    "normalize",
]

#: Rows on which the Gram that a user passes is compared with its kernel.
N_COMPARED_ROWS = 8
#: Former names of this room.
_MOVED: dict[str, Any] = {"Prior": Gram, "check_block": check_block}
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
    """Return the kernel object that the user's `kernel` stands for.

    A kernel that is fitted comes back as it is; one that is not is copied, for its caller to fit.

    Parameters
    ----------
    kernel : str, callable, scikit-learn Gaussian-process kernel or Kernel
        A name of :func:`~dkae.kernels.pairwise.pairwise_names`, ``"pck"`` (the Probabilistic
        Cluster Kernel) or ``"forest"``, a function ``(X, Y) -> Gram``,
        an object of ``sklearn.gaussian_process.kernels``, or a kernel of this package.
    gamma, degree, coef0
        Parameters of the kernels that are given by name.
    kernel_params : mapping, optional
        Keyword arguments of a callable, or parameters of a kernel that is given by name; they go
        before `gamma`, `degree` and `coef0`.
    random_state : int, RandomState or None
        Seed of "pck" and "forest".
    """
    if isinstance(kernel, Kernel):
        return kernel if is_fitted(kernel) else copy.copy(kernel)
    if isinstance(kernel, _GPKernel):
        return GaussianProcessKernel(clone(kernel))
    params = check_mapping("kernel_params", kernel_params)
    if isinstance(kernel, type):
        raise ValueError(
            f"kernel={kernel.__name__} is a class: pass an object, {kernel.__name__}(...)"
        )
    if callable(kernel):
        return FunctionKernel(kernel, kernel_params)
    is_matrix = isinstance(kernel, Gram) or hasattr(kernel, "shape")
    if is_matrix or (isinstance(kernel, str) and kernel == "precomputed"):
        what = f"<{type(kernel).__name__}>" if is_matrix else "'precomputed'"
        raise ValueError(f"kernel={what} needs the Gram matrix: call fit(X, gram=P)")
    name = check_choice("kernel", kernel, [*pairwise_names(), *ENSEMBLES, "precomputed"])
    given = dict(params)
    if name in ENSEMBLES:
        kind = ENSEMBLES[name]
        _check_names(name, given, kind._get_param_names())
        return kind(**({"random_state": random_state} | given))
    _check_names(name, given, ["gamma", "degree", "coef0"])
    return PairwiseKernel(name, **({"gamma": gamma, "degree": degree, "coef0": coef0} | given))


def kernel_of(estimator: Any, X: Any, y: object) -> Kernel:
    """Return the kernel that an estimator's parameters describe, fitted to the rows X.

    A kernel that is fitted already stays as it is.
    """
    kernel = kernel_named(estimator)
    return kernel if is_fitted(kernel) else kernel.fit(X, y)


def kernel_named(estimator: Any) -> Kernel:
    """Return the kernel that an estimator's parameters describe, as it is."""
    names = ("kernel", "gamma", "degree", "coef0", "kernel_params", "random_state")
    return make_kernel(**{name: getattr(estimator, name) for name in names})


def is_fitted(kernel: Kernel) -> bool:
    """Say whether a kernel has learnt something from data."""
    return kernel.__sklearn_is_fitted__()


def gram_of(gram: Any, X: Any) -> Gram:
    """Return what a user passes as the Gram matrix of the rows X, checked against their number."""
    if isinstance(gram, Kernel):
        raise ValueError(
            f"gram is a {type(gram).__name__}, a kernel: pass it as the parameter kernel, or its "
            "Gram, gram=kernel.on(X)"
        )
    if not isinstance(gram, Gram) and not hasattr(gram, "block"):
        matrix = Precomputed(gram).fit(X).on(X)
        matrix.kernel = None  # a matrix alone says nothing of other rows
        return matrix
    checked = as_gram(gram, "gram")
    if len(checked) != len(X):
        raise ValueError(
            f"gram has {len(checked)} rows, but X has {len(X)}: pass the Gram of the same rows as "
            "X, such as kernel.on(X)"
        )
    if checked.kernel is not None and not _is_of(checked, X):
        checked = checked[:]
        checked.kernel = None  # it is of other rows than X, such as rows that are not scaled
    return checked


def _is_of(gram: Gram, X: Any) -> bool:
    """Say whether the kernel of a Gram gives its entries on a few of the rows X."""
    rows = sample_rows(len(gram), N_COMPARED_ROWS)
    block = np.asarray(gram.block(rows), dtype=np.float64)
    try:
        values = gram.kernel.values(as_rows(X)[rows])
    except Exception:  # a kernel may know other rows only, or rows of another shape
        return False
    return bool(np.allclose(values, block, rtol=1e-3, atol=1e-3 * np.abs(block).max()))


def _check_names(kernel: str, params: Mapping[str, Any], known: Sequence[str]) -> None:
    for name in params:
        check_choice(f"a name in kernel_params of kernel {kernel!r}", name, known)


def __getattr__(name: str) -> Any:
    if name in _MOVED:
        moved = _MOVED[name]
        warn_caller(f"dkae.kernels.{name} is now dkae.grams.{moved.__name__}", FutureWarning)
        return moved
    raise AttributeError(f"module 'dkae.kernels' has no attribute {name!r}")
