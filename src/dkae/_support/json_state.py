"""Nested values as JSON and tensors: what a file can hold, and nothing that could be executed.

Finite numbers, text, None and lists stand for themselves. Everything else is an object with one
key, which names its type, so that a value comes back as what it was:

======================================  ===========================================================
``{"dict": [[key, value], …]}``         a dict; keys are text or numbers
``{"tuple": […]}``                      a tuple
``{"float": "nan"}``                    a float that JSON cannot hold: nan, inf, -inf
``{"tensor": name}``, ``{"array": …}``  a tensor of the file, or an array made of it
``{"transposed": …}``                   the transpose of one of these: so it lay in memory
``{"object": [kind, fields]}``          an object that a subclass of `Unpacker` knows how to build
``{"again": i}``                        the i-th of these objects, which stands in several places
======================================  ===========================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

#: A kernel made of kernels is three levels above them, and a sum of many may be a deep one.
MAX_DEPTH = 200

Fields = dict[str, Any]


class NotPlainError(ValueError):
    """A value cannot stand in a file."""


class Packer:
    """Turns values into JSON and tensors; a subclass may describe objects."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        #: Objects and their numbers; kept, so that no id is used twice.
        self._seen: dict[int, tuple[int, Any]] = {}

    def describe(self, value: Any) -> tuple[str, Fields]:
        """Return kind and fields of an object."""
        raise NotPlainError(f"it is a {type(value).__name__}")

    def pack(self, value: Any, name: str = "", depth: int = 0) -> Any:
        """Return a value as JSON; `name` is its place in the whole."""
        if depth > MAX_DEPTH:
            raise NotPlainError(f"{name[:80]}… is nested deeper than {MAX_DEPTH}")
        value = value.item() if isinstance(value, np.generic) else value
        match value:
            case str():
                return _unicode(value, name)
            case None | int():
                return value
            case float():
                return value if math.isfinite(value) else {"float": repr(value)}
            case Tensor() | np.ndarray():
                return self._pack_array(value, name)
            case list() | tuple():
                items = [self.pack(v, f"{name}.{i}", depth + 1) for i, v in enumerate(value)]
                return items if isinstance(value, list) else {"tuple": items}
            case Mapping():
                return {"dict": self._pack_items(value, name, depth + 1)}
        return self._pack_object(value, name, depth + 1)

    def _pack_items(self, value: Mapping[Any, Any], name: str, depth: int) -> list[Any]:
        if not all(isinstance(key, str | int | float) for key in value):
            raise NotPlainError(f"{name or 'it'} has keys that are neither text nor numbers")
        return [
            [self.pack(k, name, depth), self.pack(v, f"{name}.{k}", depth)]
            for k, v in value.items()
        ]

    def _pack_array(self, value: Any, name: str) -> Any:
        kind = "tensor" if isinstance(value, Tensor) else "array"
        # Columns one after the other stay so: else products differ in the last digit.
        strides = value.stride() if isinstance(value, Tensor) else value.strides
        is_transposed = value.ndim > 1 and abs(strides[0]) < abs(strides[-1])
        tensor = _as_tensor(value.swapaxes(0, -1) if is_transposed else value, name)
        key = _unicode(name.lstrip(".") or "value", name)
        while key in self.tensors:  # 1 and "1" are two keys with one name
            key += "'"
        self.tensors[key] = tensor
        return {"transposed": {kind: key}} if is_transposed else {kind: key}

    def _pack_object(self, value: Any, name: str, depth: int) -> Any:
        if id(value) in self._seen:
            return {"again": self._seen[id(value)][0]}
        try:
            kind, fields = self.describe(value)
        except NotPlainError as error:
            raise NotPlainError(f"{name.lstrip('.')}: {error}" if name else str(error)) from None
        packed = {n: self.pack(v, f"{name}.{n}", depth) for n, v in fields.items()}
        self._seen[id(value)] = (len(self._seen), value)
        return {"object": [kind, packed]}


class Unpacker:
    """Turns JSON and tensors into values again; a subclass may build objects.

    Raises a ValueError for everything else. Each tensor is used once.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self.tensors = dict(tensors)
        self._built: list[Any] = []

    def build(self, kind: str, fields: Fields) -> Any:
        """Return the object that `Packer.describe` has described."""
        raise ValueError(f"objects such as {kind[:80]!r} cannot stand here")

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
        match packed:
            case list():
                return [self.unpack(item, depth + 1) for item in packed]
            case str():
                return _unicode(packed, "a text")
            case dict():
                return self._typed(packed, depth + 1)
        return packed

    def _typed(self, packed: Fields, depth: int) -> Any:
        """Return the value that an object with one key stands for."""
        match list(packed.items()):
            case [("dict", list() as pairs)]:
                return _dict([self.unpack(pair, depth) for pair in pairs])
            case [("tuple", list() as items)]:
                return tuple(self.unpack(item, depth) for item in items)
            case [("float", "nan" | "inf" | "-inf" as number)]:
                return float(number)
            case [("tensor", str() as name)]:
                return self._take(name)
            case [("array", str() as name)]:
                return _as_array(self._take(name), name)
            case [("transposed", {"tensor": str()} | {"array": str()} as array)]:
                return self.unpack(array, depth).swapaxes(0, -1)
            case [("again", int() as i)] if 0 <= i < len(self._built):
                return self._built[i]
            case [("object", [str() as kind, dict() as packed_fields])]:
                fields = {
                    _unicode(name, kind): self.unpack(v, depth) for name, v in packed_fields.items()
                }
                self._built.append(self.build(kind, fields))
                return self._built[-1]
        raise ValueError("a value has a type that no file can hold")

    def _take(self, name: str) -> Tensor:
        if name not in self.tensors:
            raise ValueError(f"the tensor {name[:80]!r} is missing, or stands in two places")
        return self.tensors.pop(name)


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
    elif isinstance(expected, list | tuple) and type(found) is type(expected):
        if len(found) != len(expected):
            raise ValueError(f"{name} has {len(found)} entries, expected {len(expected)}")
        for i, value in enumerate(expected):
            check_form(found[i], value, f"{name} {i}")
    elif isinstance(expected, Tensor) and isinstance(found, Tensor):
        if found.dtype is not expected.dtype or found.shape != expected.shape:
            raise ValueError(
                f"{name} is {tuple(found.shape)} of {found.dtype}, expected "
                f"{tuple(expected.shape)} of {expected.dtype}"
            )
    elif type(found) is not type(expected) and not {type(found), type(expected)} <= {int, float}:
        raise ValueError(f"{name} is a {type(found).__name__}, not a {type(expected).__name__}")


def _dict(pairs: list[Any]) -> dict[Any, Any]:
    try:
        found = dict(pairs)
    except (TypeError, ValueError):
        raise ValueError("a dict is not made of keys and values") from None
    if len(found) != len(pairs) or not all(isinstance(key, str | int | float) for key in found):
        raise ValueError("a dict has a key twice, or one that is neither text nor a number")
    return found


def _unicode(text: str, name: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotPlainError(f"{name[:80] or 'it'} is or has text that is not Unicode") from None
    return text


def _as_array(tensor: Tensor, name: str) -> np.ndarray[Any, Any]:
    try:
        return tensor.numpy()
    except TypeError:  # such as bfloat16
        raise ValueError(f"the array {name[:80]!r} has no type of NumPy") from None


def _as_tensor(array: Any, name: str) -> Tensor:
    if isinstance(array, Tensor):
        return array
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        return torch.from_numpy(np.require(native, requirements=["C", "W"]))
    except TypeError as error:  # text, objects, structures
        raise NotPlainError(f"{name} is an array of {array.dtype}") from error
