"""A small file cannot take much memory, whatever it announces or unfolds to."""

import gzip
import io
import struct
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from dkae.datasets import DataFileError, lines, read_idx, sizes
from dkae.datasets.files import read_array
from dkae.datasets.tables import read_table

MEGABYTE = 2**20


def write(path, content):
    path.write_bytes(content)
    return path


def idx(*shape, data=b""):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


def npy(*shape, n_bytes=0, kind="<f4", length=118):
    text = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (length - len(text) - 1) + b"\n"
    return b"\x93NUMPY\x02\0" + struct.pack("<I", len(text)) + text + bytes(n_bytes)


def zipped(content, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr("a.npy", content)
    return buffer.getvalue()


# --- what is announced ---------------------------------------------------------------------------


def test_gzipped_idx_is_read_as_far_as_announced(tmp_path, monkeypatch):
    taken, read = [], gzip.GzipFile.read

    def spy(self, size=-1):
        part = read(self, size)
        taken.append(len(part))
        return part

    monkeypatch.setattr(gzip.GzipFile, "read", spy)
    path = write(tmp_path / "a.gz", gzip.compress(idx(2, 5, data=bytes(8 * MEGABYTE))))
    with pytest.raises(DataFileError, match="too long: its header announces 22 bytes, and more"):
        read_idx(path)
    assert sum(taken) < 2000


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_idx_that_does_not_fit_is_refused(compress, tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "total_memory", lambda: 10**9)
    path = write(tmp_path / "a", compress(idx(2**20, 2**20)))
    with pytest.raises(DataFileError, match="announces 1099511627788 bytes, and this machine has"):
        read_idx(path)


def test_large_idx_comes_back(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (3 * MEGABYTE + 7, 1), dtype=np.uint8)
    path = write(tmp_path / "a.gz", gzip.compress(idx(*pixels.shape, data=pixels.tobytes()), 1))
    np.testing.assert_array_equal(read_idx(path), pixels)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (zipped(npy(10**9, 10**6)), "it has 130 bytes: its header announces 4000000000000130"),
        (zipped(npy(3, 5, n_bytes=59)), "it has 189 bytes: its header announces 190"),
        (zipped(npy(3, 5, n_bytes=61)), "it has 191 bytes: its header announces 190"),
        (zipped(npy(3, 5, kind="|O")), "type object: expected numbers"),
        (zipped(npy(-3, 5)), r"shape \(-3, 5\)"),
        (zipped(npy(3, length=40_000)), "cannot be read as .npz"),
        (zipped(npy(3, 5, n_bytes=60), zipfile.ZIP_LZMA), "compressed as NumPy does not"),
    ],
    ids=["huge", "short", "long", "objects", "negative", "long header", "method"],
)
def test_array_of_an_archive_that_is_not_what_it_announces(content, message, tmp_path):
    with pytest.raises(DataFileError, match=rf"a\.npz.*{message}"):
        read_array(str(write(tmp_path / "a.npz", content)))


def test_archive_that_announces_more_than_it_can_hold(tmp_path):
    """Its directory says so, and the header of the array agrees."""
    n = 10**9
    content = bytearray(zipped(npy(n // 4)))
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", 130 + n)
    with pytest.raises(DataFileError, match=r"announces 1000000130 bytes in .* compressed ones"):
        read_array(str(write(tmp_path / "a.npz", bytes(content))))


def test_archive_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "total_memory", lambda: 1000)
    np.savez_compressed(tmp_path / "a.npz", np.zeros((100, 10)))
    with pytest.raises(DataFileError, match="announces 8128 bytes, and this machine has 1000"):
        read_array(str(tmp_path / "a.npz"))


def test_encrypted_archive_is_refused(tmp_path):
    content = bytearray(zipped(npy(3, 5, n_bytes=60)))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= 1
    with pytest.raises(DataFileError, match=r"cannot be read as \.npz.*password"):
        read_array(str(write(tmp_path / "a.npz", bytes(content))))


@pytest.mark.parametrize("shape", [(10**9, 10**6), (2**62, 2**62), (-1, 5)])
def test_npy_that_announces_more_than_there_is(shape, tmp_path):
    with pytest.raises(DataFileError, match=r"a\.npy is not a NumPy file of numbers"):
        read_array(str(write(tmp_path / "a.npy", npy(*shape, n_bytes=100))))


def test_parquet_that_does_not_fit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sizes, "total_memory", lambda: 1000)
    pd.DataFrame({"a": np.zeros(300)}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataFileError, match="announces 1200 bytes"):
        read_table(str(tmp_path / "a.parquet"))


# --- lines ---------------------------------------------------------------------------------------


@pytest.fixture
def short_lines(monkeypatch):
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)


@pytest.mark.parametrize("with_pandas", [True, False], ids=["pandas", "NumPy"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
@pytest.mark.parametrize("where", ["first", "later"])
def test_a_line_without_end_is_refused(where, ending, with_pandas, tmp_path, short_lines, patched):
    text = "1,2\n" * (where == "later") + "1," * 400_000
    content = text.encode() if ending == ".csv" else gzip.compress(text.encode())
    path = write(tmp_path / f"a{ending}", content)
    with pytest.raises(DataFileError, match=r"line of more than 1000 characters: .* as \.npy"):
        read_table(str(path))


@pytest.fixture
def patched(with_pandas, monkeypatch):
    if not with_pandas:
        monkeypatch.setattr("dkae.datasets.delimited.import_pandas", lambda: None)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=ascii)
def test_many_lines_are_no_long_line(end, tmp_path, short_lines):
    path = write(tmp_path / "a.csv", (f"1,2{end}" * 90_000).encode())
    assert read_table(str(path)).rows.shape == (90_000, 2)


def test_too_many_columns_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.datasets.delimited._MOST_COLUMNS", 3)
    with pytest.raises(DataFileError, match="has 4 columns: expected 3 at most"):
        read_table(str(write(tmp_path / "a.csv", b"1,2,3,4\n")))


# --- the memory that a process takes -------------------------------------------------------------

BOMBS = {
    "a.idx.gz": lambda: gzip.compress(idx(3, 6, data=bytes(150 * MEGABYTE)), 1),
    "a.npz": lambda: zipped(npy(10**9, 10**6) + bytes(150 * MEGABYTE)),
    "header.npz": lambda: zipped(npy(3, length=150 * MEGABYTE)),
    "a.csv.gz": lambda: gzip.compress(b"1," * (75 * MEGABYTE), 1),
}
MEASURE = """
import resource, sys
from dkae.datasets.tables import read_table
import pandas

before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_table(sys.argv[1])
except ValueError as error:
    print(error, file=sys.stderr)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_takes_little_memory(name, tmp_path):
    path = write(tmp_path / name, BOMBS[name]())
    assert path.stat().st_size < 2 * MEGABYTE
    result = subprocess.run(
        [sys.executable, "-c", MEASURE, path], capture_output=True, text=True, check=True
    )
    assert name in result.stderr
    assert int(result.stdout) < 100  # megabytes
