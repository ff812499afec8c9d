r"""The Probabilistic Cluster Kernel: how often two rows share a component of many mixtures.

Gaussian mixtures with :math:`g = 2, \dots, G` components are fitted from :math:`q = 1, \dots, Q`
random starts each. With the posterior :math:`\pi_i(q, g)` of row i under mixture (q, g), Eq. 4 is

.. math:: \kappa(x_i, x_j) = \frac1Z \sum_{q=1}^{Q} \sum_{g=2}^{G} \pi_i(q, g)^\top \pi_j(q, g) .
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from dkae._support.arrays import check_magnitude, naming
from dkae._support.checks import check_choice, check_integer, check_number, draw_seed
from dkae._support.devices import choose_device
from dkae._support.processes import present
from dkae._support.threads import in_threads
from dkae._support.warning import warn_caller
from dkae.grams import FeatureGram, Floats, Gram, RowsGram
from dkae.kernels.base import Kernel, vectors
from dkae.kernels.cluster.compact import CompactPosteriors, compress
from dkae.kernels.cluster.em import FitResult, fit_mixtures
from dkae.kernels.cluster.initialization import INITS, initial_mixtures, unit_of
from dkae.kernels.cluster.mixtures import COVARIANCES, posteriors
from dkae.kernels.cluster.screening import Screening
from dkae.kernels.features import FeatureKernel
from dkae.rows import check_row_array, is_row_array, row_array

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

    Parameters
    ----------
    max_components : int, default=30
        G: mixtures have 2 to G components.
    n_initializations : int, default=30
        Q: random starts for each number of components.
    covariance_type : {"diag", "spherical", "full"}, default="diag"
        Shape of the components. "full" takes minutes and, on 200 rows of many features, 4.4 GB at
        Q = G = 30.
    reg_covar : float, default=1e-6
        Added to the variances, in units of the rows: it is multiplied by u², with u the power of
        ten for which the standard deviation of the fit rows, over u, lies between 0.14 and 1.4.
        For pixels in [0, 1], as in the paper, and for standardised rows, u is 1. So rows times a
        power of ten have the same kernel.
    max_fit_samples : int, default=200
        The mixtures are fitted on a random subset of at most this many rows, as in the paper.
    init : {"random", "k-means++"}, default="random"
        How the first means are chosen among the rows. Weights start equal, and covariances as the
        mean variance in all directions.
    max_iter, tol : int and float, default=100 and 1e-3
        Expectation maximisation ends when the mean log-likelihood changes by less than `tol`; a
        mixture that has not converged after `max_iter` steps is left out.
    normalize : {"mixtures", "max", "cosine"}, default="mixtures"
        Z is the number of fitted mixtures, the largest κ(x, x) of the rows that they were fitted
        on, or such that κ(x, x) = 1 for every x.
    tolerance : float, default=1e-3
        Posteriors are kept in a compact form of about one byte for each row and mixture, which
        changes κ (with Z the number of mixtures) by at most this. With 0 they are dense float32.
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
    largest_ : float
        Largest squared norm of the posteriors of the fit rows, with ``normalize="max"``.
    """

    def __init__(
        self,
        max_components: int = 30,
        n_initializations: int = 30,
        *,
        covariance_type: str = "diag",
        reg_covar: float = 1e-6,
        max_fit_samples: int = 200,
        init: str = "random",
        max_iter: int = 100,
        tol: float = 1e-3,
        normalize: str = "mixtures",
        tolerance: float = 1e-3,
        random_state: Any = None,
        device: str = "cpu",
    ) -> None:
        self.max_components = max_components
        self.n_initializations = n_initializations
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.max_fit_samples = max_fit_samples
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.normalize = normalize
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
        self._offset, self._basis = _reduction(sample, self.covariance_type)
        rows = self._reduce(sample)
        reg_covar = float(self.reg_covar) * unit_of(rows) ** 2
        sizes, start = initial_mixtures(
            rows,
            self._most_components(n_fit),
            self.n_initializations,
            init=self.init,
            reg_covar=reg_covar,
            seed=seed,
        )
        result = fit_mixtures(
            rows,
            sizes,
            start,
            self.covariance_type,
            reg_covar=reg_covar,
            max_iter=self.max_iter,
            tol=float(self.tol),
        )
        self._keep_converged(result)
        if self.normalize == "max":
            self.largest_ = float(posteriors(rows, self.mixtures_).square().sum(dim=1).max())
        return self

    def transform(self, X: Any) -> Floats:
        """Return the posteriors Π(x) under all mixtures side by side, exact, in float32."""
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        result = np.empty((len(X), self._n_features_out), dtype=np.float32)
        for i, part in enumerate(self._posteriors(X)):
            result[i * N_CHUNK_ROWS : (i + 1) * N_CHUNK_ROWS] = part.cpu().numpy()
        return result

    def features(self, X: Any) -> Floats:
        """Return Φ(x) = Π(x) / √Z, exact."""
        phi = self.transform(X)
        phi *= self._scales(np.einsum("ij,ij->i", phi, phi))[:, None]
        return phi

    def feature_matrix(self, X: Any) -> Any:
        """Return Φ(X): exact if `tolerance` is 0, else sparse and within it."""
        gram: Any = self._gram_of(self._describer()(X))
        return gram.feature_matrix()

    # From the compact posteriors, so that it agrees with the Gram matrix to the last digit.
    diag = Kernel.diag

    def on(self, X: Any, cache_bytes: float | None = None) -> Gram:
        """Return the Gram matrix of the rows, from posteriors that are held if they fit.

        If they take more than `cache_bytes`, those of the rows of a block are computed each time;
        see `Kernel.on`. Both are within `tolerance` of the exact kernel, and differ by round-off.
        """
        # Rows on a disk are float32 here, in whatever type they are stored.
        return super().on(row_array(X) if is_row_array(X) else X, cache_bytes)

    def _describer(self) -> Callable[[Any], Any]:
        check_is_fitted(self)
        if self.tolerance == 0:
            return self.features
        epsilon = self.tolerance / 4
        is_full = self.covariance_type == "full"
        # Made once, for all rows that will be described.
        screening = None if is_full else Screening(self.mixtures_, epsilon)
        return partial(self._compact, screening=screening, epsilon=epsilon)

    def _gram_of(self, described: Any) -> RowsGram:
        if self.tolerance == 0:
            return super()._gram_of(described)
        return _CompactGram(described, str(self), self)

    # --- the parts of fit --------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        with naming("X", X):
            if is_row_array(X):
                return check_row_array(self, vectors(row_array(X)), reset=reset)
            rows = validate_data(
                self,
                vectors(X),
                dtype=[np.float32, np.float64],
                reset=reset,
                ensure_min_samples=2 if reset else 1,
            )
        check_magnitude(rows, "X")
        return rows

    def _check_params(self) -> None:
        check_integer("max_components", self.max_components, at_least=2)
        check_integer("n_initializations", self.n_initializations, at_least=1)
        check_choice("covariance_type", self.covariance_type, COVARIANCES)
        check_number("reg_covar", self.reg_covar, 0)
        check_integer("max_fit_samples", self.max_fit_samples, at_least=2)
        check_choice("init", self.init, INITS)
        check_integer("max_iter", self.max_iter, at_least=1)
        check_number("tol", self.tol, 0, open_low=True)
        check_choice("normalize", self.normalize, ["mixtures", "max", "cosine"])
        check_number("tolerance", self.tolerance, 0, 1)
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
        n_all, n_kept = len(result.converged), int(result.converged.sum())
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
        self.mixtures_ = result.mixtures.select(result.converged)
        self.n_mixtures_ = n_kept
        self.n_iter_ = int(result.n_iter.max())

    # --- the mixtures on rows ----------------------------------------------------------------

    def _reduce(self, X: NDArray[Any]) -> Tensor:
        """Return the rows in the coordinates that the mixtures are fitted in, in float64."""
        if self._basis.ndim == 1:
            reduced = X[:, self._basis] - self._offset[self._basis]
        else:
            reduced = (X - self._offset) @ self._basis
        return torch.from_numpy(reduced.astype(np.float64)).to(choose_device(self.device))

    def _posteriors(self, X: NDArray[Any]) -> Iterator[Tensor]:
        for i in range(0, len(X), N_CHUNK_ROWS):
            yield posteriors(self._reduce(X[i : i + N_CHUNK_ROWS]), self.mixtures_)

    def _compact(self, X: Any, screening: Screening | None, epsilon: float) -> CompactPosteriors:
        """Return compact posteriors, computed by chunks of rows."""
        X = self._check_rows(X, reset=False)
        if screening is None:
            sizes = self.mixtures_.sizes.tolist()
            parts = [compress(exact, sizes, epsilon) for exact in self._posteriors(X)]
        else:
            starts = range(0, len(X), N_CHUNK_ROWS)
            screen = partial(self._screen, X, screening)
            parts = list(in_threads(screen, starts, self.mixtures_.means.device))
        compact = CompactPosteriors.joined(parts)
        return replace(compact, scales=self._scales(compact.squared_norms()))

    def _screen(self, X: Any, screening: Screening, start: int) -> CompactPosteriors:
        return screening.compress(self._reduce(X[start : start + N_CHUNK_ROWS]))

    def _scales(self, squared_norms: NDArray[Any]) -> Floats:
        """Return the factor of each row: 1 / √Z, or 1 / ‖Π(x)‖ for the cosine."""
        if self.normalize == "cosine":
            z = squared_norms
        else:
            if self.normalize == "max" and not hasattr(self, "largest_"):
                raise ValueError("normalize='max' was set after fit: call fit again")
            one = self.largest_ if self.normalize == "max" else float(self.n_mixtures_)
            z = np.full(len(squared_norms), one)
        scales: Floats = (1 / np.sqrt(z)).astype(np.float32)
        return scales

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
        return self.rows.to_csr()


def _product(a: CompactPosteriors, b: CompactPosteriors | None) -> Floats:
    return a.product(a if b is None else b)


def _reduction(
    sample: NDArray[Any], covariance_type: str
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the mean, and the columns or the basis that the posteriors depend on.

    Diagonal: in a constant feature every component has the same mean and the variance `reg_covar`,
    so the feature cancels in the posterior. Full: outside the span of the centred rows every
    component has the covariance reg_covar · I, so the rest of space cancels. Spherical: the one
    variance of a component depends on all features; none can be dropped.
    """
    offset = sample.mean(axis=0, dtype=np.float64)
    if covariance_type == "diag":
        return offset, np.flatnonzero(np.ptp(sample, axis=0) > 0)
    if covariance_type == "spherical":
        return offset, np.arange(sample.shape[1])
    _, values, directions = np.linalg.svd(sample - offset, full_matrices=False)
    rank = int((values > values[0] * max(sample.shape) * np.finfo(np.float64).eps).sum())
    return offset, directions[:rank].T
