"""Tests of the IDX reader: valid files come back exactly, others raise an error that says why."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkae.datasets import DataFileError, load_idx, read_idx

CODES = {"u1": 0x08, "i1": 0x09, "i2": 0x0B, "i4": 0x0C, "f4": 0x0D, "f8": 0x0E}

# Each example overwrites the same file, so sharing tmp_path between examples is harmless.
shares_tmp_path = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def to_idx(array: npt.NDArray[Any]) -> bytes:
    """Encode an array as an IDX file."""
    magic = bytes([0, 0, CODES[array.dtype.str[1:]], array.ndim])
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return magic + sizes + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write(path: Path, content: bytes) -> Path:
    """Write `content` to `path` and return `path`."""
    path.write_bytes(content)
    return path


arrays = st.sampled_from(sorted(CODES)).flatmap(
    lambda name: hnp.arrays(name, hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
)


@shares_tmp_path
@given(array=arrays, compress=st.booleans())
def test_round_trip(tmp_path: Path, array: npt.NDArray[Any], compress: bool) -> None:
    """Every type and shape comes back exactly, NaN included, in native byte order."""
    content = to_idx(array)
    path = write(tmp_path / "array", gzip.compress(content) if compress else content)
    result = read_idx(path)
    assert result.dtype == array.dtype
    assert result.dtype.isnative
    assert result.flags.writeable
    np.testing.assert_array_equal(result, array)


@shares_tmp_path
@given(content=st.binary(max_size=40), prefix=st.sampled_from([b"", b"\0\0\x08", b"\x1f\x8b\x08"]))
def test_arbitrary_bytes_never_raise_another_error(
    tmp_path: Path, content: bytes, prefix: bytes
) -> None:
    """Garbage is an array or a DataFileError, nothing else."""
    with contextlib.suppress(DataFileError):
        read_idx(write(tmp_path / "garbage", prefix + content))


@shares_tmp_path
@given(data=st.data())
def test_truncated_gzip(tmp_path: Path, data: st.DataObject) -> None:
    """Cutting a gzip file anywhere is noticed."""
    content = gzip.compress(to_idx(np.arange(50, dtype=np.int32)))
    cut = data.draw(st.integers(2, len(content) - 1))
    with pytest.raises(DataFileError, match="damaged gzip file"):
        read_idx(write(tmp_path / "cut.gz", content[:cut]))


def test_known_bytes_under_a_misleading_name(tmp_path: Path) -> None:
    """Bytes are big-endian, checked without the encoder here; gzip is recognised by its content."""
    content = bytes.fromhex("00000B01 00000002 0102 FFFE")
    for name, stored in (("plain.gz", content), ("gzipped", gzip.compress(content))):
        np.testing.assert_array_equal(read_idx(str(write(tmp_path / name, stored))), [258, -2])


INVALID = [
    (b"", "is truncated: its header takes 4 bytes, and 0 are there"),
    (b"PK\3\4", r"starts with b'PK\\x03\\x04': expected an IDX file, plain or gzipped"),
    (b"<html>", "starts with b'<htm': expected an IDX file"),
    (
        b"\0\0\x0a\1\0\0\0\0",
        r"starts with .*: expected an IDX file, .* two zero bytes and the code of a type",
    ),
    (b"\0\0\x08", "is truncated: its header takes 4 bytes, and 3 are there"),
    (b"\0\0\x08\3\0\0\0\1", "is truncated: its header takes 12 bytes, and 4 are there"),
    (b"\0\0\x08\1\0\0\0\3ab", r"is truncated: an array of shape \(3,\) takes 3 bytes, and 2"),
    (b"\0\0\x0c\1\0\0\0\1abc", r"is truncated: an array of shape \(1,\) takes 4 bytes, and 3"),
    (b"\0\0\x08\1\0\0\0\3abcd", r"is too long: more follows its array of shape \(3,\)"),
    (b"\0\0\x08\3\0\0\0\0" + b"\xff" * 8, r"has the shape \(0, 4294967295, 4294967295\)"),
    (b"\0\0\x08\xc8" + b"\0\0\0\1" * 200 + b"x", r"has the shape \(1, 1, .*dimension"),
    (b"\0\0\x08\3" + b"\xff" * 12, "is truncated: .* takes 79228162458924105385300197375 bytes"),
]


@pytest.mark.parametrize(("content", "message"), INVALID)
def test_invalid_content(tmp_path: Path, content: bytes, message: str) -> None:
    """Each fault is named, with the file, plain or gzipped."""
    for compress in (bytes, gzip.compress):
        path = write(tmp_path / "a.gz", compress(content))
        with pytest.raises(DataFileError, match=re.escape(str(path)) + " " + message):
            read_idx(path)


def test_a_bomb_is_read_as_far_as_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small file that unfolds to more than its header says takes little memory."""
    taken, read = [], gzip.GzipFile.read

    def spy(self: gzip.GzipFile, size: int | None = -1) -> bytes:
        part = read(self, size)
        taken.append(len(part))
        return part

    monkeypatch.setattr(gzip.GzipFile, "read", spy)
    path = write(tmp_path / "a", gzip.compress(to_idx(np.ones((2, 5), "u1")) + bytes(2**23)))
    with pytest.raises(DataFileError, match="too long"):
        read_idx(path)
    assert sum(taken) == 4 + 8 + 10 + 1


def test_corrupt_gzip(tmp_path: Path) -> None:
    """A flipped bit in the stream, a wrong checksum and trailing garbage are all noticed."""
    content = gzip.compress(to_idx(np.arange(99, dtype=np.int16)))
    for position in (10, len(content) // 2, len(content) - 8):
        flipped = bytearray(content)
        flipped[position] ^= 0xFF
        with pytest.raises(DataFileError, match="gzip file"):
            read_idx(write(tmp_path / "flipped.gz", bytes(flipped)))
    with pytest.raises(DataFileError, match="damaged gzip file"):
        read_idx(write(tmp_path / "longer.gz", content + b"garbage"))


def test_no_file(tmp_path: Path) -> None:
    """A missing file is not a damaged one, and a pipe is not waited for."""
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_idx(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises(DataFileError, match="is a folder, a pipe or a device: pass the path"):
            read_idx(tmp_path / name)


# --- images and labels ---------------------------------------------------------------------------

IMAGES = np.arange(30, dtype=np.uint8).reshape(5, 3, 2)
LABELS = np.array([3, 1, 4, 1, 255], dtype=np.uint8)


@pytest.mark.parametrize("n", [5, 0])
def test_load_idx(tmp_path: Path, n: int) -> None:
    """Images are flattened row by row; labels become int64 without wrapping."""
    digits = load_idx(
        write(tmp_path / "images.gz", gzip.compress(to_idx(IMAGES[:n]))),
        write(tmp_path / "labels", to_idx(LABELS[:n])),
    )
    assert (digits.data.dtype, digits.target.dtype) == (np.uint8, np.int64)
    assert n == 0 or np.shares_memory(digits.data, digits.images)
    np.testing.assert_array_equal(digits.data, np.arange(30).reshape(5, 6)[:n])
    np.testing.assert_array_equal(digits.images, IMAGES[:n])
    np.testing.assert_array_equal(digits.target, [3, 1, 4, 1, 255][:n])


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (LABELS, IMAGES, r"images has uint8 values of shape \(5,\): expected images"),
        (IMAGES, IMAGES, r"labels has uint8 .* \(5, 3, 2\): expected labels"),
        (IMAGES.astype(np.int8), LABELS, "images has int8 values .*: expected images.* uint8"),
        (IMAGES, LABELS[:4], "images has 5 images, but .*labels has 4 labels"),
    ],
    ids=["swapped", "twice", "signed", "lengths"],
)
def test_files_that_are_no_pair(
    tmp_path: Path, images: npt.NDArray[Any], labels: npt.NDArray[Any], message: str
) -> None:
    """The message names the file, the shape found and the expected one."""
    files = write(tmp_path / "images", to_idx(images)), write(tmp_path / "labels", to_idx(labels))
    with pytest.raises(DataFileError, match=message):
        load_idx(*files)
