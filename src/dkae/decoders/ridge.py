r"""Ridge regression from codes to rows, with the strength that is best on held-out rows.

.. math:: \hat x = \bar x + s \odot \frac{c - \mu}{\sigma} W, \qquad
    W = \Bigl(\frac{A^\top A}{n} + \alpha I\Bigr)^{-1} \frac{A^\top Z}{n}

with standardised codes A and standardised rows Z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dkae._support.checks import check_number, check_sequence
from dkae.decoders.targets import Doubles, Targets, held_out_mask
from dkae.statistics import Statistics

#: Candidates for the strength of the ridge, as part of the mean variance of a code.
ALPHAS = tuple(10.0 ** np.arange(-8, 2))
#: Types of codes; others are converted to the first.
DTYPES = (np.float64, np.float32)


class Ridge(NamedTuple):
    """A regression from standardised codes: ((c − mean) / scale) weight + center."""

    mean: Doubles
    scale: Doubles
    weight: Doubles
    center: Doubles
    alpha: float

    def predict(self, codes: Any) -> Doubles:
        predicted: Doubles = (codes - self.mean) / self.scale @ self.weight + self.center
        return predicted


def fit_ridge(codes: Any, targets: Any, alphas: Sequence[float] = ALPHAS) -> Ridge:
    """Return the ridge regression whose strength is best on held-out rows."""
    mean, scale = codes.mean(axis=0), codes.std(axis=0)
    scale[scale <= 1e-7 * max(scale.max(initial=0.0), 1e-300)] = 1.0
    center = targets.mean(axis=0, dtype=np.float64)
    a, b = (codes - mean) / scale, targets - center
    held_out = held_out_mask(len(a))
    errors = {}
    if (~held_out).any() and len(alphas) > 1:
        for alpha, weight in _ridges(a[~held_out], b[~held_out], alphas):
            errors[alpha] = np.square(a[held_out] @ weight - b[held_out]).mean()
    best = min(errors, key=errors.__getitem__, default=alphas[-1])
    ((_, weight),) = _ridges(a, b, [best])
    return Ridge(mean, scale, weight, center, float(best))


def _ridges(a: Doubles, b: Doubles, alphas: Sequence[float]) -> Iterator[tuple[float, Doubles]]:
    """Yield (aᵀa / n + α I)⁻¹ aᵀb / n for each α, from one decomposition."""
    eigenvalues, vectors = np.linalg.eigh(a.T @ a / len(a))
    projected = vectors.T @ (a.T @ b / len(a))
    for alpha in alphas:
        yield alpha, vectors @ (projected / (eigenvalues.clip(min=0) + alpha)[:, None])


class RidgeDecoder(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Ridge regression from codes to rows.

    Parameters
    ----------
    alphas : sequence of float
        Candidates for the strength, as part of the mean variance of a code; one in eight training
        rows chooses among them.

    Attributes
    ----------
    alpha_ : float
        The chosen strength.
    targets_ : Targets
        The units of rows.
    """

    def __init__(self, alphas: Sequence[float] = ALPHAS) -> None:
        self.alphas = alphas

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from codes `X` to rows `y`."""
        alphas = check_alphas(self.alphas)
        codes, rows = check_pairs(self, X, y)
        self.targets_ = Targets.of(Statistics.of(rows))
        ridge = fit_ridge(codes.astype(np.float64), self.targets_.scaled(rows), alphas)
        self.code_mean_, self.code_scale_ = ridge.mean, ridge.scale
        self.coef_, self.intercept_, self.alpha_ = ridge.weight, ridge.center, ridge.alpha
        return self

    def predict(self, X: Any) -> Any:
        """Return the rows of codes."""
        codes = check_codes(self, X)
        return self.targets_.restored(self.predict_scaled(codes))

    def predict_scaled(self, codes: Any) -> Doubles:
        """Return the rows of codes in the units of `targets_`."""
        a = (codes - self.code_mean_) / self.code_scale_
        predicted: Doubles = a @ self.coef_ + self.intercept_
        return predicted


def check_alphas(alphas: Any) -> list[float]:
    """Return the candidates for a strength; there must be one."""
    values = check_sequence("alphas", alphas)
    if not values:
        raise ValueError("alphas is empty: pass at least one number")
    return [check_number("each of alphas", alpha, 0, open_low=True) for alpha in values]


def check_pairs(decoder: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """Return codes and rows as arrays of finite numbers, two of each at least."""
    codes, rows = validate_data(
        decoder, X, y, dtype=DTYPES, multi_output=True, y_numeric=True, ensure_min_samples=2
    )
    return codes, rows


def check_codes(decoder: Any, X: Any) -> Any:
    """Return codes to decode as an array of finite numbers."""
    check_is_fitted(decoder)
    return validate_data(decoder, X, dtype=DTYPES, reset=False)
