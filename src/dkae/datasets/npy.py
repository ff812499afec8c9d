"""NumPy files, .npy and .npz, of numbers alone: nothing is unpickled.

The header of an array is read first, from the few bytes that a header can have. What it announces
must be what the file holds, and must fit into memory. An array may be written a piece at a time.
"""

import io
import math
import zipfile
import zlib
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dkae._support.checks import check_choice
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


class NpyWriter:
    """Writes an array whose pieces come one by one; how many there are is known in the end.

    Parameters
    ----------
    path : Path
        The file. All pieces have the type of the first, and rows of its shape.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._shape: tuple[int, ...] | None = None

    def __enter__(self) -> Self:
        self._file = self.path.open("wb")
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        with self._file:
            if error is None and self._shape is not None:
                n_bytes = self._write_header()
                if n_bytes != self._n_header_bytes:  # NumPy leaves space, for 21 digits
                    raise OSError(
                        f"{self.path}: its header grew from {self._n_header_bytes} to {n_bytes} "
                        "bytes, and would replace rows: write fewer rows, or .csv"
                    )

    def append(self, rows: NDArray[Any]) -> None:
        """Write rows below those that are there."""
        if self._shape is None:
            self._shape, self._dtype = (0, *rows.shape[1:]), rows.dtype
            self._n_header_bytes = self._write_header()
        if rows.shape[1:] != self._shape[1:]:
            raise ValueError(f"rows have the shape {rows.shape[1:]}, after {self._shape[1:]}")
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._shape = (self._shape[0] + len(rows), *self._shape[1:])

    def _write_header(self) -> int:
        """Write the header at the start of the file, and return where it ends."""
        descr = npy.dtype_to_descr(self._dtype)
        self._file.seek(0)
        npy.write_array_header_1_0(
            self._file, {"descr": descr, "fortran_order": False, "shape": self._shape}
        )
        return self._file.tell()


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
