"""Models that were read without their kernel, and how it comes back.

A file holds no code: neither a function nor a Gram matrix of the user's. It holds a few values of
the kernel instead, on rows that the model can make again, so that no other kernel is taken for it.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dkae._support.states import check_array
from dkae._support.warning import warn_caller
from dkae.kernels import is_fitted, make_kernel
from dkae.kernels.bandwidth import has_gamma
from dkae.kernels.base import Kernel
from dkae.kernels.pairwise import PairwiseKernel

#: Rows on which a kernel is recognised.
N_PROBES = 8
#: Two processors may differ so much, relative to the largest value.
TOLERANCE = 1e-2


def _learns_nothing(kernel: Kernel) -> bool:
    """Say whether a kernel by name is not fitted, and needs no data to be."""
    if type(kernel) is not PairwiseKernel or is_fitted(kernel):
        return False
    return not isinstance(kernel.gamma, str) or not has_gamma(kernel.metric)


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

    def kernel_values(self) -> NDArray[Any] | None:
        """Return κ on the probe rows, by which a kernel is recognised; None if it has none."""
        if self.kernel_ is None:
            return None
        try:
            values = self._values_of(self.kernel_)
        except Exception:  # it has values for known rows only, or for no rows like these
            return None
        return values if values is not None and np.isfinite(values).all() else None

    def _values_of(self, kernel: Kernel) -> NDArray[Any] | None:
        rows = self._probe_rows()
        return None if rows is None else np.asarray(kernel.values(rows), dtype=np.float64)

    def _take_stored_values(self, values: Any) -> None:
        """Take the values that a file has."""
        if values is not None:
            self._stored_kernel_values = check_array("kernel_values", values, (None, None))

    def _check_kernel(self) -> None:
        """Refuse a kernel of a file that has no values where it had some."""
        if self.kernel_ is not None and self._stored_kernel_values is not None:
            # Not compared: on another processor, a row may fall on the other side of a threshold.
            shape = self._stored_kernel_values.shape
            check_array("the values of the kernel", self._values_of(self.kernel_), shape)

    def attach_kernel(self, kernel: Any) -> Self:
        """Give a model that was loaded without its kernel the kernel back.

        Parameters
        ----------
        kernel : callable, scikit-learn Gaussian-process kernel, Kernel or str
            The kernel of the fit. Its values on a few rows are compared with those in the file. One
            that learns from data must be fitted; so must one by name, unless its γ is a number or
            it has none.
        """
        check_is_fitted(self)
        given = make_kernel(kernel)
        if _learns_nothing(given):
            given.fit(np.zeros((1, 1), dtype=np.float32))
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
            values = self._values_of(kernel)
        except Exception as error:
            hint = "" if is_fitted(kernel) else "; if it learns from data, fit it first"
            raise ValueError(
                f"{kernel} cannot be evaluated on rows like those of the fit ({error}): "
                f"pass the kernel that the model was fitted with{hint}"
            ) from error
        largest = np.abs(stored).max(initial=0)
        if values is None or values.shape != stored.shape:
            raise ValueError(f"{kernel} has not the values of a kernel: pass that of the fit")
        difference = np.abs(values - stored).max(initial=0)
        if not difference <= TOLERANCE * largest:
            raise ValueError(
                f"{kernel} is not the kernel of the fit: on {len(stored)} rows its values "
                f"differ by {difference:.3g} from those in the file, whose largest is "
                f"{largest:.3g}. Pass the same kernel with the same parameters"
            )
