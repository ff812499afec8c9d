"""Whether a kernel is the one that a model was fitted with: its values on a few rows tell.

A model file holds neither code nor Gram matrices, but a few kernel values, on rows that the model
can make again. No other kernel is then taken for its own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dkae.kernels.base import Kernel

#: Rows on which a kernel is recognised.
N_PROBES = 8
#: Values on two processors may differ so much, relative to the largest.
TOLERANCE = 1e-2


def values_on(kernel: Kernel, rows: Any) -> NDArray[np.float64]:
    """Return κ on a few rows like those of the fit."""
    try:
        return np.asarray(kernel.values(rows), dtype=np.float64)
    except Exception as error:  # a custom kernel may raise anything
        is_fitted = kernel.__sklearn_is_fitted__()
        hint = "" if is_fitted else "; if it learns from data, fit it first"
        raise ValueError(
            f"{kernel} cannot be evaluated on rows like those of the fit ({error}): "
            f"pass the kernel that the model was fitted with{hint}"
        ) from error


def check_same_values(kernel: Kernel, values: Any, stored: NDArray[Any]) -> None:
    """Raise if the values of a kernel are not those that were stored."""
    if values is None or values.shape != stored.shape:
        raise ValueError(f"{kernel} has no such values on these rows: pass the kernel of the fit")
    largest = np.abs(stored).max(initial=0)
    difference = np.abs(values - stored).max(initial=0)
    if not difference <= TOLERANCE * largest:
        raise ValueError(
            f"{kernel} is not the kernel of the fit: on {len(stored)} rows its values "
            f"differ by {difference:.3g} from those in the file, whose largest is "
            f"{largest:.3g}. Pass the same kernel with the same parameters"
        )
