"""A Probabilistic Cluster Kernel that many models share: its posteriors are computed once."""

from __future__ import annotations

import hashlib
import json
import threading
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import joblib
from numpy.typing import NDArray

from dkae._runtime.files import replacing
from dkae.kernels import FeatureKernel, ProbabilisticClusterKernel
from dkae.kernels.base import Floats

__all__ = ["SharedKernel"]

#: Networks may be trained in several threads at once. One lock for all kernels and all that they
#: keep: two locks could wait for each other, and the filters of warnings, which a fit changes for a
#: while, belong to the process.
_LOCK = threading.RLock()


class SharedKernel(FeatureKernel):
    """The kernel of one configuration, fitted to the training rows when it is first needed.

    Its posteriors for the rows of the study are kept, in memory and in the cache folder; those of
    any other rows are computed as they come. ``fit`` and ``clone`` give the kernel itself, so
    every model gets the same one.

    Parameters
    ----------
    config : mapping
        ``"params"`` are those of `ProbabilisticClusterKernel`; all of it names the cached files.
    rows : mapping of str to arrays
        The rows to remember; the kernel is fitted to those called "train".
    cache : Path
        The folder.
    """

    def __init__(self, config: Mapping[str, Any], rows: Mapping[str, Floats], cache: Path) -> None:
        self.config = config
        self.rows = rows
        self.cache = cache
        self._fitted: ProbabilisticClusterKernel | None = None
        self._priors: dict[str, Any] = {}

    def __sklearn_clone__(self) -> Self:
        return self

    def __str__(self) -> str:
        return "kernel 'pck'"

    def __repr__(self) -> str:
        return f"SharedKernel({dict(self.config['params'])})"

    @property
    def fitted(self) -> ProbabilisticClusterKernel:
        """The kernel itself."""
        with _LOCK:
            if self._fitted is None:
                self._fitted = self._fit()
            return self._fitted

    def _fit(self) -> ProbabilisticClusterKernel:
        with warnings.catch_warnings():
            # The number of mixtures stands in every result.
            warnings.filterwarnings("ignore", message=".*did not converge", category=UserWarning)
            return ProbabilisticClusterKernel(**self.config["params"]).fit(self.rows["train"])

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of mixtures and of columns of posteriors."""
        return {
            "mixtures": self.fitted.n_mixtures_,
            "posterior columns": len(self.fitted.mixtures_.weights),
        }

    def features(self, X: Any) -> Floats:
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
            if part not in self._priors:
                self._priors[part] = self._load_or_compute(part)
            return self._priors[part]

    def _load_or_compute(self, part: str) -> Any:
        text = json.dumps([self.config, part], sort_keys=True, default=list)
        key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        path = self.cache / f"posteriors-{key}.joblib"
        if not path.exists():
            with replacing(path) as temporary:
                joblib.dump(self.fitted.on(self.rows[part]), temporary)
        try:
            return joblib.load(path)
        except (MemoryError, OSError):
            raise
        except Exception as error:  # there is no telling how a damaged file fails
            raise ValueError(
                f"{path} in the cache is damaged ({type(error).__name__}): delete it, it is made "
                "anew in seconds"
            ) from error


def _same(a: NDArray[Any], b: Any) -> bool:
    return b is a or (b.shape == a.shape and bool((b == a).all()))
