"""The language of schemas: what a file may hold of a class, field by field, and how it is built.

A `Spec` says what one value may be. A `Schema` has one for every parameter and attribute of a
class, in the order in which they are read. Sizes are symbols: the first array that has an ``"n"``
fixes it for its object. Nothing that is not declared is written or built.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import Tensor

from dkae._support.json_state import Fields, NotPlainError, Packer, Unpacker

#: Sizes by symbol. ``"widest"`` is the largest number of features that the file explains.
Scope = dict[str, int]

#: Parameters of the machine and of the call, never of a file.
NEVER = frozenset(
    {"cache_bytes", "callbacks", "copy", "copy_X", "device", "n_jobs", "verbose", "lower"}
)
#: A row may have so many features whatever a file holds.
MAX_UNEXPLAINED = 2**22


class Cost(NamedTuple):
    """What using an object takes, in multiply-adds and numbers."""

    #: Kernels that are evaluated.
    kernels: int = 0
    #: Operations and intermediate numbers for a row.
    work: int = 0
    memory: int = 0
    #: Operations that do not depend on the number of rows.
    once: int = 0

    def plus(self, other: Cost) -> Cost:
        """Return the sum, entry by entry."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def times(self, factor: int) -> Cost:
        """Return a multiple."""
        return Cost(*(factor * a for a in self))


def check_cost(cost: Cost, n_numbers: int) -> None:
    """Raise an error if using a model takes more than a file of so many numbers explains."""
    limits = Cost(
        1000, 2**28 + 64 * n_numbers, MAX_UNEXPLAINED * 2 + n_numbers, 2**33 + 2**13 * n_numbers
    )
    for name, found, limit in zip(Cost._fields, cost, limits, strict=True):
        if found > limit:
            raise ValueError(
                f"using it takes {found:.3g} ({name}), more than its {n_numbers:,} numbers explain"
            )


# --- what a value may be -------------------------------------------------------------------------


class Spec:
    """What a value may be."""

    #: Whether the field may be missing.
    optional: ClassVar[bool] = False

    def read(self, value: Any, scope: Scope) -> Any:
        """Return the value as its object takes it; raise a ValueError if it does not fit."""
        raise NotImplementedError

    def write(self, value: Any, writer: Writer) -> Any:
        """Return what the file holds of a value."""
        return value

    def __or__(self, other: Spec) -> Spec:
        return Either(self, other)


@dataclass(frozen=True)
class Either(Spec):
    """One of two."""

    first: Spec
    second: Spec

    def read(self, value: Any, scope: Scope) -> Any:
        trial = dict(scope)
        try:
            found = self.first.read(value, trial)
        except ValueError:
            if self.second is NOTHING and value is not None:
                raise
            return self.second.read(value, scope)
        scope.update(trial)
        return found

    def write(self, value: Any, writer: Writer) -> Any:
        return self.second.write(self.first.write(value, writer), writer)


@dataclass(frozen=True)
class Choice(Spec):
    """One of a few values."""

    values: tuple[Any, ...]

    def read(self, value: Any, scope: Scope) -> Any:
        if not any(type(value) is type(v) and value == v for v in self.values):
            raise ValueError(f"is {_short(value)}, expected one of {self.values}")
        return value


FLAG, NOTHING = Choice((True, False)), Choice((None,))


@dataclass(frozen=True)
class Text(Spec):
    """A text."""

    longest: int = 1000

    def read(self, value: Any, scope: Scope) -> Any:
        if not isinstance(value, str) or len(value) > self.longest:
            raise ValueError(f"is {_short(value)}, expected a text")
        return value


@dataclass(frozen=True)
class Number(Spec):
    """A finite number between two bounds; `high` may be a symbol."""

    low: float = -math.inf
    high: float | str = math.inf
    is_integer: bool = False
    #: What the object takes, such as `numpy.float32`.
    of: Callable[[Any], Any] | None = None
    is_finite: bool = True

    def read(self, value: Any, scope: Scope) -> Any:
        kinds = (int, np.integer) if self.is_integer else (int, float, np.integer, np.floating)
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ValueError(f"is {_short(value)}, expected a number")
        high = scope[self.high] if isinstance(self.high, str) else self.high
        if self.is_finite and not (self.low <= value <= high and math.isfinite(value)):
            raise ValueError(f"is {value:.6g}, expected a number from {self.low} to {high}")
        return value if self.of is None else self.of(value)


def integer(low: float = 0, high: float | str = 2**53) -> Number:
    """Return the spec of a whole number."""
    return Number(low, high, is_integer=True)


@dataclass(frozen=True)
class Size(Spec):
    """A number of features, components or rows, which fixes a symbol."""

    symbol: str

    def read(self, value: Any, scope: Scope) -> Any:
        integer(0, "widest").read(value, scope)
        if scope.setdefault(self.symbol, int(value)) != value:
            raise ValueError(f"is {value}, expected {scope[self.symbol]}")
        return value


@dataclass(frozen=True)
class Array(Spec):
    """An array, or a tensor, of a shape in symbols; ``"?"`` fits any length."""

    shape: tuple[str | int, ...] | None = None
    #: NumPy's letters for the kinds of numbers, and the name of one type where it matters.
    kinds: str = "f"
    dtype: str | None = None
    low: float = -math.inf
    #: The first number, or symbol, that entries may not reach.
    below: float | str = math.inf
    is_positive: bool = False
    is_tensor: bool = False
    #: Whether entries may be infinite or NaN.
    may_be_infinite: bool = False

    def read(self, value: Any, scope: Scope) -> Any:
        if not isinstance(value, Tensor if self.is_tensor else np.ndarray):
            raise ValueError(f"is {_short(value)}, expected an array")
        try:
            numbers = value.detach().cpu().numpy() if isinstance(value, Tensor) else value
        except TypeError:
            raise ValueError(f"has entries of type {value.dtype}") from None
        if numbers.dtype.kind not in self.kinds or self.dtype not in (None, numbers.dtype.name):
            raise ValueError(f"has entries of type {numbers.dtype}")
        self._check_shape(numbers.shape, scope)
        if not self.may_be_infinite:
            self._check_range(numbers, scope)
        return value

    def _check_range(self, numbers: np.ndarray[Any, Any], scope: Scope) -> None:
        below = scope[self.below] if isinstance(self.below, str) else self.below
        if not np.isfinite(numbers).all():
            raise ValueError("has NaN or infinite entries")
        if self.is_positive and not (numbers > 0).all():
            raise ValueError("has entries that are not positive")
        if numbers.size and not self.low <= numbers.min() <= numbers.max() < below:
            raise ValueError(f"has entries outside of [{self.low}, {below})")

    def _check_shape(self, found: tuple[int, ...], scope: Scope) -> None:
        if self.shape is None:
            return
        is_right = len(found) == len(self.shape) and all(
            name == "?" or n == (name if isinstance(name, int) else scope.setdefault(name, n))
            for n, name in zip(found, self.shape, strict=True)
        )
        if not is_right:
            sizes = [scope.get(str(name), name) for name in self.shape]
            raise ValueError(f"has the shape {found}, expected {tuple(sizes)}")


@dataclass(frozen=True)
class Sequence(Spec):
    """A list or tuple of values of one kind."""

    of: Spec
    fewest: int = 0
    most: int = 2**20

    def read(self, value: Any, scope: Scope) -> Any:
        if not isinstance(value, list | tuple) or not self.fewest <= len(value) <= self.most:
            raise ValueError(f"is {_short(value)}, expected {self.fewest} or more values")
        return type(value)(self.of.read(item, scope) for item in value)


@dataclass(frozen=True)
class Mapped(Spec):
    """A dict of text to values of one kind."""

    of: Spec

    def read(self, value: Any, scope: Scope) -> Any:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ValueError(f"is {_short(value)}, expected a dict")
        return {key: self.of.read(item, scope) for key, item in value.items()}


@dataclass(frozen=True)
class Object(Spec):
    """An object of one of these kinds."""

    kinds: tuple[str, ...]

    def read(self, value: Any, scope: Scope) -> Any:
        if not any(is_a(value, kind) for kind in self.kinds):
            raise ValueError(f"is {_short(value)}, expected one of {', '.join(self.kinds)}"[:300])
        return value


@dataclass(frozen=True)
class Optional(Spec):
    """A field that may be missing."""

    of: Spec
    optional: ClassVar[bool] = True

    def read(self, value: Any, scope: Scope) -> Any:
        return self.of.read(value, scope)

    def write(self, value: Any, writer: Writer) -> Any:
        return self.of.write(value, writer)


@dataclass(frozen=True)
class Seed(Spec):
    """The seed of random numbers; a generator of them stays where it is."""

    def read(self, value: Any, scope: Scope) -> Any:
        return (integer(0, 2**64) | NOTHING).read(value, scope)

    def write(self, value: Any, writer: Writer) -> Any:
        return value if isinstance(value, int | np.integer) else None


@dataclass(frozen=True)
class Names(Spec):
    """The names of features: an array of text."""

    symbol: str = "d"

    def read(self, value: Any, scope: Scope) -> Any:
        if not isinstance(value, list) or len(value) != scope.get(self.symbol, len(value)):
            raise ValueError("are not one for each feature")
        return np.array([Text().read(name, scope) for name in value], dtype=object)

    def write(self, value: Any, writer: Writer) -> Any:
        return list(value)


@dataclass(frozen=True)
class OrElse(Spec):
    """A value that may be code, which no file holds; it has something else in its place."""

    of: Spec
    instead: Callable[[Any], Any]

    def read(self, value: Any, scope: Scope) -> Any:
        return self.of.read(value, scope)

    def write(self, value: Any, writer: Writer) -> Any:
        written = self.of.write(value, writer)
        try:
            self.of.read(written, {})
        except ValueError:
            return self.instead(value)
        return written if writer.why_not(written) is None else self.instead(value)


@dataclass(frozen=True)
class Converted(Spec):
    """A value that a function turns into what the file holds."""

    of: Spec
    convert: Callable[[Any], Any]

    def read(self, value: Any, scope: Scope) -> Any:
        return self.of.read(value, scope)

    def write(self, value: Any, writer: Writer) -> Any:
        return None if value is None else writer.once(value, self.convert)


# --- classes -------------------------------------------------------------------------------------


def estimator_state(value: Any) -> Fields:
    """Return parameters and attributes of an estimator."""
    params = value.get_params(deep=False) if hasattr(value, "get_params") else {}
    return {**vars(value), **params}


def build_estimator(kind: Any, fields: Fields) -> Any:
    """Make an object of its parameters, and give it what it has learnt."""
    built = kind(**{name: v for name, v in fields.items() if not is_learnt(name)})
    for name, value in fields.items():
        if is_learnt(name):
            setattr(built, name, value)
    return built


def _cost(fields: Fields, scope: Scope, parts: Cost) -> Cost:
    """Return the cost of the parts, and of one operation for each number."""
    n = sum(v.size for v in _arrays(fields.values()))
    return parts.plus(Cost(0, n, 0, 0))


@dataclass(frozen=True)
class Schema:
    """What a file may hold of a class, and how it is built of that."""

    #: Module and name of the class.
    target: str
    fields: Mapping[str, Spec]
    #: Raises a ValueError where fields that are right by themselves do not fit each other.
    check: Callable[[Fields, Scope], None] = lambda fields, scope: None
    cost: Callable[[Fields, Scope, Cost], Cost] = _cost
    state: Callable[[Any], Fields] = estimator_state
    build: Callable[[Any, Fields], Any] = build_estimator

    def read(self, kind: str, fields: Fields, scope: Scope) -> Fields:
        """Return checked fields; those of `fit` are all there, or none of them."""
        unknown = fields.keys() - self.fields.keys()
        if unknown:
            raise ValueError(f"a {kind} has no {min(unknown)[:80]!r}")
        is_fitted = any(map(is_learnt, fields))
        found = {}
        for name, spec in self.fields.items():
            if name in fields:
                try:
                    found[name] = spec.read(fields[name], scope)
                except ValueError as error:
                    raise ValueError(f"{name} of {kind} {error}") from None
            elif is_learnt(name) and is_fitted and not spec.optional:
                raise ValueError(f"{name} of {kind} is missing")
        self.check(found, scope)
        return found


#: All schemas by kind; `dkae.persistence.schemas` fills it.
SCHEMAS: dict[str, Schema] = {}


def is_learnt(name: str) -> bool:
    """Return whether a field is an attribute of `fit`, and not a parameter."""
    return name.endswith("_") or name.startswith("_")


@cache
def resolve(kind: str) -> Any:
    """Return the class of a kind; what is imported stands in the table, never in a file."""
    module, name = SCHEMAS[kind].target.split(":")
    return getattr(importlib.import_module(module), name)


def kind_of(value: Any) -> str | None:
    """Return the kind of an object, None if no file holds such; subclasses may differ."""
    name = f":{type(value).__name__}"
    found = (k for k, s in SCHEMAS.items() if s.target.endswith(name) and is_a(value, k))
    return next(found, None)


def is_a(value: Any, kind: str) -> bool:
    """Return whether an object is of a kind."""
    name = SCHEMAS[kind].target.split(":")[1]
    return type(value).__name__ == name and type(value) is resolve(kind)


class Writer:
    """Turns a model into JSON and tensors, without the objects `left_out`."""

    def __init__(self, left_out: Iterable[Any] = ()) -> None:
        self.left_out = [value for value in left_out if value is not None]
        self.packer = Packer(self._describe)
        self._converted: dict[int, tuple[Any, Any]] = {}

    def once(self, value: Any, convert: Callable[[Any], Any]) -> Any:
        """Convert an object once: what was one thing stays one."""
        return self._converted.setdefault(id(value), (value, convert(value)))[1]

    def why_not(self, value: Any) -> str | None:
        """Return why no file can hold a value; None if one can."""
        try:
            Writer(self.left_out).packer.pack(value)
        except NotPlainError as error:
            return str(error)
        return None

    def _describe(self, value: Any) -> tuple[str, Fields]:
        kind = kind_of(value)
        if kind is None:
            raise NotPlainError(f"it is a {type(value).__name__}")
        schema = SCHEMAS[kind]
        state = schema.state(value)
        _check_declared(kind, schema, state, value)
        fields = {
            name: self._without(spec.write(state[name], self))
            for name, spec in schema.fields.items()
            if name in state
        }
        try:
            schema.read(kind, fields, new_scope(2**53))
        except ValueError as error:
            raise NotPlainError(str(error)) from None
        return kind, fields

    def _without(self, value: Any) -> Any:
        return None if any(value is other for other in self.left_out) else value


def _check_declared(kind: str, schema: Schema, state: Fields, value: Any) -> None:
    """Raise an error if an object has a parameter or attribute that would be lost in silence."""
    private = {name for name in state if name.startswith("_")}
    for name in sorted(state.keys() - schema.fields.keys() - NEVER - private):
        if not _is_default(type(value), name, state[name]):
            raise NotPlainError(f"a {kind} with {name}={_short(state[name])} has no place in files")


def _is_default(kind: Any, name: str, value: Any) -> bool:
    """Return whether a parameter has its default, as one of a newer scikit-learn may have."""
    import inspect

    parameter = inspect.signature(kind).parameters.get(name)
    return parameter is not None and (parameter.default is value or parameter.default == value)


class Reader:
    """Builds what a file describes, and adds up what using it takes."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.n_numbers = sum(t.numel() for t in tensors.values())
        self.unpacker = Unpacker(tensors, self._build)
        self._costs: dict[int, Cost] = {}

    def cost(self, value: Any) -> Cost:
        """Return what using a value takes, as often as it uses each of its parts."""
        if id(value) in self._costs:
            return self._costs[id(value)]
        total = Cost()
        if isinstance(value, list | tuple | dict):
            for part in value.values() if isinstance(value, dict) else value:
                total = total.plus(self.cost(part))
        return total

    def _build(self, kind: str, fields: Fields) -> Any:
        if kind not in SCHEMAS:
            raise ValueError(f"{kind[:80]!r} is no kind of object that this version knows")
        schema, scope = SCHEMAS[kind], new_scope(self.n_numbers)
        checked = schema.read(kind, fields, scope)
        built = schema.build(resolve(kind), checked)
        # What a fitted object was made of takes nothing any more.
        learnt = {name: v for name, v in checked.items() if is_learnt(name)}
        cost = schema.cost(checked, scope, self.cost(learnt or checked))
        check_cost(cost, self.n_numbers)
        self._costs[id(built)] = cost
        return built


def new_scope(n_numbers: int) -> Scope:
    """Return the scope of an object in a file of so many numbers."""
    return {"widest": MAX_UNEXPLAINED + 4 * n_numbers}


def _arrays(values: Iterable[Any]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield all arrays within values."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, Tensor):
            yield value.detach().cpu().numpy()
        elif isinstance(value, dict | list | tuple):
            yield from _arrays(value.values() if isinstance(value, dict) else value)


def _short(value: Any) -> str:
    """Return a value in a few words: never a long text of the file."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
