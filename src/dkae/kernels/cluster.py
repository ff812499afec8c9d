r"""The Probabilistic Cluster Kernel: how often two rows share a component of many mixtures.

Gaussian mixtures with :math:`g = 2, \dots, G` components are fitted from :math:`q = 1, \dots, Q`
random starts each. With the posterior :math:`\pi_i(q, g)` of row i under mixture (q, g), Eq. 4 is

.. math:: \kappa(x_i, x_j) = \frac1Z \sum_{q=1}^{Q} \sum_{g=2}^{G} \pi_i(q, g)^\top \pi_j(q, g) .
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from dkae._support.arrays import check_magnitude
from dkae._support.checks import check_integer, check_number, draw_seed, warn_caller
from dkae._support.devices import choose_device
from dkae._support.processes import present
from dkae._support.threads import in_threads
from dkae.grams import FeatureGram, Floats, Gram, RowsGram
from dkae.kernels.base import Kernel, vectors
from dkae.kernels.features import FeatureKernel
from dkae.kernels.mixtures import FitResult, first_densities, fit_mixtures, posteriors, unit_of
from dkae.kernels.posteriors import CompactPosteriors, Screening
from dkae.rows import RowArray, is_row_array, validated_rows

#: Rows whose posteriors a thread computes together: 57 MB in float64 at 13,920 components. Fewer
#: would make the products slower.
N_CHUNK_ROWS = 512
#: Warn if more than this share of the mixtures is lost.
MAX_LOST_SHARE = 0.05


class ProbabilisticClusterKernel(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    FeatureKernel,
):
    """The Probabilistic Cluster Kernel (PCK), Eq. 4 of the paper.

    Its mixtures have diagonal covariances, and Z is the number of mixtures that were fitted. The
    first means of a mixture are random rows; its weights start equal, and its covariances as the
    mean variance in all directions. For κ(x, x) = 1, use ``normalize(kernel)``.

    Parameters
    ----------
    max_components : int, default=30
        G: mixtures have 2 to G components.
    n_initializations : int, default=30
        Q: random starts for each number of components.
    reg_covar : float, default=1e-6
        Added to the variances, in units of the rows: it is multiplied by u², with u the power of
        ten for which the standard deviation of the fit rows, over u, lies between 0.14 and 1.4.
        For pixels in [0, 1], as in the paper, and for standardised rows, u is 1. So rows times a
        power of ten have the same kernel.
    max_fit_samples : int, default=200
        The mixtures are fitted on a random subset of at most this many rows, as in the paper.
    max_iter, tol : int and float, default=100 and 1e-3
        Expectation maximisation ends when the mean log-likelihood changes by less than `tol`; a
        mixture that has not converged after `max_iter` steps is left out.
    tolerance : float, default=1e-3
        Posteriors are kept in a compact form of about one byte for each row and mixture, which
        changes κ by at most this. Those that `transform` and `features` return are exact.
    random_state : int, RandomState or None, default=None
        Seed of the subset; the seed of each mixture (q, g) is derived from it.
    device : {"auto", "cpu", "cuda"}, default="cpu"
        Where the mixtures are fitted and evaluated, in float64.

    Attributes
    ----------
    n_mixtures_ : int
        Number of fitted mixtures.
    mixtures_ : Mixtures
        Their parameters, on the centred features that matter.
    n_iter_ : int
        Largest number of steps of a mixture.
    """

    def __init__(
        self,
        max_components: int = 30,
        n_initializations: int = 30,
        *,
        reg_covar: float = 1e-6,
        max_fit_samples: int = 200,
        max_iter: int = 100,
        tol: float = 1e-3,
        tolerance: float = 1e-3,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        self.max_components = max_components
        self.n_initializations = n_initializations
        self.reg_covar = reg_covar
        self.max_fit_samples = max_fit_samples
        self.max_iter = max_iter
        self.tol = tol
        self.tolerance = tolerance
        self.random_state = random_state
        self.device = device

    def __str__(self) -> str:
        return "kernel 'pck'"

    # --- the kernel --------------------------------------------------------------------------

    def fit(self, X: Any, y: object = None) -> Self:
        """Fit the mixtures on a random subset of the rows."""
        self._check_params()
        X = self._check_rows(X, reset=True)
        seed = present().first(draw_seed(self.random_state))  # all processes fit the same
        n_fit = min(len(X), self.max_fit_samples)
        sample = X[np.random.default_rng(seed).choice(len(X), n_fit, replace=False)]
        self._offset = sample.mean(axis=0, dtype=np.float64)
        # In a constant feature every component has the same mean and the variance `reg_covar`, so
        # the feature cancels in the posterior.
        self._basis = np.flatnonzero(np.ptp(sample, axis=0) > 0)
        rows = self._reduce(sample)
        reg_covar = float(self.reg_covar) * unit_of(rows) ** 2
        sizes, start = first_densities(
            rows,
            self._most_components(n_fit),
            self.n_initializations,
            reg_covar=reg_covar,
            seed=seed,
        )
        self._keep_converged(
            fit_mixtures(
                rows, sizes, start, reg_covar=reg_covar, max_iter=self.max_iter, tol=float(self.tol)
            )
        )
        return self

    def transform(self, X: Any) -> Floats:
        """Return the posteriors Π(x) under all mixtures side by side, exact, in float32."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        result = np.empty((len(X), self._n_features_out), dtype=np.float32)
        for rows in _chunks(X):
            exact = posteriors(self._reduce(X[rows]), self.mixtures_)
            result[rows] = exact.cpu().numpy()
        return result

    def features(self, X: Any) -> Floats:
        """Return Φ(x) = Π(x) / √Z, exact."""
        phi = self.transform(X)
        phi *= np.float32(1 / np.sqrt(self.n_mixtures_))
        return phi

    def feature_matrix(self, X: Any) -> sparse.csr_array:
        """Return Φ(X), sparse and within `tolerance`."""
        return self._gram_of(self._describer()(X)).feature_matrix()

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        """Return the Gram matrix of the rows, from posteriors that are held if they fit.

        If they take more than `cache_bytes`, those of the rows of a block are computed each time;
        see `Kernel.on`. Both are within `tolerance` of the exact kernel, and differ by round-off.
        """
        # Rows on a disk are float32 here, in whatever type they are stored.
        return super().on(RowArray(X) if is_row_array(X) else X, cache_bytes)

    def _describer(self) -> Callable[[Any], CompactPosteriors]:
        check_is_fitted(self)
        # Made once, for all rows that will be described.
        return partial(self._compact, Screening(self.mixtures_, self.tolerance / 4))

    def _gram_of(self, described: CompactPosteriors) -> _CompactGram:
        return _CompactGram(described, str(self), self)

    # --- the parts of fit --------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        X = vectors(RowArray(X) if is_row_array(X) else X)
        rows = validated_rows(self, X, reset=reset, dtype=[np.float32, np.float64])
        if not isinstance(rows, RowArray):
            check_magnitude(rows, "X")
        return rows

    def _check_params(self) -> None:
        check_integer("max_components", self.max_components, at_least=2)
        check_integer("n_initializations", self.n_initializations, at_least=1)
        check_number("reg_covar", self.reg_covar, 0)
        check_integer("max_fit_samples", self.max_fit_samples, at_least=2)
        check_integer("max_iter", self.max_iter, at_least=1)
        check_number("tol", self.tol, 0, open_low=True)
        check_number("tolerance", self.tolerance, 0, 1, open_low=True)
        choose_device(self.device)

    def _most_components(self, n_rows: int) -> int:
        """Return the number of components of the largest mixture that `n_rows` rows allow."""
        if n_rows < self.max_components:
            warn_caller(
                f"max_components={self.max_components}, but the mixtures are fitted on {n_rows} "
                f"rows: those with more than {n_rows} components are left out",
            )
        return min(self.max_components, n_rows)

    def _keep_converged(self, result: FitResult) -> None:
        kept = result.converged
        n_all, n_kept = len(kept), int(kept.sum())
        if n_kept == 0:
            raise ValueError(
                f"none of the {n_all} mixtures converged: raise max_iter={self.max_iter} or "
                f"reg_covar={self.reg_covar:g}"
            )
        if n_all - n_kept > MAX_LOST_SHARE * n_all:
            warn_caller(
                f"{n_all - n_kept} of {n_all} mixtures collapsed or did not converge and are left "
                f"out: raise max_iter={self.max_iter} or reg_covar={self.reg_covar:g}",
            )
        components = torch.repeat_interleave(kept, result.mixtures.sizes)
        self.mixtures_ = result.mixtures.part(kept, components)
        self.n_mixtures_ = n_kept
        self.n_iter_ = int(result.n_iter.max())

    # --- the mixtures on rows ----------------------------------------------------------------

    def _reduce(self, X: NDArray[Any]) -> Tensor:
        """Return the features that the mixtures are fitted to, centred, in float64."""
        reduced = X[:, self._basis] - self._offset[self._basis]
        return torch.from_numpy(reduced.astype(np.float64)).to(choose_device(self.device))

    def _compact(self, screening: Screening, X: Any) -> CompactPosteriors:
        """Return compact posteriors, computed by chunks of rows."""
        X = self._check_rows(X, reset=False)

        def compress(rows: slice) -> CompactPosteriors:
            return screening.compress(self._reduce(X[rows]))

        device = self.mixtures_.means.device
        return CompactPosteriors.joined(list(in_threads(compress, _chunks(X), device)))

    @property
    def _n_features_out(self) -> int:
        return len(self.mixtures_.weights)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class _CompactGram(FeatureGram):
    """The Gram matrix of compact posteriors."""

    def __init__(self, rows: CompactPosteriors, name: str, kernel: Kernel) -> None:
        RowsGram.__init__(self, rows, _product, name, kernel)

    def feature_matrix(self) -> sparse.csr_array:
        return self.rows.features()


def _product(a: CompactPosteriors, b: CompactPosteriors | None) -> Floats:
    return a.product(a if b is None else b)


def _chunks(X: Any) -> Iterator[slice]:
    for start in range(0, len(X), N_CHUNK_ROWS):
        yield slice(start, start + N_CHUNK_ROWS)
