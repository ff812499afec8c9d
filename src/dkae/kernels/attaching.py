"""Models that were read without their kernel, and how it comes back.

A file holds no code: neither a function nor a Gram matrix of the user's. It holds a few values of
the kernel instead, on rows that the model can make again, so that no other kernel is taken for it.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dkae._runtime.fitting import warn_caller
from dkae.kernels import is_fitted, make_kernel
from dkae.kernels.base import Kernel

#: Rows on which a kernel is recognised.
N_PROBES = 8
#: Two processors may differ so much, relative to the largest value.
TOLERANCE = 1e-2


class HasKernel:
    """A fitted model with a kernel, ``kernel_``, that may have been left out of its file."""

    kernel_: Kernel | None
    #: Values of the kernel that a file had, for models that were read from one.
    _stored_kernel_values: NDArray[Any] | None = None

    def _probe_rows(self) -> Any:
        """Return a few rows that depend on nothing but the model; None if it has none."""
        raise NotImplementedError

    def _set_kernel(self, kernel: Kernel) -> None:
        self.kernel_ = kernel

    def kernel_values(self, kernel: Kernel | None = None) -> NDArray[Any] | None:
        """Return κ on the probe rows, by which a kernel is recognised; None if it is not known."""
        kernel, rows = self.kernel_ if kernel is None else kernel, self._probe_rows()
        if kernel is None or rows is None:
            return None
        try:
            return np.asarray(kernel.values(rows), dtype=np.float64)
        except ValueError:  # it has values for known rows only
            return None

    def attach_kernel(self, kernel: Any) -> Self:
        """Give a model that was loaded without its kernel the kernel back.

        Parameters
        ----------
        kernel : str, callable, scikit-learn Gaussian-process kernel or Kernel
            The kernel of the fit. Its values on a few rows are compared with those in the file. One
            that learns from data must be fitted.
        """
        check_is_fitted(self)
        given = make_kernel(kernel)
        stored = self._stored_kernel_values
        if stored is None:
            warn_caller(
                "there are no values of the kernel to compare with, as where a model was fitted "
                "with a Gram matrix: nobody can say whether this is its kernel"
            )
        else:
            self._check_values(given, stored)
        self._set_kernel(given)
        return self

    def _check_values(self, kernel: Kernel, stored: NDArray[Any]) -> None:
        try:
            values = self.kernel_values(kernel)
        except Exception as error:
            hint = "" if is_fitted(kernel) else "; if it learns from data, fit it first"
            raise ValueError(
                f"{kernel} cannot be evaluated on rows like those of the fit ({error}): "
                f"pass the kernel that the model was fitted with{hint}"
            ) from error
        largest = np.abs(stored).max(initial=0)
        if values is None or values.shape != stored.shape:
            raise ValueError(f"{kernel} has values for known rows only: pass a function")
        difference = np.abs(values - stored).max(initial=0)
        if not difference <= TOLERANCE * largest:
            raise ValueError(
                f"{kernel} is not the kernel of the fit: on {len(stored)} rows its values "
                f"differ by {difference:.3g} from those in the file, whose largest is "
                f"{largest:.3g}. Pass the same kernel with the same parameters"
            )
