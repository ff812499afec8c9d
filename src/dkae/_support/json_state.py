"""Nested values as JSON and tensors: what a file can hold, and nothing that could be executed.

Finite numbers, text, None and lists stand for themselves. Everything else is an object with one
key, which names its type, so that a value comes back as what it was:

======================================  ===========================================================
``{"dict": [[key, value], …]}``         a dict; keys are text or numbers
``{"tuple": […]}``                      a tuple
``{"float": "nan"}``                    a float that JSON cannot hold: nan, inf, -inf
``{"tensor": name}``, ``{"array": …}``  a tensor of the file, or an array made of it
``{"transposed": …}``                   the transpose of one of these: so it lay in memory
``{"object": [kind, fields]}``          an object that the caller knows how to build
``{"again": i}``                        the i-th of these objects, which stands in several places
======================================  ===========================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: A kernel made of kernels is three levels above them, and a sum of many may be a deep one.
MAX_DEPTH = 200
_FLOATS = ("nan", "inf", "-inf")

Fields = dict[str, Any]


class NotPlainError(ValueError):
    """A value cannot stand in a file."""


def _no_object(value: Any) -> tuple[str, Fields]:
    raise NotPlainError(f"it is a {type(value).__name__}")


def _no_kind(kind: str, fields: Fields) -> Any:
    raise ValueError(f"objects such as {kind[:80]!r} cannot stand here")


class Packer:
    """Turns values into JSON and tensors; `describe` returns kind and fields of an object."""

    def __init__(self, describe: Callable[[Any], tuple[str, Fields]] = _no_object) -> None:
        self.describe = describe
        self.tensors: dict[str, Tensor] = {}
        #: Objects and their numbers; kept, so that no id is used twice.
        self.seen: dict[int, tuple[int, Any]] = {}

    def pack(self, value: Any, name: str = "", depth: int = 0) -> Any:
        """Return a value as JSON; `name` is its place in the whole."""
        if depth > MAX_DEPTH:
            raise NotPlainError(f"{name[:80]}… is nested deeper than {MAX_DEPTH}")
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, str):
            return _unicode(value, name)
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, Tensor | np.ndarray):
            return self._pack_array(value, name)
        if isinstance(value, list | tuple):
            items = [self.pack(v, f"{name}.{i}", depth + 1) for i, v in enumerate(value)]
            return items if isinstance(value, list) else {"tuple": items}
        if isinstance(value, Mapping):
            return {"dict": self._pack_items(value, name, depth)}
        return self._pack_object(value, name, depth + 1)

    def _pack_items(self, value: Mapping[Any, Any], name: str, depth: int) -> list[Any]:
        if not all(isinstance(key, str | int | float) for key in value):
            raise NotPlainError(f"{name or 'it'} has keys that are neither text nor numbers")
        return [
            [self.pack(k, name, depth), self.pack(v, f"{name}.{k}", depth + 1)]
            for k, v in value.items()
        ]

    def _pack_array(self, value: Any, name: str) -> Any:
        kind = "tensor" if isinstance(value, Tensor) else "array"
        # Columns one after the other stay so: else products differ in the last digit.
        strides = value.stride() if isinstance(value, Tensor) else value.strides
        is_transposed = value.ndim > 1 and abs(strides[0]) < abs(strides[-1])
        tensor = _as_tensor(_transposed(value) if is_transposed else value, name)
        key = _unicode(name.lstrip(".") or "value", name)
        while key in self.tensors:  # 1 and "1" are two keys with one name
            key += "'"
        self.tensors[key] = tensor
        return {"transposed": {kind: key}} if is_transposed else {kind: key}

    def _pack_object(self, value: Any, name: str, depth: int) -> Any:
        if id(value) in self.seen:
            return {"again": self.seen[id(value)][0]}
        try:
            kind, fields = self.describe(value)
        except NotPlainError as error:
            raise NotPlainError(f"{name.lstrip('.')}: {error}" if name else str(error)) from None
        packed = {n: self.pack(v, f"{name}.{n}", depth) for n, v in fields.items()}
        self.seen[id(value)] = (len(self.seen), value)
        return {"object": [kind, packed]}


class Unpacker:
    """Turns JSON and tensors into values again; `build` makes an object of kind and fields.

    Whatever does not fit is a ValueError. Each tensor is used once.
    """

    def __init__(
        self, tensors: Mapping[str, Tensor], build: Callable[[str, Fields], Any] = _no_kind
    ) -> None:
        self.tensors = dict(tensors)
        self.build = build
        self.built: list[Any] = []

    def unpack_all(self, packed: Any) -> Any:
        """Return the value that all the tensors belong to."""
        value = self.unpack(packed)
        if self.tensors:
            raise ValueError(f"the tensor {min(self.tensors)[:80]!r} belongs to nothing")
        return value

    def unpack(self, packed: Any, depth: int = 0) -> Any:
        """Return one value."""
        if depth > MAX_DEPTH:
            raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
        if isinstance(packed, list):
            return [self.unpack(item, depth + 1) for item in packed]
        if isinstance(packed, str):
            return _unicode(packed, "a text")
        if not isinstance(packed, dict):
            return packed
        if len(packed) == 1:
            ((kind, content),) = packed.items()
            expected, method = _KINDS.get(kind, (type(None), None))
            if method is not None and type(content) is expected:
                return getattr(self, method)(content, depth + 1)
        raise ValueError("a value is of no kind that a file can hold")

    def _dict(self, content: list[Any], depth: int) -> dict[Any, Any]:
        pairs = [self.unpack(pair, depth) for pair in content]
        if not all(
            isinstance(p, list) and len(p) == 2 and isinstance(p[0], str | int | float)
            for p in pairs
        ):
            raise ValueError("a dict is not made of keys and values")
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ValueError("a dict has a key twice")
        return found

    def _tuple(self, content: list[Any], depth: int) -> tuple[Any, ...]:
        return tuple(self.unpack(item, depth) for item in content)

    def _float(self, content: str, depth: int) -> float:
        if content not in _FLOATS:
            raise ValueError("a number is not one")
        return float(content)

    def _tensor(self, content: str, depth: int) -> Tensor:
        if content not in self.tensors:
            raise ValueError(f"the tensor {content[:80]!r} is missing, or stands in two places")
        return self.tensors.pop(content)

    def _array(self, content: str, depth: int) -> Any:
        tensor = self._tensor(content, depth)
        try:
            return tensor.numpy()
        except TypeError:  # such as bfloat16
            raise ValueError(f"the array {content[:80]!r} has no type of NumPy") from None

    def _transposed(self, content: dict[str, Any], depth: int) -> Any:
        value = self.unpack(content, depth)
        if not isinstance(value, Tensor | np.ndarray):
            raise ValueError("only arrays can be transposed")
        return _transposed(value)

    def _again(self, content: int, depth: int) -> Any:
        if not 0 <= content < len(self.built):
            raise ValueError("an object stands in two places, but in none of them whole")
        return self.built[content]

    def _object(self, content: list[Any], depth: int) -> Any:
        if len(content) != 2 or not isinstance(content[0], str) or type(content[1]) is not dict:
            raise ValueError("an object has no kind, or no fields")
        kind, packed = content
        fields = {_unicode(name, kind): self.unpack(v, depth) for name, v in packed.items()}
        built = self.build(kind, fields)
        self.built.append(built)
        return built


#: For each key of an object, the type of its content and the method that reads it.
_KINDS: dict[str, tuple[type, str]] = {
    "dict": (list, "_dict"),
    "tuple": (list, "_tuple"),
    "float": (str, "_float"),
    "tensor": (str, "_tensor"),
    "array": (str, "_array"),
    "transposed": (dict, "_transposed"),
    "again": (int, "_again"),
    "object": (list, "_object"),
}


def pack(value: Any) -> tuple[Any, dict[str, Tensor]]:
    """Return a value without objects as JSON and tensors."""
    packer = Packer()
    return packer.pack(value), packer.tensors


def unpack(packed: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the value that `pack` took."""
    return Unpacker(tensors).unpack_all(packed)


def check_form(found: Any, expected: Any, name: str) -> None:
    """Raise a ValueError unless a value has the types, keys and shapes of another one."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        others = sorted(map(str, found.keys() ^ expected.keys()))
        if others:
            raise ValueError(f"{name} has missing or surplus entries: {', '.join(others)[:200]}")
        for key, value in expected.items():
            check_form(found[key], value, f"{name} {key}")
        return
    if isinstance(expected, list | tuple) and type(found) is type(expected):
        if len(found) != len(expected):
            raise ValueError(f"{name} has {len(found)} entries, expected {len(expected)}")
        for i, value in enumerate(expected):
            check_form(found[i], value, f"{name} {i}")
        return
    if isinstance(expected, Tensor) and isinstance(found, Tensor):
        if found.dtype is not expected.dtype or found.shape != expected.shape:
            raise ValueError(
                f"{name} is {tuple(found.shape)} of {found.dtype}, expected "
                f"{tuple(expected.shape)} of {expected.dtype}"
            )
        return
    are_numbers = all(type(value) in (int, float) for value in (found, expected))
    if type(found) is not type(expected) and not are_numbers:
        raise ValueError(f"{name} is a {type(found).__name__}, not a {type(expected).__name__}")


def _unicode(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlainError(f"{name[:80] or 'it'} is or has text that is not Unicode") from None
    return text


def _transposed(value: Any) -> Any:
    return value.permute(*range(value.ndim)[::-1]) if isinstance(value, Tensor) else value.T


def _as_tensor(array: Any, name: str) -> Tensor:
    if isinstance(array, Tensor):
        return array
    if np.ma.isMaskedArray(array):
        raise NotPlainError(f"{name} is a masked array")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        return torch.from_numpy(np.require(native, requirements=["C", "W"]))
    except TypeError as error:  # text, objects, structures
        raise NotPlainError(f"{name} is an array of {array.dtype}") from error
