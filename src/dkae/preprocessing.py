"""Preprocessing: rows are checked where they enter a map, and restored where they leave it.

Behind it, a map sees ordinary arrays: in float32, in the units that its kernel and network see, and
a chunk at a time. It need not care for units, gaps, sparse matrices or rows on a disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array

from dkae._support.arrays import as_array, naming
from dkae._support.checks import check_boolean, check_choice
from dkae.grams import Floats
from dkae.rows import RowArray, as_rows, is_row_array, validated_rows
from dkae.statistics import Statistics, warn_of_digits
from dkae.training.loaders import is_loader

#: Choices of `missing`.
MISSING = ("error", "mask")
#: Rows on a disk that are read to see whether digits are lost.
N_DIGIT_ROWS = 512


class Preprocessing(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """An estimator whose rows may come from anywhere, in any unit, with gaps."""

    standardize: bool
    missing: str
    n_components_: int

    center_: Floats | None
    scale_: Floats | None
    fill_: Floats | None

    #: Types of rows and codes; others are converted to the first.
    _dtypes: tuple[Any, ...] = (np.float32,)

    @property
    def _takes_any_shape(self) -> bool:
        """Whether a row may have more than one dimension."""
        return False

    # --- in ----------------------------------------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool = False) -> Any:
        """Return X in float32, in the units of the user.

        Rows of a sparse matrix become dense, and rows on a disk are read and checked, when they are
        asked for.
        """
        masks = check_choice("missing", self.missing, MISSING) == "mask"
        if is_loader(X):
            raise ValueError(
                "X is an iterable of batches, which only fit of a map that is trained takes: pass "
                "an array of rows, such as a memmap, or one batch after another"
            )
        if self._takes_any_shape and not reset:
            self._check_row_shape(X)
        rows = validated_rows(
            self,
            X,
            reset=reset,
            missing=masks,
            accept_sparse="csr",
            dtype=self._dtypes,
            allow_nd=self._takes_any_shape,
        )
        if reset and isinstance(rows, RowArray):
            warn_of_digits(rows.read_source(np.arange(min(N_DIGIT_ROWS, len(rows)))))
        elif reset and not sparse.issparse(rows):
            warn_of_digits(np.asarray(X))
        if reset:
            self.row_shape_: tuple[int, ...] = tuple(rows.shape[1:])
        return RowArray(rows, missing=True) if sparse.issparse(rows) else rows

    def _check_row_shape(self, X: Any) -> None:
        """Compare shapes of rows: scikit-learn would count the channels of an image as features."""
        shape = X.shape if hasattr(X, "shape") else as_array(X, "X").shape
        if len(shape) < 3 and len(self.row_shape_) == 1:
            return  # vectors are scikit-learn's to check
        if shape[1:] != self.row_shape_:
            raise ValueError(
                f"rows of X have the shape {shape[1:]}, but the model was fitted to rows of shape "
                f"{self.row_shape_}: pass rows of that shape"
            )

    def _check_codes(self, X: Any) -> Any:
        if is_row_array(X) and len(X.shape) == 2:
            codes = as_rows(RowArray(X), "codes")
        else:
            with naming("codes", X):
                codes = check_array(X, dtype=self._dtypes, input_name="codes")
        if codes.shape[1] != self.n_components_:
            raise ValueError(
                f"codes has {codes.shape[1]} columns, but the model was fitted with "
                f"n_components={self.n_components_}: pass codes as transform returns them"
            )
        return codes

    # --- units and gaps ----------------------------------------------------------------------

    def _learn_units(self, known: Statistics) -> Statistics:
        """Learn how the map sees rows, and return the statistics of what it sees."""
        self.center_ = self.scale_ = self.fill_ = None
        if check_boolean("standardize", self.standardize):
            center, scale = known.units
            self.center_, self.scale_ = center.astype(np.float32), scale.astype(np.float32)
            known = known.standardized()
        if self.missing == "mask":
            self.fill_ = known.mean.astype(np.float32)
        return known

    def _seen(self, rows: Any) -> Any:
        """Return rows as kernel and network see them: standardised if the user asked for it."""
        if self.center_ is None or self.scale_ is None:
            return rows
        return (rows - self.center_) / self.scale_

    def _lazily_seen(self, rows: Any) -> Any:
        """Return rows as kernel and network see them, without a copy of all."""
        if self.center_ is None or self.scale_ is None:
            return rows
        if isinstance(rows, np.ndarray) and rows.dtype == np.float64:  # which an exact map keeps
            return self._seen(rows)
        lazy = RowArray(rows, missing=self.missing == "mask")
        return lazy.standardized(self.center_, self.scale_)

    def _without_gaps(self, rows: Any) -> Any:
        """Return one chunk of rows whose gaps hold the mean of the feature."""
        return rows if self.fill_ is None else np.where(np.isnan(rows), self.fill_, rows)

    def _restored(self, rows: Any) -> Any:
        """Return rows in the units of the user."""
        if self.center_ is None or self.scale_ is None:
            return rows
        return self.center_ + self.scale_ * rows

    def _filled(self, rows: Any) -> Any:
        """Return rows whose gaps hold the mean of the feature."""
        if self.fill_ is None:
            return rows
        return RowArray(rows).filled(self.fill_)


@contextmanager
def mentioning_masks() -> Iterator[None]:
    """Add to an error about missing values the parameter that takes them."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        remedy = "With missing='mask' the model accepts missing values, and fills them."
        raise ValueError(f"{error}\n\n{remedy}") from error
