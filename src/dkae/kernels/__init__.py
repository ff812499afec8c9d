"""The kernels that a code space can be aligned with."""

import copy
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import Kernel as _GPKernel

from dkae._support.checks import check_choice, shown
from dkae.grams import Gram, as_gram, sample_ids
from dkae.kernels.base import Kernel
from dkae.kernels.cluster import ProbabilisticClusterKernel
from dkae.kernels.compose import normalize
from dkae.kernels.features import FeatureKernel, TransformerKernel
from dkae.kernels.forests import ForestKernel
from dkae.kernels.formulas import choose_gamma
from dkae.kernels.known_rows import Precomputed, ideal_kernel
from dkae.kernels.nystroem import NystroemFeatures
from dkae.kernels.pairwise import (
    FunctionKernel,
    GaussianProcessKernel,
    PairwiseKernel,
    pairwise_names,
)
from dkae.rows import as_rows

__all__ = [
    "FeatureKernel",
    "ForestKernel",
    "FunctionKernel",
    "GaussianProcessKernel",
    "Kernel",
    "NystroemFeatures",
    "PairwiseKernel",
    "Precomputed",
    "ProbabilisticClusterKernel",
    "TransformerKernel",
    "choose_gamma",
    "gram_of",
    "ideal_kernel",
    "is_fitted",
    "make_kernel",
    "normalize",
    "pairwise_names",
]

#: Rows on which a given Gram is compared with its kernel.
N_COMPARED_ROWS = 8
#: Kernels that learn an ensemble from the data, by name.
ENSEMBLES: dict[str, type[Kernel]] = {"forest": ForestKernel, "pck": ProbabilisticClusterKernel}


def make_kernel(
    kernel: Any, *, gamma: str | float | None = "median", random_state: Any = None
) -> Kernel:
    """Return the kernel object that a parameter `kernel` describes.

    A kernel that is fitted is returned as it is; one that is not is copied, for its caller to fit.

    Parameters
    ----------
    kernel : str, callable, scikit-learn Gaussian-process kernel or Kernel
        A name of :func:`~dkae.kernels.pairwise.pairwise_names`, ``"pck"`` (the Probabilistic
        Cluster Kernel) or ``"forest"``, a function ``(X, Y) -> Gram``,
        an object of ``sklearn.gaussian_process.kernels``, or a kernel of this package.
    gamma : {"median", "scale"}, float or None, default="median"
        γ of a kernel by name. An error for kernels that have none, and for objects, which have
        their own parameters.
    random_state : int, RandomState or None
        Seed of "pck" and "forest".
    """
    if isinstance(kernel, str) and kernel in pairwise_names():
        made = PairwiseKernel(kernel, gamma=gamma)
        made.check_params()
        return made
    made = _make(kernel, random_state)
    if not (isinstance(gamma, str) and gamma == "median"):
        raise ValueError(
            f"gamma={shown(gamma)} is for kernels by name that have one, not for {made}: leave it "
            "out, and pass parameters to the kernel object, such as PairwiseKernel('rbf', gamma=1)"
        )
    return made


def _make(kernel: Any, random_state: Any) -> Kernel:
    """Return the kernel that an object, or the name of an ensemble, describes."""
    if isinstance(kernel, Kernel):
        return kernel if is_fitted(kernel) else copy.copy(kernel)
    if isinstance(kernel, _GPKernel):
        return GaussianProcessKernel(clone(kernel))
    if isinstance(kernel, type):
        raise ValueError(
            f"kernel={kernel.__name__} is a class: pass an object, {kernel.__name__}(...)"
        )
    if callable(kernel):
        return FunctionKernel(kernel)
    is_matrix = isinstance(kernel, Gram) or hasattr(kernel, "shape")
    if is_matrix or (isinstance(kernel, str) and kernel == "precomputed"):
        what = f"<{type(kernel).__name__}>" if is_matrix else "'precomputed'"
        raise ValueError(f"kernel={what} needs the Gram matrix: call fit(X, gram=P)")
    name = check_choice("kernel", kernel, [*pairwise_names(), *ENSEMBLES, "precomputed"])
    return ENSEMBLES[name](random_state=random_state)


def is_fitted(kernel: Kernel) -> bool:
    """Return whether a kernel has learned something from data."""
    return kernel.__sklearn_is_fitted__()


def gram_of(gram: Any, X: Any) -> Gram:
    """Return the parameter `gram` as the Gram matrix of the rows X, checked against their number.

    Its attribute `kernel` is None if the kernel is not known, or is not that of these rows.
    """
    if isinstance(gram, Kernel):
        raise ValueError(
            f"gram is a {type(gram).__name__}, a kernel: pass it as the parameter kernel, or its "
            "Gram, gram=kernel.on(X)"
        )
    if not isinstance(gram, Gram) and not hasattr(gram, "block"):
        matrix = Precomputed(gram).fit(X).on(X)
        matrix.kernel = None  # a matrix has no values for other rows
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
    """Return whether the kernel of a Gram has its entries on a few of the rows X."""
    rows = sample_ids(len(gram), N_COMPARED_ROWS)
    block = np.asarray(gram.block(rows), dtype=np.float64)
    try:
        values = gram.kernel.values(as_rows(X)[rows])
    except Exception:  # a kernel may know other rows only, or rows of another shape
        return False
    return bool(np.allclose(values, block, rtol=1e-3, atol=1e-3 * np.abs(block).max()))
