"""What the decoders share: codes and rows are checked here, and are matrices behind it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dkae._support.checks import check_number, check_sequence

Doubles = NDArray[np.float64]

#: Types of codes; others are converted to the first.
DTYPES = (np.float64, np.float32)


class Decoder(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor from codes to rows; a subclass learns and decodes matrices."""

    #: Whether `fit` got one number for each code, not a row.
    _is_flat = False

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the map from codes `X` to rows `y`."""
        codes, rows = validate_data(
            self, X, y, dtype=DTYPES, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        self._is_flat = rows.ndim == 1
        self._learn_rows(codes, rows.reshape(len(rows), -1))
        return self

    def predict(self, X: Any) -> Any:
        """Return the rows of codes."""
        check_is_fitted(self)
        rows = self._rows_of(validate_data(self, X, dtype=DTYPES, reset=False))
        return rows[:, 0] if self._is_flat else rows

    @abstractmethod
    def _learn_rows(self, codes: Any, rows: Any) -> None:
        """Learn the map from codes to rows."""

    @abstractmethod
    def _rows_of(self, codes: Any) -> Any:
        """Return the rows of codes."""


def check_alphas(alphas: Any) -> list[float]:
    """Return the candidates for a strength; there must be one."""
    values = check_sequence("alphas", alphas)
    if not values:
        raise ValueError("alphas is empty: pass at least one number")
    return [check_number("each of alphas", alpha, 0, open_low=True) for alpha in values]


def held_out_mask(n: int, every: int = 8) -> NDArray[np.bool_]:
    """Return which of n training rows a closed form chooses its strength on: one in eight."""
    return np.asarray(np.arange(n) % every == 0)
