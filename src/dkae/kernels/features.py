r"""Kernels with explicit features, :math:`\kappa(x, y) = \langle \Phi(x), \Phi(y) \rangle`.

Φ is computed once for all rows; blocks and the diagonal come from it, without an n × n array.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from dkae._runtime.arrays import naming, real_numbers
from dkae._runtime.units import exponent_of, in_unit, largest_entry
from dkae.grams import Floats, Gram, RowsGram, finite_float32
from dkae.kernels.base import Kernel


class FeatureKernel(Kernel):
    """A kernel that is the inner product of explicit features."""

    takes_missing = False

    @abstractmethod
    def features(self, X: Any) -> Any:
        """Return Φ(X): an array or a sparse matrix with one row for each row of X."""

    def evaluate(self, X: Any, Y: Any) -> Any:
        return _product(self.features(X), None if Y is None else self.features(Y))

    def diag(self, X: Any) -> Floats:
        return finite_float32(row_norms(self.features(X), squared=True), str(self))

    def on(self, X: Any) -> Gram:
        return FeatureGram(self.features(X), str(self), self)

    def feature_matrix(self, X: Any) -> Any:
        """Return Φ(X) in the form that takes least memory: dense, or sparse in CSR format."""
        phi = self.features(X)
        return sparse.csr_array(phi) if sparse.issparse(phi) else np.asarray(phi)


class FeatureGram(RowsGram):
    """The Gram matrix ΦΦᵀ of rows whose features Φ are kept, dense or sparse."""

    def __init__(self, features: Any, name: str, kernel: Any = None) -> None:
        # Not every table or sparse format can be indexed by row numbers.
        is_sparse = sparse.issparse(features)
        phi = features.tocsr() if is_sparse else real_numbers(features, f"Φ of {name}")
        if phi.ndim != 2 or not phi.shape[0]:
            raise ValueError(
                f"Φ of {name} has shape {phi.shape}: features are a matrix with a row for each of "
                "at least one row of X"
            )
        super().__init__(phi, _product, name, kernel)

    def feature_matrix(self) -> Any:
        """Return Φ, dense or sparse in CSR format."""
        return self.rows

    def in_unit(self) -> tuple[Gram, int]:
        if not isinstance(self.rows, np.ndarray) or not self.rows.size:
            return self, 0
        exponent = exponent_of(largest_entry(self.rows), np.float32)
        if exponent == 0:
            return self, 0
        return FeatureGram(in_unit(self.rows, exponent), self.name, self.kernel), 2 * exponent


class TransformerKernel(FeatureKernel):
    """Any fitted scikit-learn transformer T as a kernel: κ(x, y) = ⟨T(x), T(y)⟩.

    Parameters
    ----------
    transformer : fitted transformer
        Nystroem, RBFSampler, PCA, a vectoriser, a pipeline, ... It is neither fitted nor copied,
        not even by ``sklearn.base.clone``.
    """

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    def __str__(self) -> str:
        return f"kernel of {type(self.transformer).__name__}"

    def __sklearn_clone__(self) -> TransformerKernel:
        return TransformerKernel(self.transformer)

    def fit(self, X: Any, y: object = None) -> TransformerKernel:
        check_fitted(self.transformer, "transformer", "transform")
        return self

    def features(self, X: Any) -> Any:
        check_fitted(self.transformer, "transformer", "transform")
        with naming("X", X):
            return self.transformer.transform(X)


def _product(a: Any, b: Any) -> NDArray[Any]:
    b = a if b is None else b
    return np.asarray(safe_sparse_dot(_as_array(a), _as_array(b).T, dense_output=True))


def _as_array(features: Any) -> Any:
    # A transformer may be set to return data frames.
    return features if sparse.issparse(features) else np.asarray(features)


def check_fitted(estimator: Any, name: str, method: str) -> None:
    """Reject an estimator that is not fitted or lacks the method."""
    if not hasattr(estimator, method):
        raise ValueError(f"{name}={estimator!r} has no method {method}: pass one with it")
    try:
        check_is_fitted(estimator)
    except Exception as error:
        raise ValueError(
            f"{name}={estimator!r} is not fitted: fit it on rows like those of X first"
        ) from error
