"""One file for tensors and JSON: safetensors, with a checksum and the same bytes every time.

The library safetensors writes and reads the file. All that is not a tensor is one text in its
metadata, and stands at the very beginning:

.. code:: json

    {"__metadata__":{"dkae":"…64 digits… {the JSON}"}, …

The digits are the SHA-256 of the whole file with zeros in their place. They are compared before
anything is parsed. A checksum is no signature: an attacker can write one that fits.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import safetensors
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from dkae.files import replacing

#: A header is a few kilobytes; that of a long history is a few megabytes.
MAX_HEADER_BYTES = 2**25

_KEY = b'{"__metadata__":{"dkae":'
_ZEROS = "0" * 64
_DIGITS = slice(8 + len(_KEY) + 1, 8 + len(_KEY) + 1 + len(_ZEROS))
_REMEDY = "copy the file again, or take an older one"


class ModelFileError(ValueError):
    """A file is damaged, was not written by dkae, or has an unknown format."""


class Content(NamedTuple):
    """What a file holds."""

    #: The JSON, parsed.
    state: Any
    tensors: dict[str, Tensor]
    checksum: str


def write(
    path: Path, state: Any, tensors: Mapping[str, Tensor], *, keep: Path | None = None
) -> None:
    """Write a file that appears whole or not at all; the old file moves to `keep`, if given."""
    content = to_bytes(state, tensors)
    with replacing(path, keep) as temporary:
        temporary.write_bytes(content)


def to_bytes(state: Any, tensors: Mapping[str, Tensor]) -> bytearray:
    """Return the bytes of a file; equal content gives equal bytes."""
    text = json.dumps(state, separators=(",", ":"), allow_nan=False)
    # A copy of each: safetensors takes no two tensors that share memory.
    copies = {
        name: tensors[name].detach().cpu().clone(memory_format=torch.contiguous_format)
        for name in sorted(tensors)
    }
    content = bytearray(save_tensors(copies, {"dkae": f"{_ZEROS} {text}"}))
    if int.from_bytes(content[:8], "little") > MAX_HEADER_BYTES:
        raise ValueError(
            f"the description of the model takes {len(text):,} bytes, and a file holds at most "
            f"{MAX_HEADER_BYTES:,}: shorten history_"
        )
    content[_DIGITS] = hashlib.sha256(content).hexdigest().encode()
    return content


def read(path: Path) -> Content:
    """Return what a file holds; the checksum of every byte is compared first."""
    content = bytearray(path.read_bytes())
    n_header = int.from_bytes(content[:8], "little")
    if not is_safe_file(content) or n_header > min(MAX_HEADER_BYTES, len(content)):
        raise ModelFileError(f"{path} is not a dkae file, or its beginning is damaged: {_REMEDY}")
    checksum = content[_DIGITS].decode("ascii", "replace")
    content[_DIGITS] = _ZEROS.encode()
    if hashlib.sha256(content).hexdigest() != checksum:
        raise ModelFileError(
            f"{path} is damaged: its content does not have the checksum that it states. {_REMEDY}"
        )
    try:
        text, _ = json.JSONDecoder().raw_decode(content[8 : 8 + n_header].decode(), len(_KEY))
        state = _parse(text[len(_ZEROS) :])
        tensors = {name: _copy(t) for name, t in load_tensors(bytes(content)).items()}
    except (ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
        raise ModelFileError(f"{path} is damaged or not from dkae: {str(error)[:200]}") from error
    return Content(state, tensors, checksum)


def is_safe_file(content: bytes | bytearray) -> bool:
    """Return whether bytes begin like a file of `write`, or are empty."""
    return not content or content[8 : 8 + len(_KEY)] == _KEY


def _copy(tensor: Tensor) -> Tensor:
    """Return a copy at an aligned address, or products would differ in the last digit."""
    if tensor.dtype is torch.bool:
        return tensor.view(torch.uint8) != 0  # whatever its bytes are
    return tensor.clone()


def _parse(text: str) -> Any:
    """Return what JSON says, strictly: no name twice, only finite numbers."""
    try:
        return json.loads(
            text, object_pairs_hook=_distinct, parse_constant=_finite, parse_float=_finite
        )
    except RecursionError:
        raise ValueError("values are nested too deep") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:20]} is not a finite number")
    return number
