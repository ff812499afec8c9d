"""The language of schemas: what a file may hold of a class, and what using it takes.

A `Spec` says what one value may be. A `Schema` has one for every parameter and attribute of a
class, in the order in which they are read. Sizes are symbols: the first array that has an ``"n"``
fixes it for its object. Nothing that is not declared is written or built.
"""

from __future__ import annotations

import importlib
import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from dkae._support.json_state import Fields, NotPlainError, Packer, Unpacker

#: Sizes by symbol. ``"widest"`` is the largest number of features that the file explains.
Scope = dict[str, int]

#: Parameters of the machine and of the call, never of a file.
NEVER = frozenset(
    {"cache_bytes", "callbacks", "copy", "copy_X", "device", "lower", "memory", "n_jobs", "verbose"}
)
#: A row may have so many features whatever a file holds.
MAX_UNEXPLAINED = 2**22
#: Rows whose use is counted.
N_ROWS = 128


class Cost(NamedTuple):
    """What using an object on `N_ROWS` rows takes."""

    #: Kernels that are evaluated.
    kernels: float = 0
    #: Multiply-adds.
    work: float = 0
    #: Intermediate numbers for each row.
    memory: float = 0

    def plus(self, other: Cost) -> Cost:
        """Return the sum, entry by entry."""
        return Cost(*(a + b for a, b in zip(self, other, strict=True)))

    def against(self, rows: Any) -> Cost:
        """Return what a kernel takes that is evaluated between new rows and these."""
        work = self.work * (1 + len(rows) / N_ROWS) + N_ROWS * rows.size * self.kernels
        return self._replace(work=work)


def check_cost(cost: Cost, n_numbers: int) -> None:
    """Raise an error if using a model takes more than a file of so many numbers explains."""
    limits = Cost(1000, 2**35 + 2**13 * n_numbers, 2 * MAX_UNEXPLAINED + n_numbers)
    for name, found, limit in zip(Cost._fields, cost, limits, strict=True):
        if found > limit:
            raise ValueError(
                f"using it takes {found:.3g} ({name}), more than its {n_numbers:,} numbers explain"
            )


# --- what a value may be -------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """What a value may be."""

    #: Returns the value as its object takes it; raises a ValueError if it does not fit.
    read: Callable[[Any, Scope], Any]
    #: Whether the field may be missing.
    is_optional: bool = False

    def __or__(self, other: Spec) -> Spec:
        def read(value: Any, scope: Scope) -> Any:
            trial = dict(scope)
            try:
                found = self.read(value, trial)
            except ValueError as error:
                try:
                    return other.read(value, scope)
                except ValueError:
                    raise error from None
            scope.update(trial)
            return found

        return Spec(read)


def _checked(is_right: Callable[[Any, Scope], bool], expected: str) -> Spec:
    """Return the spec of the values that pass a test."""

    def read(value: Any, scope: Scope) -> Any:
        if not is_right(value, scope):
            raise ValueError(f"is {_short(value)}, expected {expected}"[:300])
        return value

    return Spec(read)


def one_of(*values: Any) -> Spec:
    """Return the spec of one of a few values."""
    return _checked(
        lambda found, scope: any(type(found) is type(v) and found == v for v in values),
        f"one of {values}",
    )


def text(longest: int = 1000) -> Spec:
    """Return the spec of a text."""
    return _checked(lambda v, scope: isinstance(v, str) and len(v) <= longest, "a text")


def number(
    low: float = -math.inf, high: float = math.inf, *, may_be_infinite: bool = False
) -> Spec:
    """Return the spec of a number between two bounds."""

    def is_right(value: Any, scope: Scope) -> bool:
        is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        return is_number and (may_be_infinite or (low <= value <= high and math.isfinite(value)))

    return _checked(is_right, f"a number from {low} to {high}")


def integer(low: int = 0, high: int | str = 2**53) -> Spec:
    """Return the spec of a whole number; `high` may be a symbol."""

    def is_right(value: Any, scope: Scope) -> bool:
        is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return is_number and low <= value <= (scope[high] if isinstance(high, str) else high)

    return _checked(is_right, f"a whole number from {low} to {high}")


def size(symbol: str) -> Spec:
    """Return the spec of a number of features, components or rows, which fixes a symbol."""

    def read(value: Any, scope: Scope) -> Any:
        integer(0, "widest").read(value, scope)
        if scope.setdefault(symbol, int(value)) != value:
            raise ValueError(f"is {value}, expected {scope[symbol]}")
        return value

    return Spec(read)


def array(
    *shape: str | int,
    kinds: str = "f",
    low: float = -math.inf,
    below: float | str = math.inf,
    may_be_infinite: bool = False,
    is_tensor: bool = False,
) -> Spec:
    """Return the spec of an array of a shape in symbols; ``"?"`` is any length, () any shape.

    `kinds` are NumPy's letters for kinds of numbers; entries are at least `low`, and do not reach
    `below`, a number or a symbol.
    """

    def read(value: Any, scope: Scope) -> Any:
        if not isinstance(value, Tensor if is_tensor else np.ndarray):
            raise ValueError(f"is {_short(value)}, expected an array")
        if shape:
            _check_shape(shape, tuple(value.shape), scope)
        found: Any = value if isinstance(value, np.ndarray) else _numbers(value)
        if found.dtype.kind not in kinds:
            raise ValueError(f"has entries of type {found.dtype}")
        if found.size and not may_be_infinite:
            high = scope[below] if isinstance(below, str) else below
            if not np.isfinite(found).all():
                raise ValueError("has NaN or infinite entries")
            if not low <= found.min() <= found.max() < high:
                raise ValueError(f"has entries outside of [{low}, {high})")
        return value

    return Spec(read)


def _numbers(tensor: Tensor) -> Any:
    try:
        return tensor.detach().cpu().numpy()
    except TypeError:
        raise ValueError(f"has entries of type {tensor.dtype}") from None


def _check_shape(shape: tuple[str | int, ...], found: tuple[int, ...], scope: Scope) -> None:
    is_right = len(found) == len(shape) and all(
        name == "?" or n == (name if isinstance(name, int) else scope.setdefault(name, n))
        for n, name in zip(found, shape, strict=True)
    )
    if not is_right:
        sizes = tuple(scope.get(str(name), name) for name in shape)
        raise ValueError(f"has the shape {found}, expected {sizes}")


def several(of: Spec, fewest: int = 0, most: int = 2**20) -> Spec:
    """Return the spec of a list or tuple of values of one kind."""

    def read(value: Any, scope: Scope) -> Any:
        if not isinstance(value, list | tuple) or not fewest <= len(value) <= most:
            raise ValueError(f"is {_short(value)}, expected {fewest} or more values")
        return type(value)(of.read(item, scope) for item in value)

    return Spec(read)


def mapping(of: Spec) -> Spec:
    """Return the spec of a dict of text to values of one kind."""

    def read(value: Any, scope: Scope) -> Any:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ValueError(f"is {_short(value)}, expected a dict")
        return {key: of.read(item, scope) for key, item in value.items()}

    return Spec(read)


def instance(*kinds: str) -> Spec:
    """Return the spec of an object of one of these kinds."""
    return _checked(lambda v, scope: kind_of(v) in kinds, f"one of {', '.join(kinds)}")


def optional(of: Spec) -> Spec:
    """Return the spec of a field that may be missing."""
    return replace(of, is_optional=True)


def _read_names(value: Any, scope: Scope) -> Any:
    if not isinstance(value, list) or len(value) != scope.get("d", len(value)):
        raise ValueError("are not one for each feature")
    return np.array([text().read(name, scope) for name in value], dtype=object)


FEATURE_NAMES = optional(Spec(_read_names))
REAL, TEXT, FLAG, NOTHING = number(), text(), one_of(True, False), one_of(None)
#: A parameter that is checked where it is used.
PLAIN = REAL | TEXT | FLAG | NOTHING | several(REAL | TEXT) | array()


# --- classes -------------------------------------------------------------------------------------


def estimator_state(value: Any, writer: Writer) -> Fields:
    """Return parameters and attributes of an estimator; generators of random numbers stay."""
    state = {**vars(value), **value.get_params(deep=False)}
    if "random_state" in state and not isinstance(state["random_state"], int | np.integer):
        state["random_state"] = None
    if "feature_names_in_" in state:
        state["feature_names_in_"] = list(state["feature_names_in_"])
    return state


def plain_state(value: Any, writer: Writer) -> Fields:
    """Return the attributes of an object that is made of them."""
    return dict(vars(value))


def build_estimator(kind: Any, fields: Fields) -> Any:
    """Make an object of its parameters, and give it what it has learnt."""
    built = kind(**{name: v for name, v in fields.items() if not is_learnt(name)})
    for name, value in fields.items():
        if is_learnt(name):
            setattr(built, name, value)
    return built


def build_of_fields(kind: Any, fields: Fields) -> Any:
    """Make an object that is made of its fields."""
    return kind(**fields)


def default_cost(fields: Fields, parts: Cost) -> Cost:
    """Return the cost of the parts, and of one operation for each number and row."""
    return parts.plus(Cost(work=N_ROWS * sum(_sizes(fields))))


@dataclass(frozen=True, eq=False)
class Schema:
    """What a file may hold of a class, and how it is built of that."""

    #: Module and name of the class.
    target: str
    #: Parameters of the constructor that are not here are `PLAIN`.
    declared: Mapping[str, Spec]
    #: Raises a ValueError where fields that are right by themselves do not fit each other.
    check: Callable[[Fields, Scope], None] = lambda fields, scope: None
    cost: Callable[[Fields, Cost], Cost] = default_cost
    state: Callable[[Any, Writer], Fields] = estimator_state
    build: Callable[[Any, Fields], Any] = build_estimator

    @cached_property
    def target_class(self) -> Any:
        """The class; a file never names a module to import."""
        module, name = self.target.split(":")
        return getattr(importlib.import_module(module), name)

    @cached_property
    def fields(self) -> dict[str, Spec]:
        """All fields, in the order in which they are read."""
        is_estimator = hasattr(self.target_class, "get_params")
        parameters = inspect.signature(self.target_class).parameters if is_estimator else ()
        return {**dict.fromkeys((p for p in parameters if p not in NEVER), PLAIN), **self.declared}

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
            elif is_learnt(name) and is_fitted and not spec.is_optional:
                raise ValueError(f"{name} of {kind} is missing")
        self.check(found, scope)
        return found


#: All schemas by kind, the name of a class; `dkae.persistence.schemas` fills it.
SCHEMAS: dict[str, Schema] = {}


def is_learnt(name: str) -> bool:
    """Return whether a field is an attribute of `fit`, and not a parameter."""
    return name.endswith("_") or name.startswith("_")


def kind_of(value: Any) -> str | None:
    """Return the kind of an object, None if no file holds such; subclasses may differ."""
    name = type(value).__name__
    return name if name in SCHEMAS and type(value) is SCHEMAS[name].target_class else None


class Writer:
    """Turns a model into JSON and tensors, without the objects `left_out`."""

    def __init__(self, left_out: Iterable[Any] = ()) -> None:
        self._left_out = [value for value in left_out if value is not None]
        self.packer = Packer(self._describe)

    def leaves_out(self, value: Any) -> bool:
        """Return whether a value is one of those that are left out."""
        return any(value is other for other in self._left_out)

    def why_not(self, value: Any) -> str | None:
        """Return why no file can hold a value; None if one can."""
        writer = Writer(self._left_out)
        try:
            packed = writer.packer.pack(value)
            Reader(writer.packer.tensors).unpacker.unpack(packed)
        except ValueError as error:
            return str(error)
        return None

    def _describe(self, value: Any) -> tuple[str, Fields]:
        from dkae.kernels.forests import ArrayForest

        if kind_of(value) is None and hasattr(value, "estimators_"):
            value = ArrayForest.of(value)
        kind = kind_of(value)
        if kind is None:
            raise NotPlainError(f"it is a {type(value).__name__}")
        schema = SCHEMAS[kind]
        state = schema.state(value, self)
        lost = state.keys() - schema.fields.keys() - NEVER
        if found := [name for name in sorted(lost) if not name.startswith("_")]:
            what = f"{found[0]}={_short(state[found[0]])}"
            raise NotPlainError(f"a {kind} with {what} has no place in files")
        return kind, {name: state[name] for name in schema.fields if name in state}


class Reader:
    """Builds what a file describes, and adds up what using it takes."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.n_numbers = sum(t.numel() for t in tensors.values())
        self.unpacker = Unpacker(tensors, self._build)
        self._costs: dict[int, Cost] = {}

    def _cost(self, value: Any) -> Cost:
        """Return what using a value takes, as often as it uses each of its parts."""
        if id(value) in self._costs:
            return self._costs[id(value)]
        total = Cost()
        if isinstance(value, list | tuple | dict):
            for part in value.values() if isinstance(value, dict) else value:
                total = total.plus(self._cost(part))
        return total

    def _build(self, kind: str, fields: Fields) -> Any:
        if kind not in SCHEMAS:
            raise ValueError(f"{kind[:80]!r} is not a kind of object that this version knows")
        schema, scope = SCHEMAS[kind], {"widest": MAX_UNEXPLAINED + 4 * self.n_numbers}
        checked = schema.read(kind, fields, scope)
        # What a fitted object was made of takes nothing any more.
        learnt = {name: v for name, v in checked.items() if is_learnt(name)}
        cost = schema.cost(checked, self._cost(learnt or checked))
        check_cost(cost, self.n_numbers)
        built = schema.build(schema.target_class, checked)
        self._costs[id(built)] = cost
        return built


def _sizes(value: Any) -> Iterator[int]:
    """Yield the sizes of all arrays within a value."""
    if isinstance(value, Tensor | np.ndarray):
        yield value.numel() if isinstance(value, Tensor) else value.size
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _sizes(part)


def _short(value: Any) -> str:
    """Return a value in a few words: never a long text of the file."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)[:80]
    return f"a {type(value).__name__}"
