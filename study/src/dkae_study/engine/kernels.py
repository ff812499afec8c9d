"""The kernel of a seed, which many models share: its Gram matrices are prepared once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping
from typing import Any, Self

from numpy.typing import NDArray

from dkae.kernels import FeatureKernel

__all__ = ["SharedKernel"]

#: Networks may be trained in several threads at once. One lock for all kernels and all that they
#: keep: two locks could wait for each other, and the filters of warnings, which a fit changes for a
#: while, belong to the process.
_LOCK = threading.RLock()


class SharedKernel(FeatureKernel):
    """A kernel that is fitted to the training rows when it is first needed, and only then.

    What it prepares for the rows of the study, such as posteriors, stays in memory: seconds for a
    seed and a process. Nothing is kept on disk. ``fit`` and ``clone`` give the kernel itself, so
    every model gets the same one.

    Parameters
    ----------
    kernel : Kernel
        The kernel, unfitted.
    rows : mapping of str to arrays
        The rows to remember; the kernel is fitted to those called "train".
    """

    def __init__(self, kernel: Any, rows: Mapping[str, Any]) -> None:
        self.kernel = kernel
        self.rows = rows
        self._is_fitted = False
        self._grams: dict[str, Any] = {}

    def __sklearn_clone__(self) -> Self:
        return self

    def __str__(self) -> str:
        return str(self.kernel)

    def __repr__(self) -> str:
        return f"SharedKernel({self.kernel!r})"

    @property
    def fitted(self) -> Any:
        """The kernel itself, fitted."""
        with _LOCK:
            if not self._is_fitted:
                with warnings.catch_warnings():
                    # How many mixtures converged stands in every result.
                    message = ".*did not converge"
                    warnings.filterwarnings("ignore", message=message, category=UserWarning)
                    self.kernel.fit(self.rows["train"])
                self._is_fitted = True
            return self.kernel

    def features(self, X: Any) -> Any:
        return self.fitted.features(X)

    def evaluate(self, X: Any, Y: Any) -> Any:
        return self.fitted.evaluate(X, Y)

    def feature_matrix(self, X: Any) -> Any:
        return self.on(X).feature_matrix()

    def on(self, X: Any) -> Any:
        part = next((name for name, rows in self.rows.items() if _same(rows, X)), None)
        if part is None:
            return self.fitted.on(X)
        with _LOCK:
            if part not in self._grams:
                self._grams[part] = self.fitted.on(self.rows[part])
            return self._grams[part]


def _same(a: NDArray[Any], b: Any) -> bool:
    return b is a or (b.shape == a.shape and bool((b == a).all()))
