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

_GZIP_MAGIC = b"\x1f\x8b"
_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
#: Bytes that are read at a time: memory grows with the file, not with what its header announces.
_PART = 2**20


class DataFileError(ValueError):
    """A data file that exists but is not valid."""


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
    if path.exists() and not path.is_file():  # opening a pipe would wait for ever
        raise DataFileError(f"{path} is a folder, a pipe or a device: pass the path of a file")
    with path.open("rb") as file:
        if file.peek(2)[:2] != _GZIP_MAGIC:
            return _read(path, file)
        try:
            with gzip.GzipFile(fileobj=file) as decompressed:
                return _read(path, decompressed)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataFileError(
                f"{path} is a damaged gzip file ({error}): fetch it again"
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


def _read(path: Path, file: IO[bytes] | gzip.GzipFile) -> npt.NDArray[Any]:
    """Read an array, and one byte more to see that the file ends there."""
    start = _take(path, file, 4, "its header")
    if any(start[:2]) or start[2] not in _TYPES:
        raise DataFileError(
            f"{path} starts with {bytes(start)!r}: expected an IDX file, plain or gzipped, which "
            "starts with two zero bytes and the code of a type"
        )
    n_sizes = start[3]
    shape = struct.unpack(f">{n_sizes}I", _take(path, file, 4 * n_sizes, "its header"))
    dtype = np.dtype(_TYPES[start[2]])
    n_bytes = math.prod(shape) * dtype.itemsize
    content = _take(path, file, n_bytes, f"an array of shape {shape}")
    if file.read(1):
        raise DataFileError(f"{path} is too long: more follows its array of shape {shape}")
    try:
        values = np.frombuffer(content, dtype).reshape(shape)
    except ValueError as error:  # too many dimensions, or an empty array with huge ones
        raise DataFileError(f"{path} has the shape {shape}: NumPy says {error}") from error
    return values.astype(dtype.newbyteorder("="), copy=False)


def _take(path: Path, file: IO[bytes] | gzip.GzipFile, n_bytes: int, what: str) -> bytearray:
    """Read as many bytes, part by part."""
    content = bytearray()
    while missing := n_bytes - len(content):
        part = file.read(min(_PART, missing))
        if not part:
            raise DataFileError(
                f"{path} is truncated: {what} takes {n_bytes} bytes, and {len(content)} are there"
            )
        content += part
    return content
