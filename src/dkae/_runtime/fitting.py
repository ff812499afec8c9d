"""What all fits share: a failure keeps the former fit, a warning points at the caller."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Modules that a warning should not point at: ours, and those that call `fit` for the user, such
#: as the wrapper around ``fit_transform``, pipelines and searches.
INSIDE = ("dkae.", "joblib.", "sklearn.")


@contextmanager
def unchanged_on_failure(estimator: object) -> Iterator[None]:
    """Restore the estimator's attributes if the block fails."""
    before = estimator.__dict__.copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, however deep inside the package we are."""
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
