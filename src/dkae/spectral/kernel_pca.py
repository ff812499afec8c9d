r"""Kernel PCA, centred or not, for any kernel, with its Nyström extension to new rows.

With the largest eigenvalues :math:`\Lambda_m` and eigenvectors :math:`E_m` of the Gram matrix of
the training rows, the scores of any rows are

.. math:: Z = K(X, X_\text{train}) \, E_m \Lambda_m^{-1/2} , \qquad K_m = Z Z^\top ,

and :math:`K_m` is the best approximation of rank m on the training rows. If the kernel has explicit
features, :math:`K = \Phi \Phi^\top`, this is :math:`Z = \Phi(X) V_m` with the eigenvectors
:math:`V_m` of :math:`\Phi^\top \Phi`: no training rows are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from dkae._support.arrays import check_out, finite_numbers, naming, real_numbers
from dkae._support.checks import check_boolean, check_choice, check_integer, draw_seed, shown
from dkae._support.states import StateMixin, check_array
from dkae._support.warning import unchanged_on_failure
from dkae.grams import Gram, MatrixGram
from dkae.kernels import FeatureKernel, Kernel, gram_of, kernel_of
from dkae.kernels.attaching import N_PROBES, HasKernel
from dkae.kernels.features import FeatureGram
from dkae.rows import as_rows, check_row_array, is_row_array, write_rows
from dkae.spectral.decomposition import SOLVERS, Components, Decomposition
from dkae.spectral.operators import DTYPES, times
from dkae.spectral.preimage import PreImage

#: Rows that are transformed together.
N_CHUNK_ROWS = 1024
#: A row of so many features may be made up, to try what was read from a file.
MAX_PROBE_FEATURES = 2**20


def _has_preimage(model: KernelPCA) -> bool:
    if model.preimage is None:
        raise AttributeError(
            "preimage=None learns no inverse: set preimage=PreImage() (from dkae.spectral) and "
            "call fit again"
        )
    return True


class KernelPCA(
    StateMixin,
    HasKernel,
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]  # scikit-learn is untyped
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Principal components in the space of a kernel.

    Unlike scikit-learn's it can leave the data uncentred, takes explicit features without forming
    an n × n matrix, and learns an inverse with a kernel of its own, also for a precomputed Gram.

    Parameters
    ----------
    n_components : int or None, default=None
        m, the number of components; None for all of positive eigenvalue. If there are fewer,
        those are kept, with a warning. One fit serves every smaller m: take the first columns of
        the scores.
    kernel, gamma, degree, coef0, kernel_params
        The kernel, as in :class:`~dkae.DeepKernelizedAutoencoder`.
    center : bool, default=True
        Whether the mean of the training rows is the origin of kernel space. Without centring, K_m
        approximates the Gram matrix itself.
    solver : {"auto", "dense", "lanczos"}, default="auto"
        "dense" decomposes the whole matrix of all rows (or features, if they are fewer);
        "lanczos" finds the largest pairs from products, without an n × n array. "auto" is "dense"
        up to 1024 rows, or if more than half of all components are wanted.
    preimage : PreImage or None, default=None
        Learns the inverse, from scores to rows; with None there is none.
    random_state : int, RandomState or None, default=None
        Seed of ensemble kernels and of the first vectors of "lanczos".

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        Eigenvalues of the (centred) Gram matrix, in descending order, without those that are
        negative or below 1e-12 of the largest before centring (2e-7 if the Gram is float32).
    n_components_ : int
        Number of them.
    coefficients_, offset_ : arrays of shape (n_samples or n_features of Φ, m) and (m,)
        The scores are K(X, X_train) or Φ(X), times the coefficients, less the offset.
    kernel_ : Kernel or None
        The fitted kernel; None after ``fit(X, gram=P)`` with a matrix.
    X_fit_ : array or None
        The training rows, unless the kernel has explicit features or ``gram`` was given.
    preimage_ : PreImage or None
        The fitted inverse.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "median",
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        center: bool = True,
        solver: str = "auto",
        preimage: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.center = center
        self.solver = solver
        self.preimage = preimage
        self.random_state = random_state

    # --- the estimator -----------------------------------------------------------------------

    def fit(self, X: Any, y: object = None, *, gram: Any = None) -> Self:
        """Find the components of the rows.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training rows. Those on a disk are read in float32; the model keeps a copy in memory
            unless the kernel has explicit features.
        y : array, optional
            Labels, for supervised kernels.
        gram : array of shape (n_samples, n_samples) or Gram, optional
            The Gram matrix of the same rows, in place of `kernel`. An array is not copied;
            ``kernel.on(X)`` of a fitted kernel brings the kernel for new rows.
        """
        self.fit_transform(X, y, gram=gram)
        return self

    def fit_transform(self, X: Any, y: object = None, *, gram: Any = None) -> NDArray[Any]:
        """Find the components, and return the scores of the training rows, in the type of `X`."""
        with unchanged_on_failure(self):
            return self._fit_transform(X, y, gram)

    def _fit_transform(self, X: Any, y: object, gram: Any) -> NDArray[Any]:
        self._check_params()
        X = self._check_rows(X, reset=True)
        prior = None if gram is None else gram_of(gram, X)
        kernel = kernel_of(self, X, y) if prior is None else prior.kernel
        needs_rows = kernel is not None and not isinstance(kernel, FeatureKernel)
        if needs_rows or self.preimage is not None:
            X = np.asarray(X)  # of rows on a disk, a copy: files of the model hold them
        if prior is None:
            components = self._decompose_kernel(kernel, X)
        else:
            components = self._decompose_gram(prior, X)
        scores = components.scores.astype(X.dtype, copy=False)
        self.preimage_ = None if self.preimage is None else clone(self.preimage).fit(scores, X)
        self.kernel_ = kernel
        self._stored_kernel_values = None  # of a file that this model may have come from
        self.eigenvalues_ = components.eigenvalues
        self.n_components_ = len(components.eigenvalues)
        self.coefficients_, self.offset_ = components.coefficients, components.offset
        self.X_fit_ = X if needs_rows else None
        return scores

    def transform(self, X: Any, *, gram: Any = None, out: Any = None) -> NDArray[Any]:
        """Return the scores of any rows, in the type of `X`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows, in memory or on a disk.
        gram : array of shape (n_samples, n_training_samples), optional
            κ between these rows and the training rows, after ``fit(X, gram=P)``.
        out : array of shape (n_samples, n_components_), optional
            Where the scores are written to, a chunk at a time, such as a memmap; it is returned.
        """
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        cross = None if gram is None else self._check_cross_gram(gram, len(X))
        out = check_out(out, (len(X), self.n_components_), X.dtype)
        scores: NDArray[Any] = write_rows(out, self._scores(X, cross, out.dtype))
        return scores

    @available_if(_has_preimage)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any, out: Any = None) -> NDArray[Any]:
        """Return the pre-images of scores, as `preimage` has learnt them.

        Parameters
        ----------
        X : array of shape (n_samples, n_components_)
            Scores, in memory or on a disk.
        out : array of shape (n_samples, n_features), optional
            Where the rows are written to, a chunk at a time, such as a memmap; it is returned.
        """
        check_is_fitted(self)
        if self.preimage_ is None:
            raise ValueError("preimage was set after fit: call fit again")
        # With set_output, scores may be a data frame.
        scores = as_rows(X) if is_row_array(X) else real_numbers(X, "X")
        if scores.shape[1:] != (self.n_components_,):
            raise ValueError(
                f"X has shape {scores.shape}: pass scores of shape (n_samples, "
                f"{self.n_components_}), as transform gives them"
            )
        starts = range(0, max(1, len(scores)), N_CHUNK_ROWS)
        parts = (self.preimage_.predict(scores[i : i + N_CHUNK_ROWS]) for i in starts)
        first = next(parts)  # it says of what type and how wide rows are
        out = check_out(out, (len(scores), *first.shape[1:]), first.dtype)
        rows: NDArray[Any] = write_rows(out, chain([first], parts))
        return rows

    def reconstruct_gram(
        self, X: Any, Y: Any = None, *, gram: Any = None, n_components: int | None = None
    ) -> NDArray[Any]:
        """Return K_m = Z_m Z_mᵀ between the rows of `X` and of `Y` (or of `X` itself).

        With ``center=True`` it approximates the centred Gram matrix. m is `n_components`, or all
        of them. After ``fit(X, gram=P)`` pass `gram` as to `transform`, and no `Y`.
        """
        if gram is not None and Y is not None:
            raise ValueError("gram belongs to the rows of X alone: leave out Y")
        m = n_components
        m = None if m is None else check_integer("n_components", m, at_least=1)
        scores = np.asarray(self.transform(X, gram=gram))[:, :m]
        other = scores if Y is None else np.asarray(self.transform(Y))[:, :m]
        return np.asarray(scores @ other.T)

    # --- the parts of fit --------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Return rows in memory in their own type, those on a disk in float32 as they are read."""
        with naming("X", X):
            if is_row_array(X):
                return check_row_array(self, X, reset=reset)
            n_least = 2 if reset and self.center else 1
            return validate_data(self, X, dtype=DTYPES, reset=reset, ensure_min_samples=n_least)

    def _check_params(self) -> None:
        if self.n_components is not None:
            check_integer("n_components", self.n_components, at_least=1)
        check_boolean("center", self.center)
        check_choice("solver", self.solver, SOLVERS)
        learns = hasattr(self.preimage, "fit") and hasattr(self.preimage, "predict")
        if self.preimage is not None and (isinstance(self.preimage, type) or not learns):
            raise ValueError(
                f"preimage={shown(self.preimage)} has no fit and predict: pass PreImage(), or None"
            )

    def _decomposition(self, name: str) -> Decomposition:
        seed = draw_seed(self.random_state)
        rng = np.random.default_rng(seed)
        return Decomposition(name, self.n_components, self.center, self.solver, rng)

    def _decompose_kernel(self, kernel: Kernel, X: NDArray[Any]) -> Components:
        decomposition = self._decomposition(str(kernel))
        if isinstance(kernel, FeatureKernel):
            return decomposition.of_features(_finite(kernel.feature_matrix(X), str(kernel)))
        if decomposition.is_dense(len(X)):
            return _of_matrix(decomposition, kernel.values(X))
        return decomposition.of_gram(kernel.on(X), np.float32)

    def _decompose_gram(self, gram: Gram, X: NDArray[Any]) -> Components:
        decomposition = self._decomposition(gram.name)
        if isinstance(gram.kernel, FeatureKernel):
            known = isinstance(gram, FeatureGram)
            phi = gram.feature_matrix() if known else gram.kernel.feature_matrix(X)  # type: ignore[attr-defined]
            return decomposition.of_features(_finite(phi, gram.name))
        if isinstance(gram, MatrixGram) and gram.is_whole:
            return _of_matrix(decomposition, gram.matrix)
        return decomposition.of_gram(gram, np.float32)

    def _probe_rows(self) -> Any:
        return None if self.X_fit_ is None else self.X_fit_[:N_PROBES]

    def _set_kernel(self, kernel: Kernel) -> None:
        if self.X_fit_ is None and not isinstance(kernel, FeatureKernel):
            raise ValueError(
                f"the model keeps no training rows, which {kernel} needs: pass gram= to transform"
            )
        self.kernel_ = kernel

    def _check_state(self) -> None:
        self._check_params()
        if not hasattr(self, "coefficients_"):
            return
        m = self.n_components_
        n, _ = check_array("coefficients_", self.coefficients_, (None, m)).shape
        check_array("offset_", self.offset_, (m,))
        check_array("eigenvalues_", self.eigenvalues_, (m,))
        if self.X_fit_ is not None:
            check_array("X_fit_", self.X_fit_, (n, self.n_features_in_))
        for name, value, kind in (
            ("kernel_", self.kernel_, Kernel),
            ("preimage_", self.preimage_, PreImage),
        ):
            if value is not None and not isinstance(value, kind):
                raise ValueError(f"{name} is a {type(value).__name__}")
        self._check_parts_fit()

    def _check_parts_fit(self) -> None:
        """Refuse a kernel or an inverse of another width than the components of a file."""
        d, kernel, inverse = self.n_features_in_, self.kernel_, self.preimage_
        is_of_features = isinstance(kernel, FeatureKernel)
        if kernel is not None and is_of_features != (self.X_fit_ is None):
            raise ValueError("training rows are missing, or too many")
        of_kernel = (kernel, *(getattr(kernel, n, None) for n in ("transformer", "forest_")))
        if type(d) is not int or any(getattr(k, "n_features_in_", d) != d for k in of_kernel):
            raise ValueError("a number of features is none, or not that of the kernel")
        if is_of_features and d <= MAX_PROBE_FEATURES:
            self._score(self._against_training(np.zeros((1, d))), np.float64)
        if inverse is not None and (
            inverse.n_features_in_ != self.n_components_ or inverse.mean_.shape != (d,)
        ):
            raise ValueError("the inverse is that of other components, or gives other rows")

    # --- new rows ----------------------------------------------------------------------------

    def _scores(self, X: Any, cross: NDArray[Any] | None, dtype: Any) -> Iterator[NDArray[Any]]:
        """Yield the scores of chunks of rows, from κ with the training rows if it is given."""
        for i in range(0, len(X), N_CHUNK_ROWS):
            chunk = slice(i, i + N_CHUNK_ROWS)
            given = None if cross is None else _finite(cross[chunk], "gram")
            yield self._score(self._against_training(X[chunk]) if given is None else given, dtype)

    def _against_training(self, X: NDArray[Any]) -> Any:
        if isinstance(self.kernel_, FeatureKernel):
            return _finite(self.kernel_.feature_matrix(X), str(self.kernel_))
        if self.kernel_ is None:
            raise ValueError(
                "the components come from a Gram matrix: pass gram=, κ between these rows and the "
                f"{len(self.coefficients_)} training rows, or fit with kernel=Precomputed(gram, "
                "rows=X). If the model was loaded without its kernel, call attach_kernel(kernel)"
            )
        return self.kernel_.values(X, self.X_fit_)

    def _check_cross_gram(self, gram: Any, n_rows: int) -> Any:
        if isinstance(self.kernel_, FeatureKernel):
            raise ValueError(
                f"the components come from the features of {self.kernel_}, not from a Gram "
                "matrix: call transform without gram="
            )
        gram = real_numbers(gram, "gram")
        expected = (n_rows, len(self.coefficients_))
        if gram.shape != expected:
            raise ValueError(
                f"gram has shape {gram.shape}, expected {expected}: κ between the rows of X and "
                "the training rows"
            )
        return gram

    def _score(self, against_training: Any, dtype: Any) -> NDArray[Any]:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = times(against_training, self.coefficients_) - self.offset_
            scores = np.asarray(scores, dtype=dtype)
        remedy = "the kernel of these rows is too large for the scores' type; pass X in float64"
        return np.asarray(finite_numbers(scores, "the scores of X", remedy))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coefficients_")

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _of_matrix(decomposition: Decomposition, matrix: NDArray[Any]) -> Components:
    """Decompose a matrix in its own precision."""
    single = matrix.dtype in (np.float16, np.float32)
    return decomposition.of_gram(matrix, np.float32 if single else np.float64)


def _finite(values: Any, name: str) -> Any:
    """Reject a Gram matrix or features with entries that are not finite."""
    return finite_numbers(values, name, "check the kernel and its parameters")
