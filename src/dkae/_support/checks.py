"""Checks of parameters: each error names the parameter, its value and the remedy.

A fit that fails leaves the estimator as it was; warnings point at the line of the caller.
"""

import inspect
import math
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from types import FrameType
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

#: Characters of a value that an error shows.
N_SHOWN = 80
#: Sizes and counts: torch counts with 64 bits, and multiplies sizes.
LARGEST_SIZE = 2**31 - 1
#: Packages that a warning must not point at: this one, and those that call it, such as pipelines
#: and searches of scikit-learn.
INSIDE = {"dkae", "importlib", "joblib", "sklearn"}


def shown(value: Any) -> str:
    """Return a value as errors show it: the numbers of an array would fill the screen."""
    try:
        text = repr(value)
    except Exception:  # of an object that cannot be shown, or of a number of 5,000 digits
        text = ""
    is_short = 0 < len(text) <= N_SHOWN
    return text if is_short or isinstance(value, str) else f"<{type(value).__name__}>"


def check_boolean(name: str, value: Any) -> bool:
    """Return `value` as a bool; a string such as "False" would be truthy."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{name}={shown(value)} must be True or False")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, else suggest the nearest."""
    known = sorted(choices)
    if isinstance(value, str) and value in known:
        return value
    nearest = get_close_matches(value, known, n=1) if isinstance(value, str) else []
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(
        f"{name}={shown(value)} is not known: expected one of {', '.join(map(repr, known))}{hint}"
    )


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return `value` as an int if it is a whole number of the required size."""
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not is_integer or value < at_least:
        raise ValueError(f"{name}={shown(value)} must be a whole number of at least {at_least}")
    if value > LARGEST_SIZE:
        raise ValueError(f"{name}={shown(value)} must be at most {LARGEST_SIZE}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `value` as a float if it lies in the interval from `low` to `high`.

    Only types that torch computes with are numbers here, not fractions or decimals.
    """
    is_number = isinstance(value, int | float | np.integer | np.floating)
    if is_number and not isinstance(value, bool):
        with suppress(OverflowError):  # an int of 400 digits
            number = float(value)
            above = number > low if open_low else number >= low
            below = number < high if open_high else number <= high
            if above and below and math.isfinite(number):
                return number
    left = "(" if open_low else "["
    right = ")" if open_high or high == math.inf else "]"
    hint = "" if is_number else ", an int or a float"
    raise ValueError(
        f"{name}={shown(value)} must be a number in {left}{low:g}, {high:g}{right}{hint}"
    )


def check_sequence(name: str, value: Any) -> list[Any]:
    """Return the items of `value` as a list."""
    try:
        return list(value)
    except TypeError as error:
        raise ValueError(f"{name}={shown(value)} must be a sequence, such as a list") from error


def check_state(random_state: Any) -> np.random.RandomState:
    """Return the random numbers that the parameter `random_state` stands for."""
    try:
        state: np.random.RandomState = check_random_state(random_state)
    except Exception as error:
        raise ValueError(
            f"random_state={shown(random_state)} must be a whole number from 0 to 2**32 - 1, a "
            "numpy.random.RandomState, or None"
        ) from error
    return state


def draw_seed(random_state: Any) -> int:
    """Return a seed drawn from the parameter `random_state`."""
    return int(check_state(random_state).randint(np.iinfo(np.int32).max))


def check_takes(name: str, function: Any, what: str, n: int) -> None:
    """Raise if `function` cannot be called with `n` arguments, which are `what`."""
    if not callable(function):
        raise ValueError(f"{name}={shown(function)} must be a function of {what}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C have none
        return
    try:
        signature.bind(*[None] * n)
    except TypeError as error:
        raise ValueError(
            f"{name}={getattr(function, '__name__', function)} cannot be called with {what}: "
            f"{error}"
        ) from error


# --- failures and warnings ------------------------------------------------------------------------


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
