"""Checks of what a user passes: the message names the parameter, what came and the remedy."""

import inspect
import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

#: Characters of a value that a message shows.
N_SHOWN = 80


def shown(value: Any) -> str:
    """Return what a message says of a value: the numbers of an array would fill the screen."""
    text = repr(value)
    return (
        text
        if isinstance(value, (str, Real)) or len(text) <= N_SHOWN
        else f"<{type(value).__name__}>"
    )


def check_boolean(name: str, value: Any) -> bool:
    """Return `value` as a bool; a string such as "False" would be truthy."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ValueError(f"{name}={shown(value)} must be True or False")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> str:
    """Return `value` if it is one of `choices`, else suggest the nearest."""
    known = sorted(choices)
    if isinstance(value, str) and value in known:
        return value
    nearest = get_close_matches(str(value), known, n=1)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(
        f"{name}={shown(value)} is not known: expected one of {', '.join(map(repr, known))}{hint}"
    )


def check_integer(name: str, value: Any, *, at_least: int) -> int:
    """Return `value` as an int if it is a whole number of the required size."""
    if _is(value, Integral) and value >= at_least:
        return int(value)
    raise ValueError(f"{name}={shown(value)} must be a whole number of at least {at_least}")


def check_mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return `value` if it maps names to values; None is an empty one."""
    if value is None or isinstance(value, Mapping):
        return value or {}
    raise ValueError(f"{name}={shown(value)} must be a mapping of names to values, such as a dict")


def check_sequence(name: str, value: Any) -> list[Any]:
    """Return `value` as a list, if it can be read one by one."""
    try:
        return list(value)
    except TypeError as error:
        raise ValueError(f"{name}={shown(value)} must be a sequence, such as a list") from error


def check_state(random_state: Any) -> np.random.RandomState:
    """Return the random numbers that a user's `random_state` stands for."""
    try:
        state: np.random.RandomState = check_random_state(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={shown(random_state)} must be a whole number from 0 to 2**32 - 1, a "
            "numpy.random.RandomState, or None"
        ) from error
    return state


def draw_seed(random_state: Any) -> int:
    """Return a seed drawn from a user's `random_state`."""
    return int(check_state(random_state).randint(np.iinfo(np.int32).max))


def check_takes(
    name: str, function: Any, what: str, n: int, params: Mapping[str, Any] | None = None
) -> None:
    """Refuse what cannot be called with `n` arguments, which are `what`, and named `params`."""
    params = params or {}
    if not callable(function):
        raise ValueError(f"{name}={shown(function)} must be a function of {what}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some functions of C have none
        return
    try:
        signature.bind(*[None] * n, **params)
    except TypeError as error:
        raise ValueError(
            f"{name}={getattr(function, '__name__', function)} cannot be called with {what}"
            f"{''.join(f' and {key}=' for key in params)}: {error}"
        ) from error


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float = math.inf,
    *,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `value` as a float if it lies in the interval from `low` to `high`."""
    if _is(value, Real) and math.isfinite(value):
        above = value > low if open_low else value >= low
        below = value < high if open_high else value <= high
        if above and below:
            return float(value)
    left = "(" if open_low else "["
    right = ")" if open_high or high == math.inf else "]"
    raise ValueError(f"{name}={shown(value)} must be a number in {left}{low:g}, {high:g}{right}")


def _is(value: Any, kind: type) -> bool:
    # To Python, True and False are numbers too.
    return isinstance(value, kind) and not isinstance(value, bool)
