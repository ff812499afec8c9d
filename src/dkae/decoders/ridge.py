r"""Ridge regression from codes to rows, with the strength that is best on held-out rows.

.. math:: \hat x = \bar x + s \odot \frac{c - \mu}{\sigma} W, \qquad
    W = \Bigl(\frac{A^\top A}{n} + \alpha I\Bigr)^{-1} \frac{A^\top Z}{n}

with standardised codes A and standardised rows Z.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from dkae.decoders.base import Decoder, Doubles, check_alphas, held_out_mask
from dkae.networks import choose_output_activation, learn_scaling
from dkae.statistics import Statistics

#: Candidates for the strength of the ridge, as part of the mean variance of a code.
ALPHAS = tuple(10.0 ** np.arange(-8, 2))


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


class RidgeDecoder(Decoder):
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
    row_mean_, row_scale_ : arrays of shape (n_features,)
        Targets are (row - mean) / scale, with one scale for all if features share a unit.
    is_unit_interval_ : bool
        Whether all rows lie in [0, 1], as pixels do: so do reconstructions.
    """

    def __init__(self, alphas: Sequence[float] = ALPHAS) -> None:
        self.alphas = alphas

    def _learn_rows(self, codes: Any, rows: Any) -> None:
        alphas, known = check_alphas(self.alphas), Statistics.of(rows)
        scale = learn_scaling(known).scale.double().numpy()
        self.row_mean_, self.row_scale_ = known.mean, np.broadcast_to(scale, known.shape).copy()
        self.is_unit_interval_ = choose_output_activation("auto", *known.range) == "sigmoid"
        ridge = fit_ridge(codes.astype(np.float64), self.targets_of(rows), alphas)
        self.code_mean_, self.code_scale_ = ridge.mean, ridge.scale
        self.coef_, self.intercept_, self.alpha_ = ridge.weight, ridge.center, ridge.alpha

    def _rows_of(self, codes: Any) -> Doubles:
        return self.rows_of_targets(self.predict_targets(codes))

    def targets_of(self, rows: Any) -> Doubles:
        """Return rows in units in which all features count."""
        targets: Doubles = (np.asarray(rows, np.float64) - self.row_mean_) / self.row_scale_
        return targets

    def predict_targets(self, codes: Any) -> Doubles:
        """Return the targets of codes."""
        a = (codes - self.code_mean_) / self.code_scale_
        targets: Doubles = a @ self.coef_ + self.intercept_
        return targets

    def rows_of_targets(self, targets: Doubles) -> Doubles:
        """Return the rows that targets stand for."""
        rows = self.row_mean_ + self.row_scale_ * targets
        return np.clip(rows, 0.0, 1.0) if self.is_unit_interval_ else rows
