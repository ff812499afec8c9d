r"""One file for tensors and text: safetensors, with a checksum and the same bytes every time.

The layout is that of safetensors, and its library reads these files: eight bytes with the length of
the header, the header in JSON, the tensors. Beyond that, the header begins with

.. code:: json

    {"__metadata__":{"sha256":"…64 digits…", …

where the digits are SHA-256 of the whole file with zeros in their place. It is checked before the
header is parsed, so damage is found wherever it is. A checksum is no signature: whoever means harm
can write one that fits. So nothing is believed of a header that the size of the file contradicts,
nothing is allocated on its word, and nothing in it is ever executed.
"""

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

from dkae._support.files import replacing

#: A header is a few kilobytes; that of a long history or a deep sum of kernels is a few megabytes.
MAX_HEADER_BYTES = 2**25
#: The largest models have hundreds.
MAX_TENSORS = 10_000
MAX_DIMENSIONS = 16
#: What a tensor without entries may claim of its other dimensions.
MAX_EMPTY_SIZE = 2**32
#: Signs between values of a text; a value takes up to a hundred bytes once it is parsed.
MAX_SIGNS = 2**20
#: Bytes that are read, hashed and written together.
N_CHUNK_BYTES = 2**22

_LENGTH_BYTES = 8
_BEGIN = b'{"__metadata__":{"sha256":"'
_DIGITS = 64
_DIGEST_AT = slice(len(_BEGIN), len(_BEGIN) + _DIGITS)

#: The names of safetensors.
_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}


class ModelFileError(ValueError):
    """A file is not one of dkae's, is damaged, or is from a version that is not known here."""


class Content(NamedTuple):
    """What a file holds."""

    #: Text by name.
    metadata: dict[str, str]
    tensors: dict[str, Tensor]


class _Entry(NamedTuple):
    """Where a tensor lies in the payload."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    begin: int
    end: int


# --- writing -------------------------------------------------------------------------------------


def write_container(
    path: Path,
    metadata: Mapping[str, str],
    tensors: Mapping[str, Tensor],
    *,
    keep: Path | None = None,
) -> None:
    """Write a file that appears whole or not at all; equal content gives equal bytes.

    What was there before goes to `keep`, if that is given.
    """
    _check_text(metadata, tensors)
    # The widest type first, so that every tensor begins at a multiple of its own width.
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    parts = {name: tensor.detach().cpu().contiguous() for name, tensor in ordered}
    header = _header(metadata, parts)
    with replacing(path, keep) as temporary, temporary.open("r+b") as file:
        digest = hashlib.sha256()
        for chunk in (len(header).to_bytes(_LENGTH_BYTES, "little"), header):
            _put(file, chunk, digest)
        for part in parts.values():
            _put_tensor(file, part, digest)
        file.seek(_LENGTH_BYTES + _DIGEST_AT.start)
        file.write(digest.hexdigest().encode())


def _check_text(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> None:
    if "sha256" in metadata or "__metadata__" in tensors:
        raise ValueError("sha256 and __metadata__ are names that a file needs for itself")
    for text in (*metadata, *metadata.values(), *tensors):
        if not is_unicode(text):
            raise ValueError(f"{_short(text)} is text that no file can hold: it is not Unicode")


def is_unicode(text: str) -> bool:
    """Say whether a text has no halves of characters, which Python alone takes for text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _header(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> bytes:
    """Return the header with zeros for the checksum, in a length that keeps tensors aligned."""
    entries: dict[str, Any] = {
        "__metadata__": {"sha256": "0" * _DIGITS} | dict(sorted(metadata.items()))
    }
    begin = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in _NAMES:
            raise ValueError(f"a file cannot hold the tensor {name!r} of type {tensor.dtype}")
        end = begin + tensor.numel() * tensor.element_size()
        entries[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [begin, end],
        }
        begin = end
    header = json.dumps(entries, separators=(",", ":"), allow_nan=False).encode()
    if len(header) > MAX_HEADER_BYTES:
        raise ValueError(
            f"the description of the model takes {len(header):,} bytes, and a file holds at most "
            f"{MAX_HEADER_BYTES:,}: shorten history_"
        )
    if max(map(_n_signs, [header, *(text.encode() for text in metadata.values())])) > MAX_SIGNS:
        raise ValueError(
            f"the description of the model has more than about {MAX_SIGNS:,} values: shorten "
            "history_"
        )
    return header + b" " * (-len(header) % 8)


def _put_tensor(file: BinaryIO, tensor: Tensor, digest: Any) -> None:
    flat = tensor.reshape(-1).view(torch.uint8).numpy()
    for i in range(0, len(flat), N_CHUNK_BYTES):
        _put(file, flat[i : i + N_CHUNK_BYTES].data, digest)


def _put(file: BinaryIO, chunk: Any, digest: Any) -> None:
    digest.update(chunk)
    file.write(chunk)


# --- reading -------------------------------------------------------------------------------------


def read_container(
    path: Path, needs_checksum: Callable[[dict[str, str]], bool] = lambda metadata: True
) -> Content:
    """Return what a file holds, after everything about it was checked.

    A checksum that is there must be right; `needs_checksum` says whether it must be there.
    """
    with path.open("rb") as file:
        header, n_payload = _read_header(file, path)
        is_checked = _has_checksum(file, header, path)
        metadata, entries = _parse(header, n_payload, path)
        if not is_checked and needs_checksum(metadata):
            raise _not_ours(path, "its checksum is missing")
        file.seek(_LENGTH_BYTES + len(header))
        tensors = {name: _read_tensor(file, name, entry, path) for name, entry in entries.items()}
    return Content(metadata, tensors)


def read_metadata(path: Path) -> tuple[dict[str, str], dict[str, tuple[str, tuple[int, ...]]]]:
    """Return the text of a file, and type and shape of its tensors, of which none is made.

    A checksum that is there is compared.
    """
    with path.open("rb") as file:
        header, n_payload = _read_header(file, path)
        _has_checksum(file, header, path)
    metadata, entries = _parse(header, n_payload, path)
    return metadata, {name: (_NAMES[e.dtype], e.shape) for name, e in entries.items()}


def is_like_container(path: Path) -> bool:
    """Say whether a file begins as ours do, or is empty: what else it is nobody can say."""
    with path.open("rb") as file:
        begin = file.read(_LENGTH_BYTES + len(_BEGIN))
    return not begin or begin[_LENGTH_BYTES:] == _BEGIN


def _read_header(file: BinaryIO, path: Path) -> tuple[bytes, int]:
    """Return the header, and how many bytes follow it."""
    n_left = os.fstat(file.fileno()).st_size - _LENGTH_BYTES
    n_header = int.from_bytes(file.read(_LENGTH_BYTES), "little")
    if n_left < 2 or not 2 <= n_header <= n_left:
        raise _not_ours(path, "its header is longer than the file")
    if n_header > MAX_HEADER_BYTES:
        raise _not_ours(path, f"its header claims {n_header:,} bytes")
    return file.read(n_header), n_left - n_header


def _has_checksum(file: BinaryIO, header: bytes, path: Path) -> bool:
    """Say whether a file states its checksum, and refuse one that is wrong."""
    if not header.startswith(_BEGIN):
        return False
    blank = header[: _DIGEST_AT.start] + b"0" * _DIGITS + header[_DIGEST_AT.stop :]
    digest = hashlib.sha256(len(header).to_bytes(_LENGTH_BYTES, "little") + blank)
    while chunk := file.read(N_CHUNK_BYTES):
        digest.update(chunk)
    if header[_DIGEST_AT] != digest.hexdigest().encode():
        raise ModelFileError(
            f"{path} is damaged: its content does not have the checksum that it states. Copy the "
            "file again, or take an older one"
        )
    return True


def _parse(header: bytes, n_payload: int, path: Path) -> tuple[dict[str, str], dict[str, _Entry]]:
    """Return text, and where tensors lie: one after the other, from the first byte to the last."""
    try:
        described = parse_json(header)
    except ValueError as error:  # a UnicodeDecodeError is one too
        raise _not_ours(path, f"its header is not JSON: {_short(error)}") from None
    if not isinstance(described, dict) or len(described) > MAX_TENSORS:
        raise _not_ours(path, f"its header is no object of at most {MAX_TENSORS:,} tensors")
    metadata = described.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise _not_ours(path, "its metadata is not text")
    entries = {name: _entry(name, entry, path) for name, entry in described.items()}
    entries = dict(sorted(entries.items(), key=lambda item: item[1][2:]))
    at = 0
    for name, entry in entries.items():
        if entry.begin != at:
            raise _not_ours(path, f"the tensor {_short(name)} overlaps others, or leaves a gap")
        at = entry.end
    if at != n_payload:
        raise _not_ours(path, f"its tensors take {at:,} bytes, but {n_payload:,} are there")
    return metadata, entries


def _entry(name: str, described: Any, path: Path) -> _Entry:
    """Return the entry of a tensor whose size is that of its type and shape."""
    wrong = _not_ours(path, f"the tensor {_short(name)} has no sane type, shape and place")
    if not isinstance(described, dict) or described.keys() != {"dtype", "shape", "data_offsets"}:
        raise wrong
    shape, place = described["shape"], described["data_offsets"]
    if not (_are_sizes(shape) and _are_sizes(place)) or len(place) != 2:
        raise wrong
    dtype = _DTYPES.get(described["dtype"]) if isinstance(described["dtype"], str) else None
    if dtype is None or len(shape) > MAX_DIMENSIONS:
        raise wrong
    begin, end = place
    if end - begin != math.prod(shape) * dtype.itemsize or begin % dtype.itemsize:
        raise wrong
    if begin == end and math.prod(n for n in shape if n) > MAX_EMPTY_SIZE:
        raise wrong
    return _Entry(dtype, tuple(shape), begin, end)


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and 0 <= v < 2**63 for v in values)


def _read_tensor(file: BinaryIO, name: str, entry: _Entry, path: Path) -> Tensor:
    """Return the next tensor of the file, in memory of its own.

    It begins there where torch begins its tensors: elsewhere, matrix products differ in the last
    digit.
    """
    raw = torch.empty(entry.end - entry.begin, dtype=torch.uint8)
    if file.readinto(raw.numpy().data) != len(raw):  # type: ignore[attr-defined]  # of a file
        raise ModelFileError(f"{path} became shorter while it was read: read it again")
    if entry.dtype is torch.bool and len(raw) and int(raw.max()) > 1:
        raise _not_ours(path, f"the tensor {_short(name)} has booleans that are not 0 or 1")
    return raw.view(entry.dtype).reshape(entry.shape)


def parse_json(text: str | bytes) -> Any:
    """Return what JSON says, strictly: no name twice, no number that is none, not too much."""
    if _n_signs(text) > MAX_SIGNS:
        raise ValueError(f"there are more than about {MAX_SIGNS:,} values")
    try:
        return json.loads(
            text,
            object_pairs_hook=_without_repetition,
            parse_constant=_no_number,
            parse_float=_finite,
        )
    except RecursionError:
        raise ValueError("values are nested too deep") from None


def _n_signs(text: str | bytes) -> int:
    signs: Any = ("[", "{", ",", ":") if isinstance(text, str) else (b"[", b"{", b",", b":")
    return sum(map(text.count, signs))


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(_short(text))


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _short(value: object) -> str:
    """Return a text of the file's as part of a message: never a long one, never a raw one."""
    text = repr(str(value))
    return text if len(text) <= 80 else f"{text[:77]}…"


def _not_ours(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"{path} is not a dkae file, or is damaged: {why}")
