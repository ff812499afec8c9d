r"""Kernel ridge regression from codes to rows, on landmark codes: closed form, O(n m²).

Linear ridge regression comes first, on standardised codes, because a kernel of distances does not
see faint coordinates. With a kernel l on codes, m landmarks among them (all codes, if there are
few) and Z the residuals of the standardised rows,

.. math:: \hat z(c) = \text{ridge}(c) + l(c, L)\, A, \qquad
    A = \bigl(l(L, C)\, l(C, L) + \alpha\, l(L, L)\bigr)^{-1} l(L, C)\, Z ,

With all codes as landmarks it is the pre-image of Bakır et al. (2004), A = G Z with
G = (l(C, C) + α I)⁻¹. Leave-one-out errors, A_i / G_ii, then choose α; with landmarks, held-out
rows do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotri
from sklearn.metrics.pairwise import pairwise_kernels

from dkae._support.checks import check_choice, check_integer, draw_seed
from dkae.decoders.base import Decoder, Doubles, check_alphas, held_out_mask
from dkae.decoders.ridge import RidgeDecoder
from dkae.kernels import choose_gamma, pairwise_names

#: Candidates for α.
ALPHAS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
#: Landmarks by default.
N_LANDMARKS = 2000
#: Rows whose kernel values with the landmarks are held together.
N_CHUNK_ROWS = 2048
#: Combinations of targets that choose α.
N_SKETCHED = 32
#: The part of its trace that is added to the diagonal of a matrix for it to be invertible.
JITTER = 1e-12


class Moments(NamedTuple):
    """Sums over rows: l(L, C) l(C, L) and l(L, C) Z."""

    gram: Doubles
    cross: Doubles

    def error(self, weight: Doubles) -> float:
        """Return ‖Z − l(C, L) A‖² of these rows, less ‖Z‖²."""
        return float(np.vdot(weight, self.gram @ weight) - 2 * np.vdot(weight, self.cross))

    def sketched(self) -> Moments:
        """Return the sums with few targets."""
        return self._replace(cross=_sketch(self.cross))


class KernelRidgeDecoder(Decoder):
    """Kernel ridge regression from codes to rows.

    Parameters
    ----------
    kernel : str, default="rbf"
        A kernel of scikit-learn's ``pairwise_kernels``, on codes.
    gamma : {"median", "scale"}, float or None, default="median"
        γ of that kernel; see `dkae.kernels.choose_gamma`.
    alphas : sequence of float
        Candidates for the strength α; one in eight training rows chooses among them.
    n_landmarks : int, optional
        Landmark codes: 2,000 by default, or all.
    random_state : int, RandomState or None, default=None
        Seed of the landmarks.

    Attributes
    ----------
    landmarks_ : array of shape (n_landmarks, n_components)
        The landmark codes.
    gamma_, alpha_ : float
        The chosen values; γ is None for kernels without one.
    coef_ : array of shape (n_landmarks, n_features)
        A.
    ridge_ : RidgeDecoder
        The linear regression.
    """

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        gamma: str | float | None = "median",
        alphas: Sequence[float] = ALPHAS,
        n_landmarks: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.alphas = alphas
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _learn_rows(self, codes: Any, rows: Any) -> None:
        alphas = check_alphas(self.alphas)
        check_choice("kernel", self.kernel, pairwise_names())
        codes = codes.astype(np.float64)
        self.ridge_ = RidgeDecoder().fit(codes, rows)
        self.gamma_ = choose_gamma(self.gamma, self.kernel, codes)
        self.landmarks_ = codes[self._choose_landmarks(len(codes))]
        fit = self._fit_exactly if len(self.landmarks_) == len(codes) else self._fit_landmarks
        self.alpha_, self.coef_ = fit(codes, rows, alphas)

    def _rows_of(self, codes: Any) -> Doubles:
        codes = codes.astype(np.float64, copy=False)
        targets = self.ridge_.predict_targets(codes) + self._values(codes) @ self.coef_
        return self.ridge_.rows_of_targets(targets)

    def _fit_exactly(self, codes: Doubles, rows: Any, alphas: list[float]) -> tuple[float, Doubles]:
        """Return the best α and A, with all codes as landmarks."""
        gram, z = self._values(codes), self._left(codes, rows)
        part = _sketch(z)
        best = min(alphas, key=lambda alpha: _left_out_error(gram, part, alpha))
        return best, _solve(_plus_diagonal(gram, best), z)

    def _fit_landmarks(
        self, codes: Doubles, rows: Any, alphas: list[float]
    ) -> tuple[float, Doubles]:
        """Return the best α and A, from sums over rows."""
        held_out = held_out_mask(len(codes))
        own = self._moments(codes[~held_out], rows[~held_out])
        rest = self._moments(codes[held_out], rows[held_out])
        gram = self._values(self.landmarks_)

        def error(alpha: float) -> float:
            return part_rest.error(_solve(part_own.gram + alpha * gram, part_own.cross))

        part_own, part_rest = own.sketched(), rest.sketched()
        best = min(alphas, key=error)
        return best, _solve(own.gram + rest.gram + best * gram, own.cross + rest.cross)

    def _choose_landmarks(self, n: int) -> Any:
        wanted = N_LANDMARKS
        if self.n_landmarks is not None:
            wanted = check_integer("n_landmarks", self.n_landmarks, at_least=1)
        rng = np.random.default_rng(draw_seed(self.random_state))
        return np.sort(rng.choice(n, min(n, wanted), replace=False))

    def _left(self, codes: Doubles, rows: Any) -> Doubles:
        """Return what the linear regression leaves of rows."""
        left: Doubles = self.ridge_.targets_of(rows) - self.ridge_.predict_targets(codes)
        return left

    def _values(self, codes: Doubles) -> Doubles:
        """Return l(codes, L)."""
        values: Doubles = pairwise_kernels(
            codes, self.landmarks_, metric=self.kernel, filter_params=True, gamma=self.gamma_
        )
        return values

    def _moments(self, codes: Doubles, rows: Any) -> Moments:
        m = len(self.landmarks_)
        gram, cross = np.zeros((m, m)), np.zeros((m, rows.shape[1]))
        for i in range(0, len(codes), N_CHUNK_ROWS):
            chunk = slice(i, i + N_CHUNK_ROWS)
            values = self._values(codes[chunk])
            gram += values.T @ values
            cross += values.T @ self._left(codes[chunk], rows[chunk])
        return Moments(gram, cross)


def _sketch(z: Doubles) -> Doubles:
    """Return random combinations of many targets: a few tell which strength is best."""
    if z.shape[1] <= N_SKETCHED:
        return z
    return z @ np.random.default_rng(0).standard_normal((z.shape[1], N_SKETCHED))


def _left_out_error(gram: Doubles, z: Doubles, alpha: float) -> float:
    """Return the mean squared leave-one-out error: that of row i is (G Z)_i / G_ii."""
    matrix = _plus_diagonal(gram, alpha)
    try:
        factor, _ = cho_factor(matrix, lower=True, check_finite=False)
    except np.linalg.LinAlgError:  # a kernel that is not positive definite
        inverse = np.linalg.pinv(matrix, hermitian=True)
        return float(np.square(inverse @ z / inverse.diagonal()[:, None]).mean())
    diagonal = dpotri(factor, lower=True)[0].diagonal()
    residuals = cho_solve((factor, True), z, check_finite=False) / diagonal[:, None]
    return float(np.square(residuals).mean())


def _plus_diagonal(gram: Doubles, alpha: float) -> Doubles:
    matrix = gram.copy()
    matrix.flat[:: len(matrix) + 1] += alpha
    return matrix


def _solve(matrix: Doubles, right: Doubles) -> Doubles:
    """Return matrix⁻¹ right, for a symmetric matrix that may be singular up to round-off."""
    matrix = _plus_diagonal(matrix, JITTER * float(np.trace(matrix)))
    try:
        solved: Doubles = cho_solve(cho_factor(matrix, check_finite=False), right)
    except np.linalg.LinAlgError:  # a kernel that is not positive definite
        solved = np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)
    return solved
