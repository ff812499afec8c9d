r"""Kernel PCA, centred or not, for any kernel, with its Nyström extension to new rows.

With the largest eigenvalues :math:`\Lambda_m` and eigenvectors :math:`E_m` of the Gram matrix of
the training rows, the codes of any rows, its scores, are

.. math:: Z = K(X, X_\text{train}) \, E_m \Lambda_m^{-1/2} , \qquad K_m = Z Z^\top ,

and :math:`K_m` is the best approximation of rank m on the training rows. If the kernel has explicit
features, :math:`K = \Phi \Phi^\top`, this is :math:`Z = \Phi(X) V_m` with the eigenvectors
:math:`V_m` of :math:`\Phi^\top \Phi`: no training rows are needed.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from dkae._support.arrays import check_out, finite_numbers, real_numbers
from dkae._support.checks import check_boolean, check_choice, check_integer, unchanged_on_failure
from dkae._support.processes import ALONE
from dkae.decoders import make_decoder
from dkae.fit_input import FitInput, TrainingData
from dkae.grams import Gram, MatrixGram
from dkae.kernel_map import LOGGER, KernelMap
from dkae.kernels import Kernel, gram_of
from dkae.metrics.quality import Quality
from dkae.preprocessing import mentioning_masks
from dkae.rows import map_rows
from dkae.spectral.decomposition import SOLVERS, Components, Decomposition
from dkae.spectral.operators import times
from dkae.training.callbacks import History

#: Rows of the data that identify a kernel.
N_PROBES = 8


def _has_decoder(model: KernelPCA) -> bool:
    if model.decoder is None:
        raise AttributeError(
            "decoder=None learns no inverse: set decoder='kernel_ridge' and call fit again"
        )
    return True


class KernelPCA(KernelMap):
    """The exact map of a kernel, from all training rows, and a way back.

    Unlike scikit-learn's it can leave the data uncentred, takes explicit features without forming
    an n × n matrix, and learns an inverse with a kernel of its own, also for a precomputed Gram.

    Parameters
    ----------
    n_components : int or None, default=None
        m, the number of components; None, as in scikit-learn, for all of positive eigenvalue. If
        there are fewer, those are kept, with a warning. One fit serves every smaller m: take the
        first columns of the scores.
    kernel, gamma
        The kernel, as in :class:`~dkae.DeepKernelizedAutoencoder`.
    center : bool, default=True
        Whether the mean of the training rows is the origin of kernel space. Without centring, K_m
        approximates the Gram matrix itself.
    solver : {"auto", "dense", "lanczos"}, default="auto"
        "dense" decomposes the whole matrix of all rows (or features, if they are fewer);
        "lanczos" finds the largest pairs from products, without an n × n array. "auto" is "dense"
        up to 1024 rows, or if more than half of all components are wanted.
    decoder : {"ridge", "kernel_ridge", "mlp", "auto"}, regressor or None, default="kernel_ridge"
        Learns the way back, from scores to rows, as in `InvertibleNystroem`; with None there is
        none.
    standardize, missing, cache_bytes
        As in :class:`~dkae.DeepKernelizedAutoencoder`.
    random_state : int, RandomState or None, default=None
        Seed of ensemble kernels, of the first vectors of "lanczos" and of the decoder.

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        Eigenvalues of the (centred) Gram matrix, in descending order, without those that are
        negative or below 1e-12 of the largest before centring (2e-7 if the Gram is float32).
    coefficients_, offset_ : arrays of shape (n_samples or n_features of Φ, m) and (m,)
        The scores are K(X, X_train) or Φ(X), times the coefficients, less the offset.
    rows_ : array or None
        The training rows as the kernel sees them, unless it has explicit features or ``gram`` was
        given.
    decoder_ : regressor or None
        The fitted decoder.
    kernel_, kernel_scale_, alignment_, centered_alignment_, r2_, n_components_
        As in :class:`~dkae.DeepKernelizedAutoencoder`; `kernel_scale_` is 1.

    See Also
    --------
    InvertibleNystroem : The same map from landmark rows, for any number of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from dkae import KernelPCA
    >>> X = load_digits().data / 16
    >>> model = KernelPCA(32).fit(X)
    >>> model.transform(X).shape, model.inverse_transform(model.transform(X)).shape
    ((1797, 32), (1797, 64))
    """

    _dtypes = (np.float64, np.float32)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: str | float | None = "median",
        center: bool = True,
        solver: str = "auto",
        decoder: Any = "kernel_ridge",
        standardize: bool = False,
        missing: str = "error",
        cache_bytes: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.center = center
        self.solver = solver
        self.decoder = decoder
        self.standardize = standardize
        self.missing = missing
        self.cache_bytes = cache_bytes
        self.random_state = random_state

    # --- fitting -----------------------------------------------------------------------------

    def fit(self, X: Any, y: object = None, *, gram: Any = None) -> Self:
        """Find the components of the rows, and learn the way back.

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
        with unchanged_on_failure(self), mentioning_masks():
            scores, quality = self._fit_transform(FitInput(X, y, gram))
        self._finish(History(), quality)
        return scores

    def _fit_transform(self, fit_input: FitInput) -> tuple[NDArray[Any], Quality]:
        self._check_params()
        rows, seed = self._check_input(fit_input, ALONE, is_warm=False)
        data = self._prepare(fit_input, rows, seed)
        kernel = self.kernel_
        self.rows_: NDArray[Any] | None = None
        if kernel is not None and not kernel.has_features:
            self.rows_ = np.asarray(self._kernel_rows(data.rows, kernel))
        components = self._decompose(data, fit_input.gram is not None)
        scores = components.scores.astype(rows.dtype, copy=False)
        self._stored_kernel_values = None  # of a file that this model may have come from
        self.eigenvalues_ = components.eigenvalues
        self.coefficients_, self.offset_ = components.coefficients, components.offset
        self.n_components_ = len(components.eigenvalues)
        self.decoder_: Any = None
        if self.decoder is not None:
            targets = np.asarray(self._filled(data.rows))
            self.decoder_ = make_decoder(self.decoder, len(rows), seed).fit(scores, targets)
        LOGGER.info("%s: %s", type(self).__name__, self._resolved)
        return scores, self._note_fit(data, scores)

    def _note_fit(self, data: TrainingData, scores: NDArray[Any]) -> Quality:
        sample, block = self._sample(data)
        codes = scores[self._sample_ids(data)]
        decoded = sample if self.decoder_ is None else map_rows(self._decode, codes)
        quality = self._note_quality(codes, block, self._without_gaps(sample), decoded)
        self.r2_: Any = self.r2_ if self.decoder_ is not None else None
        self.kernel_scale_ = 1.0  # inner products of scores are values of the kernel
        return quality

    def _check_params(self) -> None:
        if self.n_components is not None:
            check_integer("n_components", self.n_components, at_least=1)
        check_boolean("center", self.center)
        check_choice("solver", self.solver, SOLVERS)
        if self.decoder is not None:
            make_decoder(self.decoder, 0)

    def _check_prior(self, data: TrainingData) -> None:
        """Leave it to the decomposition, which checks the matrix that it has centred."""

    def _decompose(self, data: TrainingData, is_given: bool) -> Components:
        gram, kernel = data.prior, self.kernel_
        rng = np.random.default_rng(data.seed)
        decomposition = Decomposition(gram.name, self.n_components, self.center, self.solver, rng)
        if kernel is not None and kernel.has_features:
            rows = self._kernel_rows(data.rows, kernel)
            return decomposition.of_features(_finite(_features_of(gram, kernel, rows), gram.name))
        if isinstance(gram, MatrixGram) and gram.is_whole:
            return _of_matrix(decomposition, gram.matrix)
        if kernel is not None and not is_given and decomposition.is_dense(len(gram)):
            return _of_matrix(decomposition, kernel.values(self.rows_))
        return decomposition.of_gram(gram, np.float32)

    # --- the map -----------------------------------------------------------------------------

    def transform(self, X: Any, *, gram: Any = None, out: Any = None) -> Any:
        """Return the scores of any rows, in the type of `X`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Rows, in memory or on a disk.
        gram : array of shape (n_samples, n_training_samples), optional
            κ between these rows and the training rows, after ``fit(X, gram=P)``.
        out : array of shape (n_samples, n_components_), optional
            Receives the scores, a chunk at a time, such as a memmap; it is returned.
        """
        check_is_fitted(self)
        with mentioning_masks():
            rows = self._check_rows(X)
        out = check_out(out, (len(rows), self.n_components_), rows.dtype)
        if gram is None:
            return map_rows(lambda c: self._encode(self._seen(c)), rows, out, dtype=rows.dtype)
        cross = self._check_cross_gram(gram, len(rows))
        return map_rows(lambda c: self._score(_finite(c, "gram")), cross, out, dtype=rows.dtype)

    def score(self, X: Any, y: object = None, *, gram: Any = None, cross: Any = None) -> float:
        """Return the centred alignment (CKA) of the scores with the kernel on X.

        See `DeepKernelizedAutoencoder.score`.

        Parameters
        ----------
        X, y, gram
            Rows, ignored, and the Gram matrix of these rows.
        cross : array of shape (n_samples, n_training_samples), optional
            κ between these rows and the training rows, after ``fit(X, gram=P)``.
        """
        check_is_fitted(self)
        if cross is None:
            return super().score(X, y, gram=gram)
        prior = self.prior_gram(X) if gram is None else gram_of(gram, self._check_rows(X))
        return self._agreement(np.asarray(self.transform(X, gram=cross)), prior)

    @available_if(_has_decoder)  # type: ignore[untyped-decorator]
    def inverse_transform(self, X: Any, *, out: Any = None) -> Any:
        """Return the pre-images of scores, as the decoder has learned them.

        Parameters
        ----------
        X : array of shape (n_samples, n_components_)
            Scores, in memory or on a disk.
        out : array of shape (n_samples, n_features), optional
            Receives the rows, a chunk at a time, such as a memmap; it is returned.
        """
        check_is_fitted(self)
        if self.decoder_ is None:
            raise ValueError("decoder was set after fit: call fit again")
        return super().inverse_transform(X, out=out)

    def _encode(self, rows: Any) -> Any:
        kernel = self._evaluable_kernel()
        seen = rows if kernel.takes_missing else self._without_gaps(rows)
        if self.rows_ is None:
            return self._score(_finite(kernel.feature_matrix(seen), str(kernel)))
        return self._score(kernel.values(seen, self.rows_))

    def _decode(self, codes: Any) -> Any:
        rows = np.asarray(self.decoder_.predict(codes))
        return rows.reshape(len(codes), *self.row_shape_)

    def _score(self, against_training: Any) -> NDArray[Any]:
        scores = times(against_training, self.coefficients_) - self.offset_
        return np.asarray(scores)

    def _check_cross_gram(self, gram: Any, n_rows: int) -> Any:
        if self.kernel_ is not None and self.kernel_.has_features:
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

    def _evaluable_kernel(self) -> Kernel:
        if self.kernel_ is None:
            raise ValueError(
                "the components come from a Gram matrix: pass gram= to transform, or cross= to "
                "score, κ between these rows and the "
                f"{len(self.coefficients_)} training rows, or fit with kernel=Precomputed(gram, "
                "rows=X). If the model was loaded without its kernel, call attach_kernel(kernel)"
            )
        if self.rows_ is None and not self.kernel_.has_features:
            raise ValueError(
                f"the model keeps no training rows, which {self.kernel_} needs: pass gram= to "
                "transform"
            )
        return self.kernel_

    def _probe_rows(self) -> Any:
        return None if self.rows_ is None else self.rows_[:N_PROBES]

    @property
    def _resolved(self) -> str:
        back = "no decoder" if self.decoder_ is None else type(self.decoder_).__name__
        return f"{self.n_components_} components, {self.kernel_ or 'a Gram matrix'}, {back}"


def _features_of(gram: Gram, kernel: Any, rows: Any) -> Any:
    """Return Φ of the training rows, from the Gram if that holds it."""
    known = getattr(gram, "feature_matrix", None)
    return known() if known is not None else kernel.feature_matrix(rows)


def _of_matrix(decomposition: Decomposition, matrix: NDArray[Any]) -> Components:
    """Decompose a matrix in its own precision."""
    single = matrix.dtype in (np.float16, np.float32)
    return decomposition.of_gram(matrix, np.float32 if single else np.float64)


def _finite(values: Any, name: str) -> Any:
    """Return a Gram matrix or features if all entries are finite."""
    return finite_numbers(values, name, "check the kernel and its parameters")
