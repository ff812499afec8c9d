"""A model that was loaded without its kernel, and how the kernel comes back.

A file holds no code: neither a function nor a Gram matrix. It holds a few values of the kernel on
rows that the model can make again, so that no other kernel is taken for it.
"""

from contextlib import suppress
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dkae._support.checks import warn_caller
from dkae.kernels import Kernel, is_fitted, make_kernel

#: Values on two processors may differ so much, relative to the largest.
TOLERANCE = 1e-2


class AttachedKernel:
    """A fitted model with a kernel, ``kernel_``, that may have been left out of its file."""

    kernel_: Kernel | None
    #: Values of the kernel that a file had, for models that were read from one.
    _stored_kernel_values: NDArray[Any] | None = None

    def _probe_rows(self) -> Any:
        """Return a few rows that depend on nothing but the model; None if it has none."""
        raise NotImplementedError

    def kernel_values(self) -> NDArray[Any] | None:
        """Return κ on the probe rows, which identify a kernel; None if it has no values there."""
        if self.kernel_ is None:
            return self._stored_kernel_values
        rows = self._probe_rows()
        if rows is None:
            return None
        try:
            values = values_on(self.kernel_, rows)
        except ValueError:  # it has values for known rows only, or for no rows like these
            return None
        return values if np.isfinite(values).all() else None

    def attach_kernel(self, kernel: Any) -> Self:
        """Restore the kernel of a model that was loaded without it.

        Parameters
        ----------
        kernel : callable, scikit-learn Gaussian-process kernel, Kernel or str
            The kernel of the fit. Its values on a few rows are compared with those in the file. One
            that learns from data must be fitted; so must one by name, unless its γ is a number or
            it has none.
        """
        check_is_fitted(self)
        given = make_kernel(kernel)
        if not is_fitted(given):
            with suppress(Exception):  # it needs rows: you have to fit it
                given.fit(None)
        stored = self._stored_kernel_values
        if stored is None:
            warn_caller(
                "the kernel cannot be verified: the model was fitted with a Gram matrix, so there "
                "are no values to compare with"
            )
        else:
            rows = self._probe_rows()
            check_same_values(given, None if rows is None else values_on(given, rows), stored)
        self.kernel_ = given
        return self


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
