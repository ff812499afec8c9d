"""NumPy files, .npy and .npz, of numbers alone: nothing is unpickled.

The header of an array is read first, from the few bytes that a header can have. What it announces
must be what the file holds, and must fit into memory.
"""

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkae._runtime.checks import check_choice
from dkae.datasets.errors import DataFileError
from dkae.datasets.sizes import check_fits, check_ratio

#: NumPy reads no longer header than 10,000 characters.
_LONGEST_HEADER = 2**14
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that NumPy writes

_UNREADABLE = (
    ValueError, OSError, EOFError, RuntimeError, NotImplementedError,  # such as an encrypted file
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def read_npy(path: Path) -> NDArray[Any]:
    """Return the array of a file .npy; it is not read whole, but mapped."""
    try:
        with path.open("rb") as file:
            start = file.read(_LONGEST_HEADER)
        if start.startswith(b"PK"):
            raise DataFileError(f"{path} is an archive of arrays: give it the ending .npz")
        size, found = _check_header(str(path), start), path.stat().st_size
        if size > found:  # NumPy would map more than there is, if the number overflows
            raise ValueError(f"it has {found} bytes, and its header announces {size}")
        return np.asanyarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except DataFileError:
        raise
    except _UNREADABLE as error:
        raise DataFileError(f"{path} is not a NumPy file of numbers ({error})") from error


def read_npz(path: Path, key: str | None = None) -> NDArray[Any]:
    """Return an array of a file .npz: the one of a name, or the only one."""
    try:
        with path.open("rb") as file:
            if file.peek(6)[:6] == npy.MAGIC_PREFIX:
                raise DataFileError(f"{path} is a single array: give it the ending .npy")
            with zipfile.ZipFile(file) as archive:
                members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
                name = _choose_array(path, list(members), key)
                return _read_member(f"{path}:{name}", archive, members[name])
    except DataFileError:
        raise
    except _UNREADABLE as error:
        raise DataFileError(f"{path} cannot be read as .npz: {error}") from error


def _choose_array(path: Path, names: list[str], key: str | None) -> str:
    if key is not None:
        return check_choice(f"array in {path}", key, names)
    if len(names) != 1:
        raise DataFileError(
            f"{path} holds {len(names)} arrays ({', '.join(names)}): say which one, for example "
            f"{path}:{names[0] if names else 'name'}"
        )
    return names[0]


def _read_member(where: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    if member.compress_type not in _METHODS:
        raise DataFileError(f"{where} is compressed as NumPy does not: write it by np.savez")
    with archive.open(member) as file:
        size = _check_header(where, file.read(_LONGEST_HEADER))
    if size != member.file_size:
        raise DataFileError(
            f"{where} is damaged, it has {member.file_size} bytes: its header announces {size}"
        )
    check_ratio(where, size, member.compress_size)
    check_fits(where, size)
    with archive.open(member) as file:
        return np.asarray(npy.read_array(file, allow_pickle=False))


def _check_header(where: str, start: bytes) -> int:
    """Return how many bytes an array takes in its file, by its header, if it is one of numbers."""
    file = io.BytesIO(start)
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):  # others are for names of columns
        raise ValueError(f"version {version} of the format")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.kind not in "biuf":
        raise DataFileError(
            f"{where} holds values of the type {dtype}: expected numbers; nothing else is read, "
            "and no object is unpickled"
        )
    if any(n < 0 for n in shape):
        raise ValueError(f"shape {shape}")
    return file.tell() + math.prod(shape) * dtype.itemsize
