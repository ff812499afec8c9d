"""A failed fit leaves the estimator as it was; warnings point at the caller's line."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

#: Packages that a warning must not point at: this one, and those that call it, such as pipelines
#: and searches of scikit-learn.
INSIDE = {"dkae", "importlib", "joblib", "sklearn"}


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
    """Warn at the line outside of the package that called it."""
    frame = sys._getframe()
    while frame.f_back is not None and _module(frame).partition(".")[0] in INSIDE:
        frame = frame.f_back
    # Not a stacklevel, which does not count the frames of imports.
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    warnings.warn_explicit(
        message, category, frame.f_code.co_filename, frame.f_lineno, _module(frame), registry
    )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
