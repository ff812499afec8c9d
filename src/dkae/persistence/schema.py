"""The language of schemas: what a file may hold of a class.

A `Spec` says what one value may be, and a `Schema` has one for every parameter and attribute of a
class. Sizes are symbols: the first value that has a ``"d"`` fixes it for its object.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from dkae._support.json_state import Fields

#: Sizes by symbol, and ``"widest"``, the largest number of features that the file explains.
Scope = dict[str, Any]

#: Parameters of the machine and of the call, never of a file.
NEVER = frozenset(
    {"cache_bytes", "callbacks", "copy", "copy_X", "device", "memory", "n_jobs", "verbose"}
)


@dataclass(frozen=True)
class Spec:
    """What a value may be."""

    #: Raises a ValueError if a value does not fit.
    check: Callable[[Any, Scope], None]
    #: Whether the field may be missing.
    is_optional: bool = False

    def __or__(self, other: Spec) -> Spec:
        def check(value: Any, scope: Scope) -> None:
            trial = dict(scope)
            try:
                self.check(value, trial)
            except ValueError as error:
                try:
                    other.check(value, scope)
                except ValueError:
                    raise error from None
            else:
                scope.update(trial)

        return Spec(check)


def optional(spec: Spec) -> Spec:
    """Return the spec of a field that may be missing."""
    return replace(spec, is_optional=True)


def expecting(expected: str, is_right: Callable[[Any], bool]) -> Spec:
    """Return the spec of the values that pass a test."""

    def check(value: Any, scope: Scope) -> None:
        if not is_right(value):
            raise ValueError(f"is {in_short(value)}, expected {expected}"[:300])

    return Spec(check)


def one_of(*values: Any) -> Spec:
    """Return the spec of one of a few values."""
    return expecting(
        f"one of {values}",
        lambda found: any(type(found) is type(value) and found == value for value in values),
    )


def text(longest: int = 1000) -> Spec:
    """Return the spec of a text."""
    return expecting("a text", lambda value: isinstance(value, str) and len(value) <= longest)


def number(
    low: float = -math.inf, high: float = math.inf, *, may_be_infinite: bool = False
) -> Spec:
    """Return the spec of a number between two bounds."""

    def is_right(value: Any) -> bool:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (may_be_infinite or (low <= value <= high and math.isfinite(value)))

    return expecting(f"a number from {low} to {high}", is_right)


def integer(low: int = 0, high: int = 2**53) -> Spec:
    """Return the spec of a whole number between two bounds."""
    return expecting(
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
    )


def size(symbol: str) -> Spec:
    """Return the spec of a number of features or components, which fixes a symbol."""

    def check(value: Any, scope: Scope) -> None:
        integer(1, scope["widest"]).check(value, scope)
        _check_sizes((symbol,), (value,), scope)

    return Spec(check)


def array(
    *shape: str | int,
    kinds: str = "f",
    low: float = -math.inf,
    below: float | str = math.inf,
    may_be_infinite: bool = False,
    is_tensor: bool = False,
) -> Spec:
    """Return the spec of an array whose shape is given in symbols.

    ``"?"`` is any size, ``"*row"`` all sizes of a row, and ``"*"`` any number of any sizes; ``"n"``
    are rows that each new row is compared with, ``"m"`` numbers that are made of each row. `kinds`
    are NumPy's letters for kinds of numbers; entries are at least `low`, and do not reach `below`,
    a number or a symbol.
    """

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, Tensor if is_tensor else np.ndarray):
            raise ValueError(f"is {in_short(value)}, expected an array")
        _check_sizes(shape, tuple(value.shape), scope)
        found: Any = _numbers(value) if isinstance(value, Tensor) else value
        if found.dtype.kind not in kinds:
            raise ValueError(f"has entries of type {found.dtype}")
        if found.size and not may_be_infinite:
            high = scope[below] if isinstance(below, str) else below
            if not np.isfinite(found).all():
                raise ValueError("has NaN or infinite entries")
            if not low <= found.min() <= found.max() < high:
                raise ValueError(f"has entries outside of [{low}, {high})")

    return Spec(check)


def _numbers(tensor: Tensor) -> Any:
    try:
        return tensor.detach().numpy()
    except TypeError:  # such as bfloat16
        raise ValueError(f"has entries of type {tensor.dtype}") from None


def _check_sizes(shape: tuple[str | int, ...], found: tuple[int, ...], scope: Scope) -> None:
    sizes: tuple[Any, ...] = found
    for i, name in enumerate(shape):
        if str(name).startswith("*"):  # it stands for all sizes that the others leave
            end = i + len(found) - len(shape) + 1
            sizes = (*found[:i], found[i:end], *found[end:])
    is_right = len(sizes) == len(shape) and all(
        name in ("?", "*") or n == (name if isinstance(name, int) else scope.setdefault(name, n))
        for n, name in zip(sizes, shape, strict=True)
    )
    if not is_right:
        expected = tuple(scope.get(str(name), name) for name in shape)
        raise ValueError(f"has the shape {found}, expected {expected}")


def several(of: Spec, fewest: int = 0, most: int = 2**20) -> Spec:
    """Return the spec of a list or tuple of values of one kind."""

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, list | tuple) or not fewest <= len(value) <= most:
            raise ValueError(f"is {in_short(value)}, expected {fewest} to {most} values")
        for item in value:
            of.check(item, scope)

    return Spec(check)


def mapping(of: Spec) -> Spec:
    """Return the spec of a dict of text to values of one kind."""

    def check(value: Any, scope: Scope) -> None:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ValueError(f"is {in_short(value)}, expected a dict")
        for item in value.values():
            of.check(item, scope)

    return Spec(check)


def instance(*kinds: str | type) -> Spec:
    """Return the spec of an object that a file can hold, of these kinds or base classes."""
    names = [kind if isinstance(kind, str) else kind.__name__ for kind in kinds]
    bases = tuple(kind for kind in kinds if isinstance(kind, type))

    def is_right(value: Any) -> bool:
        kind = kind_of(value)
        return kind in names or (kind is not None and isinstance(value, bases))

    return expecting(f"one of {', '.join(names)}", is_right)


REAL, TEXT, FLAG, NOTHING = number(), text(), one_of(True, False), one_of(None)
#: A parameter that is checked where it is used.
PLAIN = REAL | TEXT | FLAG | NOTHING | several(REAL | TEXT) | array("*")


def _check_row_shape(value: Any, scope: Scope) -> None:
    several(size("?"), 1, 16).check(value, scope)
    if math.prod(value) > scope["widest"]:
        raise ValueError(f"is {value}, more than the file explains")
    _check_sizes(("*row",), tuple(value), scope)


ROW_SHAPE = Spec(_check_row_shape)


# --- classes -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Schema:
    """What a file may hold of a class."""

    #: Module and name of the class.
    target: str
    #: Parameters of the constructor that are not here are `PLAIN`.
    declared: Mapping[str, Spec]
    #: Parameters that may be code, such as a function; a file has a word in their place.
    code: tuple[str, ...] = ()
    #: Raises a ValueError where fields that are right by themselves do not fit each other.
    relation: Callable[[Fields], None] = lambda fields: None
    #: Operations on a row; one for each number by default.
    work: Callable[[Fields], float] | None = None
    #: How often it uses each of its parts.
    times: int = 1

    @cached_property
    def target_class(self) -> Any:
        """The class; a file never names a module to import."""
        module, name = self.target.split(":")
        return getattr(importlib.import_module(module), name)

    @property
    def is_estimator(self) -> bool:
        """Whether it has parameters and attributes; other classes are made of their fields."""
        return hasattr(self.target_class, "get_params")

    @cached_property
    def fields(self) -> dict[str, Spec]:
        """All fields, in the order in which they are checked."""
        parameters = inspect.signature(self.target_class).parameters if self.is_estimator else ()
        return {**dict.fromkeys((p for p in parameters if p not in NEVER), PLAIN), **self.declared}

    def check(self, kind: str, found: Fields, scope: Scope) -> None:
        """Raise a ValueError unless all fields fit; attributes of `fit` are all there, or none."""
        unknown = found.keys() - self.fields.keys()
        if unknown:
            raise ValueError(f"a {kind} has no {min(unknown)[:80]!r}")
        is_fitted = any(map(is_learnt, found))

        def may_lack(name: str) -> bool:
            return self.is_estimator and not (is_fitted and is_learnt(name))

        for name, spec in self.fields.items():
            if name in found:
                try:
                    spec.check(found[name], scope)
                except ValueError as error:
                    raise ValueError(f"{name} of {kind} {error}") from None
            elif not (spec.is_optional or may_lack(name)):
                raise ValueError(f"{name} of {kind} is missing")
        self.relation(found)


#: All schemas by kind, the name of a class; `dkae.persistence.schemas` fills it.
SCHEMAS: dict[str, Schema] = {}


def is_learnt(name: str) -> bool:
    """Return whether a field is an attribute of `fit`, and not a parameter."""
    return name.endswith("_") or name.startswith("_")


def kind_of(value: Any) -> str | None:
    """Return the kind of an object, None if no file holds such; subclasses may differ."""
    name = type(value).__name__
    return name if name in SCHEMAS and type(value) is SCHEMAS[name].target_class else None


def in_short(value: Any) -> str:
    """Return a value in a few words: never a long text of the file."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
