"""Nested values as JSON and tensors: what a file can hold, and nothing that could be executed.

Numbers, text, None and lists stand for themselves. Everything else is an object with one key, which
says what it is, so that a value comes back as what it was:

=====================================  ============================================================
``{"dict": …}``                        a dict with text as keys
``{"map": …}``                         a dict with other keys, as a list of pairs
``{"tuple": …}``                       a tuple
``{"float": …}``                       a float that JSON cannot hold: "nan", "inf", "-inf"
``{"tensor": …}``, ``{"array": …}``    the name of a tensor, of which an array is made
``{"transposed": …}``                  the transpose of one of these: so it lay in memory
``{"object": [kind, state]}``          an object that a registry knows by the name of its kind
``{"again": i}``                       the i-th of these objects, which stands in several places
=====================================  ============================================================
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dkae._support.container import is_unicode

#: A kernel made of kernels is three levels above them, and a sum of many may be a deep one.
MAX_DEPTH = 200
#: A model is made of a dozen, a sum of many kernels of hundreds.
MAX_OBJECTS = 1000

State = dict[str, Any]


class NotPlainError(TypeError):
    """A value cannot stand in a file."""


@dataclass(frozen=True)
class Codec:
    """How objects of a class, and of no subclass of it, become plain values and come back."""

    of: type
    to_state: Callable[[Any], State]
    #: Whatever does not fit is a ValueError.
    from_state: Callable[[State], Any]


class Registry:
    """The kinds of objects that a file may name."""

    def __init__(self, codecs: Mapping[str, Codec]) -> None:
        self.codecs = dict(codecs)
        self.names = {codec.of: name for name, codec in self.codecs.items()}


NOTHING = Registry({})


def encode(
    value: Any, registry: Registry = NOTHING, without: Iterable[Any] = ()
) -> tuple[Any, dict[str, Tensor]]:
    """Return a value as JSON can hold it, and its tensors by name; objects `without` are None."""
    encoder = _Encoder(registry, without)
    return encoder.encode(value, "", 0), encoder.tensors


def decode(encoded: Any, tensors: Mapping[str, Tensor], registry: Registry = NOTHING) -> Any:
    """Return the value again; whatever does not fit is a ValueError."""
    decoder = _Decoder(registry, tensors)
    value = decoder.decode(encoded, 0)
    if len(decoder.used) != len(tensors):
        surplus = min(tensors.keys() - decoder.used)
        raise ValueError(f"the tensor {surplus[:80]!r} belongs to nothing")
    return value


class _Encoder:
    def __init__(self, registry: Registry, without: Iterable[Any]) -> None:
        self.registry = registry
        self.without = {id(value) for value in without}
        self.tensors: dict[str, Tensor] = {}
        #: Objects that have been encoded, and their numbers; kept, so that no id is used twice.
        self.seen: dict[int, tuple[int, Any]] = {}

    def encode(self, value: Any, name: str, depth: int) -> Any:
        """Return a value as JSON; `name` says where in the whole it stands."""
        if depth > MAX_DEPTH:  # what `decode` would refuse
            raise NotPlainError(f"{_where(name)[:80]}… is nested deeper than {MAX_DEPTH}")
        if value is None or id(value) in self.without:
            return None
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, str):
            return _checked_text(value, name)
        if isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, Tensor | np.ndarray):
            return self._encode_array(value, name)
        if isinstance(value, list):
            return self._encode_items(value, name, depth + 1)
        if isinstance(value, tuple):
            return {"tuple": self._encode_items(value, name, depth + 1)}
        if isinstance(value, Mapping):
            return self._encode_mapping(value, name, depth + 1)
        return self._encode_object(value, name, depth + 1)

    def _encode_array(self, value: Any, name: str) -> Any:
        kind = "tensor" if isinstance(value, Tensor) else "array"
        # Columns one after the other stay so: else products differ in the last digit.
        strides = value.stride() if kind == "tensor" else value.strides
        if value.ndim > 1 and abs(strides[0]) < abs(strides[-1]):
            return {"transposed": {kind: self._keep(_as_tensor(_transposed(value), name), name)}}
        return {kind: self._keep(_as_tensor(value, name), name)}

    def _encode_items(self, values: Iterable[Any], name: str, depth: int) -> list[Any]:
        return [self.encode(item, f"{name}.{i}", depth) for i, item in enumerate(values)]

    def _encode_dict(self, value: Mapping[str, Any], name: str, depth: int) -> dict[str, Any]:
        return {
            _checked_text(key, name): self.encode(v, f"{name}.{key}", depth)
            for key, v in value.items()
        }

    def _encode_mapping(self, value: Mapping[Any, Any], name: str, depth: int) -> Any:
        if all(isinstance(key, str) for key in value):
            return {"dict": self._encode_dict(value, name, depth)}
        pairs = [
            [self.encode(key, name, depth + 1), self.encode(v, f"{name}.{key}", depth + 1)]
            for key, v in value.items()
        ]
        return {"map": pairs}

    def _encode_object(self, value: Any, name: str, depth: int) -> Any:
        if id(value) in self.seen:
            return {"again": self.seen[id(value)][0]}
        kind = self.registry.names.get(type(value))
        if kind is None:
            raise NotPlainError(f"{_where(name)} is a {type(value).__name__}")
        encoded = self._encode_dict(self.registry.codecs[kind].to_state(value), name, depth)
        self.seen[id(value)] = (len(self.seen), value)
        return {"object": [kind, encoded]}

    def _keep(self, tensor: Tensor, name: str) -> str:
        name = name.lstrip(".") or "value"
        while name in self.tensors:  # 1 and "1" are two keys with one name
            name += "'"
        self.tensors[name] = tensor
        return name


class _Decoder:
    def __init__(self, registry: Registry, tensors: Mapping[str, Tensor]) -> None:
        self.registry = registry
        self.tensors = tensors
        #: Objects, and of how many each is made, itself counted, as often as it uses them.
        self.built: list[Any] = []
        self.sizes: list[int] = []
        self.size = 0
        self.used: set[str] = set()

    def decode(self, encoded: Any, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
        if isinstance(encoded, list):
            return [self.decode(item, depth + 1) for item in encoded]
        if isinstance(encoded, str):
            return _read_text(encoded)
        if isinstance(encoded, float) and not math.isfinite(encoded):
            raise ValueError("a number is none")
        if not isinstance(encoded, dict):
            return encoded
        if len(encoded) == 1:
            ((kind, content),) = encoded.items()
            decode = getattr(self, f"_decode_{kind}", None) if kind in _KINDS else None
            if decode is not None and isinstance(content, _KINDS[kind]):
                return decode(content, depth + 1)
        raise ValueError("a value is of no kind that a file can hold")

    def _decode_dict(self, content: dict[str, Any], depth: int) -> dict[str, Any]:
        return {_read_text(key): self.decode(v, depth) for key, v in content.items()}

    def _decode_map(self, content: list[Any], depth: int) -> dict[Any, Any]:
        pairs = [self.decode(pair, depth) for pair in content]
        if not all(isinstance(p, list) and len(p) == 2 for p in pairs):
            raise ValueError("a mapping is not made of pairs")
        try:
            mapping = dict(pairs)
        except TypeError:
            raise ValueError("a mapping has keys that cannot be keys") from None
        if len(mapping) != len(pairs):
            raise ValueError("a mapping has a key twice")
        return mapping

    def _decode_tuple(self, content: list[Any], depth: int) -> tuple[Any, ...]:
        return tuple(self.decode(item, depth) for item in content)

    def _decode_float(self, content: str, depth: int) -> float:
        if content not in ("nan", "inf", "-inf"):
            raise ValueError("a number is none")
        return float(content)

    def _decode_tensor(self, content: str, depth: int) -> Tensor:
        if content not in self.tensors:
            raise ValueError(f"the tensor {content[:80]!r} is missing")
        self.used.add(content)
        return self.tensors[content]

    def _decode_array(self, content: str, depth: int) -> np.ndarray[Any, Any]:
        tensor = self._decode_tensor(content, depth)
        if tensor.dtype is torch.bfloat16:
            raise ValueError(f"the array {content[:80]!r} is of no type that NumPy knows")
        return tensor.numpy()

    def _decode_transposed(self, content: dict[str, Any], depth: int) -> Any:
        value = self.decode(content, depth)
        if not isinstance(value, Tensor | np.ndarray):
            raise ValueError("what is transposed is no array")
        return _transposed(value)

    def _decode_again(self, content: int, depth: int) -> Any:
        if isinstance(content, bool) or not 0 <= content < len(self.built):
            raise ValueError("an object stands in two places, but in none of them whole")
        self._count(self.sizes[content])
        return self.built[content]

    def _decode_object(self, content: list[Any], depth: int) -> Any:
        kind, state = content if len(content) == 2 else (None, None)
        if not isinstance(kind, str) or kind not in self.registry.codecs:
            raise ValueError(f"{str(kind)[:80]!r} is no kind of object that this version knows")
        if not isinstance(state, dict):
            raise ValueError(f"the {kind} has no state")
        before, self.size = self.size, 0
        decoded = self._decode_dict(state, depth)
        size, self.size = self.size + 1, before
        self._count(size)
        built = self.registry.codecs[kind].from_state(decoded)
        self.built.append(built)
        self.sizes.append(size)
        return built

    def _count(self, size: int) -> None:
        """Refuse objects that use each other again and again: work doubles with each level."""
        self.size += size
        if self.size > MAX_OBJECTS:
            raise ValueError(f"an object is made of more than {MAX_OBJECTS:,} others")


#: What the key of an object may be, and the type of its value.
_KINDS: dict[str, type] = {
    "dict": dict,
    "map": list,
    "tuple": list,
    "float": str,
    "tensor": str,
    "array": str,
    "transposed": dict,
    "again": int,
    "object": list,
}


def _where(name: str) -> str:
    return name.lstrip(".") or "the value"


def _checked_text(text: str, name: str) -> str:
    if not is_unicode(text):
        raise NotPlainError(f"{_where(name)} is or has text that is not Unicode")
    return text


def _read_text(text: str) -> str:
    if not is_unicode(text):
        raise ValueError("a text is not Unicode")
    return text


def _transposed(value: Any) -> Any:
    return value.permute(*range(value.ndim)[::-1]) if isinstance(value, Tensor) else value.T


def _as_tensor(array: Tensor | np.ndarray[Any, Any], name: str) -> Tensor:
    if isinstance(array, Tensor):
        return array
    if np.ma.isMaskedArray(array):
        raise NotPlainError(f"{_where(name)} is a masked array")
    native = array.astype(array.dtype.newbyteorder("="), copy=False)
    try:
        return torch.from_numpy(np.require(native, requirements=["C", "W"]))
    except TypeError as error:  # text, objects, structures
        raise NotPlainError(f"{_where(name)} is an array of {array.dtype}") from error
