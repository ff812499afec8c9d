"""What a fitted object has learnt, as plain values: scikit-learn's two kinds of attributes.

Parameters are what its constructor takes; what `fit` has learnt ends in an underscore. Both can
stand in a file (`dkae._support.trees`), and nothing else is needed to build the object again.
"""

import math
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from dkae._support.trees import State

#: The one array of text.
NAMES = "feature_names_in_"
#: Parameters that are those of whoever reads a file.
_OF_THE_READER = ("device", "n_jobs")


class StateMixin:
    """Gives and takes plain state."""

    #: What `fit` has learnt under a name that does not end in an underscore.
    _also_learnt: ClassVar[tuple[str, ...]] = ()

    def to_state(self) -> State:
        """Return parameters and what was learnt: plain values, arrays, and objects of both."""
        return state_of(self, self._also_learnt)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the object that gave this state; whatever does not fit is a ValueError."""
        params, learnt = (check_type(state, name, dict) for name in ("params", "learnt"))
        try:
            restored = cls(**params)
        except TypeError as error:
            raise ValueError(f"a {cls.__name__} cannot be made: {error}") from None
        for name in learnt:
            if not is_learnt(name, cls._also_learnt):
                raise ValueError(f"a {cls.__name__} does not learn {str(name)[:80]!r}")
        if NAMES in learnt:
            learnt = learnt | {NAMES: checked_names(learnt)}
        vars(restored).update(learnt)
        try:
            restored._check_state()
        except (AttributeError, IndexError, KeyError, TypeError) as error:
            raise ValueError(f"the state of a {cls.__name__} is not whole: {error}") from None
        return restored

    def _check_state(self) -> None:
        """Refuse what was read if its parts do not fit each other."""


def state_of(estimator: Any, also: Iterable[str] = ()) -> State:
    """Return the parameters of an estimator, and what it has learnt, here or in scikit-learn.

    A `random_state` that is no number is left out: it has done its work.
    """
    params = estimator.get_params(deep=False)
    params = {name: value for name, value in params.items() if name not in _OF_THE_READER}
    if not isinstance(params.get("random_state"), Integral):
        params.pop("random_state", None)
    learnt = {name: v for name, v in vars(estimator).items() if is_learnt(name, also)}
    if NAMES in learnt:
        learnt[NAMES] = list(learnt[NAMES])
    return {"params": params, "learnt": learnt}


def is_learnt(name: str, also: Iterable[str] = ()) -> bool:
    """Say whether an attribute of this name is one that `fit` learns."""
    is_public = name.isidentifier() and name.endswith("_") and not name.startswith("_")
    return is_public or name in also


def checked_names(learnt: Mapping[str, Any]) -> Any:
    """Return the names of features, an array of text, if there is one for each feature."""
    names = check_type(learnt, NAMES, list)
    if not all(isinstance(name, str) for name in names) or len(names) != learnt.get(
        "n_features_in_"
    ):
        raise ValueError("the names of features are not text, or not one for each feature")
    return np.array(names, dtype=object)


def check_type(state: Mapping[str, Any], name: str, kind: Any) -> Any:
    """Return an entry of a state if it is there and of the kind that it must be."""
    value = state.get(name)
    if not isinstance(value, kind):
        raise ValueError(f"the entry {name!r} is a {type(value).__name__}")
    return value


def check_array(
    name: str, value: Any, shape: Iterable[int | None], *, may_be_missing: bool = False
) -> Any:
    """Return an array or tensor of finite numbers if it has this shape; None fits any length."""
    expected = tuple(shape)
    if not isinstance(value, np.ndarray | Tensor):
        raise ValueError(f"{name} is a {type(value).__name__}, expected an array")
    found = tuple(value.shape)
    if len(found) != len(expected) or any(
        b is not None and a != b for a, b in zip(found, expected, strict=True)
    ):
        raise ValueError(f"{name} has the shape {found}, expected {expected}")
    numbers = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
    if numbers.dtype.kind not in "buif":
        raise ValueError(f"{name} has entries of type {numbers.dtype}, expected numbers")
    if not may_be_missing and not np.isfinite(numbers).all():
        raise ValueError(f"{name} has NaN or infinite values")
    return value


def check_finite_number(name: str, value: Any) -> float:
    """Return a number of a state if it is one."""
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    raise ValueError(f"{name} is {str(value)[:80]!r}, expected a number")
