"""Reading IDX files, the format in which MNIST was published.

An IDX file is a header followed by the values of one array in C order, everything big-endian:
two zero bytes, one byte for the type of the values, one byte for the number of dimensions, and
the size of each dimension as a 32-bit unsigned integer.
"""

import gzip
import math
import os
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from dkae.datasets.errors import DataFileError
from dkae.datasets.sizes import check_fits

__all__ = ["DataFileError", "load_idx", "read_idx"]

_GZIP_MAGIC = b"\x1f\x8b"
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_LONGEST_HEADER = 4 + 4 * 255
#: Bytes that are read at a time: memory is taken as they come, not as they are announced.
_PART = 2**20


def read_idx(path: str | os.PathLike[str]) -> npt.NDArray[Any]:
    """Read the array in an IDX file, plain or gzipped.

    Compression is recognised by the content of the file, not by its name.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    ndarray
        The array, in native byte order and writable.

    Raises
    ------
    DataFileError
        If the file is not a complete and valid IDX file.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    with path.open("rb") as file:
        if file.peek(2)[:2] != _GZIP_MAGIC:
            return _read(path, file, gzipped=False)
        try:
            with gzip.GzipFile(fileobj=file) as decompressed:
                return _read(path, decompressed, gzipped=True)
        except EOFError as error:
            raise DataFileError(
                f"{path} is a truncated gzip file of {path.stat().st_size} bytes: fetch it again"
            ) from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise DataFileError(
                f"{path} is a corrupt gzip file ({error}): fetch it again"
            ) from error


def load_idx(images: str | os.PathLike[str], labels: str | os.PathLike[str]) -> Bunch:
    """Load a set of labelled images, such as MNIST, from its two IDX files.

    Parameters
    ----------
    images : str or path-like
        IDX file of the images: three dimensions (image, row, column), unsigned bytes.
    labels : str or path-like
        IDX file of the labels: one dimension, unsigned bytes.

    Returns
    -------
    Bunch
        `data`, uint8 of shape (n, rows * columns); `images`, a view of `data` of shape
        (n, rows, columns); and `target`, int64 of shape (n,).

    Raises
    ------
    DataFileError
        If one of the files is not as described, or their lengths differ.
    FileNotFoundError
        If one of the files is missing.

    Examples
    --------
    >>> digits = load_idx("train-images-idx3-ubyte.gz",
    ...                   "train-labels-idx1-ubyte.gz")  # doctest: +SKIP
    """
    pixels = _read_uint8(images, "images", ndim=3)
    target = _read_uint8(labels, "labels", ndim=1)
    if len(pixels) != len(target):
        raise DataFileError(
            f"{images} has {len(pixels)} images, but {labels} has {len(target)} labels: "
            "pass the two files of the same set"
        )
    n, rows, columns = pixels.shape
    data = pixels.reshape(n, rows * columns)
    return Bunch(data=data, target=target.astype(np.int64), images=pixels)


def _read_uint8(path: str | os.PathLike[str], what: str, ndim: int) -> npt.NDArray[np.uint8]:
    """Read an IDX file that must hold unsigned bytes in `ndim` dimensions."""
    values = read_idx(path)
    if values.dtype != np.uint8 or values.ndim != ndim:
        raise DataFileError(
            f"{path} has {values.dtype} values of shape {values.shape}: "
            f"expected {what}, which are uint8 in {ndim} dimension(s)"
        )
    return values


def _read(path: Path, file: IO[bytes] | gzip.GzipFile, *, gzipped: bool) -> npt.NDArray[Any]:
    """Read what the header announces, and one byte more to see that it is all."""
    content = bytearray(file.read(_LONGEST_HEADER))
    _check_start(path, content, gzipped)
    dtype, shape, start = _parse_header(path, content)
    size = start + math.prod(shape) * dtype.itemsize
    check_fits(path, size)
    while len(content) <= size and (part := file.read(min(_PART, size + 1 - len(content)))):
        content += part
    _check_size(path, found=len(content), expected=size)
    try:
        values = np.frombuffer(content, dtype, offset=start).reshape(shape)
    except ValueError as error:  # too many dimensions, or an empty array with huge ones
        raise DataFileError(f"{path} has the shape {shape}: NumPy says {error}") from error
    return values.astype(dtype.newbyteorder("="), copy=False)


def _check_start(path: Path, content: bytearray, gzipped: bool) -> None:
    """Reject a file that is not IDX at all, and say what it looks like."""
    if not content:
        raise DataFileError(f"{path} is empty: expected an IDX file, plain or gzipped")
    if not any(content[:2]):
        return
    fault = f"has the wrong magic number {content[:4].hex(' ')}"
    if content.lstrip().startswith(b"<"):
        fault = "looks like an HTML page, perhaps the error page of a failed download"
    elif path.suffix == ".gz" and not gzipped:
        fault = f"is named .gz but is not gzip, and {fault}"
    raise DataFileError(
        f"{path} {fault}: expected an IDX file, plain or gzipped, "
        "which starts with two zero bytes once decompressed"
    )


def _parse_header(path: Path, content: bytearray) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return the type of the values, the shape, and where in `content` the values start."""
    _check_header(path, content, 4)
    code, ndim = content[2], content[3]
    if code not in _TYPES:
        known = ", ".join(f"0x{known:02X}" for known in _TYPES)
        raise DataFileError(
            f"{path} has the unknown type code 0x{code:02X} in its magic number: "
            f"expected one of {known}"
        )
    start = 4 + 4 * ndim
    _check_header(path, content, start)
    return np.dtype(_TYPES[code]), struct.unpack_from(f">{ndim}I", content, 4), start


def _check_header(path: Path, content: bytearray, size: int) -> None:
    if len(content) < size:
        raise DataFileError(
            f"{path} is truncated, it has {len(content)} bytes: its header alone takes {size} bytes"
        )


def _check_size(path: Path, *, found: int, expected: int) -> None:
    """Compare the size of the (decompressed) file with what its header announces."""
    if found < expected:
        raise DataFileError(
            f"{path} is truncated, it has {found} bytes: its header announces {expected} bytes"
        )
    if found > expected:
        raise DataFileError(
            f"{path} is too long: its header announces {expected} bytes, and more follow"
        )
