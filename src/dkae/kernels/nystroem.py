r"""Nyström features: codes from kernel values with landmark rows.

With :math:`K = \kappa(L, L)` of the landmarks and :math:`S = \kappa(X, L)` of rows,

.. math:: \Phi = S R, \quad R R^\top = K^{-1}, \qquad \text{codes} = \Phi V = S W, \quad W = R V,

where V holds the leading eigenvectors of :math:`\Phi^\top \Phi` over the rows of `fit`: no other
directions of the features have larger inner products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dkae._support.arrays import eigh, product
from dkae.grams import Floats
from dkae.kernels.base import Kernel

Doubles = NDArray[np.float64]

#: Eigenvalues of K below this part of the largest, float32's round-off, are left out. Measured with
#: 1,000 landmarks and kernel values in float32, the error of the kernel on new rows of digits and
#: MNIST (RBF, polynomial, Laplacian, PCK) is the same to 1e-6 from 1e-7 down to 1e-9. At 1e-6 a
#: very smooth RBF kernel loses 4e-6; at 1e-10 round-off adds 6e-6 to its codes in float32.
RANK_TOLERANCE = 1e-7
#: Rows whose kernel values are held together.
N_CHUNK_ROWS = 2048


def root_of(gram: NDArray[Any]) -> Doubles:
    """Return R with R Rᵀ = K⁻¹, without directions that are round-off."""
    gram = gram.astype(np.float64)
    eigenvalues, vectors = eigh((gram + gram.T) / 2)
    kept = eigenvalues > RANK_TOLERANCE * max(eigenvalues[-1], np.finfo(np.float64).tiny)
    root: Doubles = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    return root


class NystroemFeatures:
    """The map from rows to Nyström codes, for any kernel that can be evaluated at new rows.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    landmarks : array of shape (m, n_features)
        Rows whose kernel values with other rows are the features.
    n_components : int, optional
        Codes have at most this width. All directions are kept if it is not given, and `fit`
        only turns them.
    center : bool, default=False
        Whether the codes of the rows of `fit` have mean 0: they are principal components then.

    Attributes
    ----------
    values : callable
        κ(·, landmarks), from rows to an array (n, m) in float32.
    projection : array of shape (m, width)
        W, or R before `fit`.
    offset : array of shape (width,)
        The mean of S W over the rows of `fit`, or 0.
    """

    def __init__(
        self,
        kernel: Kernel,
        landmarks: Any,
        n_components: int | None = None,
        *,
        center: bool = False,
    ) -> None:
        self.values = kernel.towards(landmarks)
        self.n_components = n_components
        self.center = center
        self.projection: NDArray[Any] = root_of(self.values(landmarks))
        self.offset: Doubles = np.zeros(self.projection.shape[1])

    def kernel_values(self, rows: Any) -> Floats:
        """Return κ(X, L) of all rows, for `fit` and a call that follows it."""
        values = np.empty((len(rows), len(self.projection)), dtype=np.float32)
        for part in _chunks(rows):
            values[part] = self.values(rows[part])
        return values

    def fit(self, rows: Any, values: Floats | None = None) -> Self:
        """Turn the codes to the leading directions of the features of these rows.

        `values` are their kernel values, if they are known.
        """
        n = self.projection.shape[1]
        moment, total = np.zeros((n, n)), np.zeros(n)
        for phi in self._features(rows, values):
            moment += product(phi.T, phi)
            total += phi.sum(axis=0)
        mean = total / len(rows) if self.center else np.zeros_like(total)
        _, directions = eigh(moment - len(rows) * np.outer(mean, mean))
        leading = directions[:, ::-1][:, : self.n_components].copy()  # of positive strides
        self.projection, self.offset = product(self.projection, leading), mean @ leading
        return self

    def __call__(self, X: Any, values: Floats | None = None) -> NDArray[Any]:
        """Return the codes of rows, in the precision of `projection`."""
        offset = self.offset.astype(self.projection.dtype)
        return np.concatenate([phi - offset for phi in self._features(X, values)])

    def _features(self, rows: Any, values: Floats | None) -> Iterator[NDArray[Any]]:
        """Yield products of kernel values and `projection`, of a few rows at a time."""
        for part in _chunks(rows):
            found = self.values(rows[part]) if values is None else values[part]
            yield product(found.astype(self.projection.dtype, copy=False), self.projection)


def _chunks(rows: Any) -> Iterator[slice]:
    return (slice(i, i + N_CHUNK_ROWS) for i in range(0, len(rows), N_CHUNK_ROWS))
