"""Files of users are read, and each fault is named by file, line and column."""

import gzip
import io
import pickle
import struct
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from dkae.datasets import load_mnist20k
from dkae.tables import TableReader
from tests.tables.helpers import read_table


def write(path, content):
    """Write text or bytes, and return where."""
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# --- text ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2\n3,4\n", None),
        ("a,b\n1,2\n3,4", ["a", "b"]),
        ('"a, b","c ""d"""\n1,2\n"3","4"\n', ["a, b", 'c "d"']),
        ("\ufeffa,b\r\n1,2\r\n3,4\r\n", ["a", "b"]),
        ("\ufeff1,2\r\n3,4\r\n", None),
        ("\na,b\n\n1,2\n\n3,4\n\n", ["a", "b"]),
        ('"two\nlines",b\n1,2\n3,4\n', ["two\nlines", "b"]),
        ("größe,λ\n1.0, 2e0\n 3,+4\n", ["größe", "λ"]),
    ],
    ids=repr,
)
def test_header_and_rows_of_text(text, names, tmp_path):
    for name, content in (("t.csv", text), ("t.csv.gz", gzip.compress(text.encode()))):
        table = read_table(write(tmp_path / name, content))
        assert table.names == names
        np.testing.assert_array_equal(table.rows, [[1, 2], [3, 4]])


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet"])
def test_pandas_writes_what_is_read(ending, tmp_path):
    frame = pd.DataFrame(
        {"id": ["007", "x, y", "NA"], "a": [0.1, -2, 3e30], "yes": [True, False, True]}
    )
    path = tmp_path / f"t{ending}"
    if ending == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
    table = read_table(str(path), index="id")
    np.testing.assert_array_equal(table.rows, frame[["a", "yes"]].to_numpy(np.float32))
    assert list(table.index.values) == list(frame["id"])


def test_gaps_may_be_wanted(tmp_path):
    table = read_table(write(tmp_path / "t.csv", "a,b\n1,\n,2\nNA,nan\n"), gaps=True)
    nan = np.nan
    np.testing.assert_array_equal(table.rows, [[1, nan], [nan, 2], [nan, nan]])


#: The header is row 1, so the row of most files is their line.
BAD_FIELDS = {
    "a,b\n1,2\n3,four\n": "row 3 .the header is row 1., column 'b': 'four' is not a .*; encode",
    "a,b\n1,2\n3,\n": "row 3 .the header is row 1., column 'b': a gap; fill it, .* missing=",
    "a,b\n1,2\n3\n": "row 3 .the header is row 1.: Expected 2 columns, got 1",
    "a,b\n1,2\n3,-inf\n": "row 3 .*, column 'b': -inf is not finite in float32; correct it",
    "a,b\n1e300,2\n": "row 2 .the header is row 1., column 'a': inf is not finite in float32",
    "a,b\n1,2\n3,4,5\n": "row 3 .*: Expected 2 columns, got 3: 3,4,5; a field with ',' in it needs",
    "a,b\n1,2024-01-31\n": "row 2 .*, column 'b': '2024-01-31' is not a number",
    "a,b\n1,True\n2,\n": "row 3 .*, column 'b': a gap",
    "1,2\n3,x\n": "row 2 .from 1., column 1: 'x' is not a number",
    "1,2\n3,\n": "row 2 .from 1., column 1: a gap",
    "id,2019\n1,2\n": "row 1 .*, column 0: 'id' is not a number; a first line with a .* not read",
    "a,b\n" + "1,2\n" * 5000 + "3,x\n": "row 5002 .*, column 'b': 'x' is not a number",
    "a,b\n" + "1,2\n" * 5000 + "3,NA\n": "row 5002 .*, column 'b': a gap",
}


@pytest.mark.parametrize("text", BAD_FIELDS, ids=lambda text: repr(text[:20]))
def test_the_row_and_the_column_are_named(text, tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.tables.arrow.BLOCK_BYTES", 1000)
    for name, content in (("t.csv", text.encode()), ("t.csv.gz", gzip.compress(text.encode()))):
        with pytest.raises(ValueError, match=rf"{name}, {BAD_FIELDS[text]}"):
            list(TableReader(write(tmp_path / name, content)))


# --- Parquet -------------------------------------------------------------------------------------


def test_all_kinds_of_numbers_in_parquet(tmp_path):
    columns = [
        pa.array([1, 2], pa.int8()),
        pa.array([1, 2], pa.uint64()),
        pa.array([1, 2], pa.float16()),
        pa.array([Decimal(1), Decimal(2)]),
        pa.array([1, 2]).dictionary_encode(),
    ]
    pq.write_table(pa.table(columns, list("abcde")), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").rows.tolist() == [[1] * 5, [2] * 5]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["x", "y"], "column 'b': string is not a number; encode it as numbers"),
        (pa.array(["x", "y"]).dictionary_encode(), "column 'b': string is not a number"),
        ([date(2024, 1, 31)] * 2, "column 'b': date32.* is not a number"),
        ([[1], [2]], "column 'b': list<.*> is not a number"),
        ([1.0, None], r"row 1 \(from 0\), column 'b': a gap; fill it"),
        ([None, None], r"row 0 \(from 0\), column 'b': a gap"),
        ([1.0, -1e300], r"row 1 \(from 0\), column 'b': -inf is not finite in float32"),
    ],
    ids=str,
)
def test_a_column_of_parquet_is_named(column, message, tmp_path):
    pq.write_table(pa.table({"a": [1, 2], "b": column}), tmp_path / "t.parquet", row_group_size=1)
    with pytest.raises(ValueError, match=rf"t\.parquet, {message}"):
        read_table(str(tmp_path / "t.parquet"))


def test_the_index_of_pandas_is_a_column(tmp_path):
    """Row numbers must be named as the index, so that they do not become a feature in silence."""
    path, frame = tmp_path / "t.parquet", pd.DataFrame({"a": [1, 2, 3]})
    frame.to_parquet(path)
    assert read_table(path).names == ["a"]
    frame.set_index(pd.Index(["x", "y", "z"], name="id")).to_parquet(path)
    assert list(read_table(path, index="id").index.values) == ["x", "y", "z"]
    frame.set_index(pd.Index([5, 9, 1])).to_parquet(path)
    with pytest.raises(ValueError, match=r"column 1 has no name .* pandas .*: pass --index 1"):
        read_table(path)
    assert read_table(path, index="1").names == ["a"]


def test_odd_metadata_of_pandas_does_no_harm(tmp_path):
    for metadata in ("", "{", "[]", '{"index_columns": [3, {}, "no"]}', "[" * 9**5):
        table = pa.table({"a": [1, 2]}).replace_schema_metadata({"pandas": metadata})
        pq.write_table(table, tmp_path / "t.parquet")
        found = read_table(tmp_path / "t.parquet")
        assert (found.names, found.index, found.rows.tolist()) == (["a"], None, [[1], [2]])


# --- arrays --------------------------------------------------------------------------------------


def test_built_in_data_sets():
    np.testing.assert_array_equal(read_table("digits").rows, load_digits().data / 16)
    mnist = load_mnist20k(scaled=True)
    np.testing.assert_array_equal(read_table("mnist20k:test").rows, mnist.data[mnist.test])


def test_label_and_index_of_an_array(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    table = read_table(str(tmp_path / "a.npy"), label="2", index="0")
    assert (table.rows.tolist(), table.labels().tolist()) == ([[1], [4]], [2, 5])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_row_of_an_array_is_named(value, tmp_path):
    rows = np.zeros((9, 3))
    rows[7, 2] = value
    np.save(tmp_path / "a.npy", rows)
    for layout in ({}, {"columns": "2"}):
        with pytest.raises(ValueError, match=r"a\.npy, row 7 \(from 0\), column 2: "):
            list(TableReader(str(tmp_path / "a.npy"), **layout))


def test_a_file_that_is_cut_while_it_is_read(tmp_path, monkeypatch):
    """Reading beyond its end would end the process."""
    monkeypatch.setattr("dkae.tables.table.N_PIECE_NUMBERS", 100)
    np.save(tmp_path / "a.npy", np.zeros((9000, 3)))
    pieces = iter(TableReader(str(tmp_path / "a.npy")))
    next(pieces)
    with (tmp_path / "a.npy").open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(ValueError, match=r"a\.npy was truncated while it was read"):
        next(pieces)


# --- files that cannot be read -------------------------------------------------------------------


def saved(array, **options):
    """Return the bytes of a file .npy."""
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def announcing(*shape):
    """Return a file .npy that announces an array, and has none of it."""
    text = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    text += b" " * (117 - len(text)) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("exploded"),)


BOMB = np.array([[Bomb()]], dtype=object)
NUMBERS = saved(np.ones((9, 6), np.float32))
UNUSABLE = {
    "empty.csv": (b"", "has no rows"),
    "blank.csv": (b"\n\n", "has no rows"),
    "header.csv": (b"a,b\n", "has no rows"),
    "header_only.csv": (b"a,b", "has no rows"),
    "latin1.csv": ("größe,b\n1,2\n".encode("latin1"), "not a table of numbers: .*utf-8"),
    "below.csv": (
        b"a,b\n" + b"1,2\n" * 9999 + "1,ö\n".encode("latin1"),
        "row 10001 .*, column 'b'",
    ),
    "binary.tsv": (bytes(range(256)), "not a table of numbers"),
    "quote.csv": (b'a,b\n"1,2\n3,4\n', "row 2"),
    "line.csv": (b"1," * 9**8, "columns, more than 1000000: write it as .npy"),
    "long.csv": (b"a,b\n1,1\n" + b"0" * 2**25, "has a line of more than 16777216 bytes"),
    "bomb.csv.gz": (gzip.compress(bytes(2**26)), "not a table of numbers: field larger than"),
    "cut.csv.gz": (gzip.compress(b"a,b\n1,2\n" * 99)[:30], "not a table of numbers"),
    "text.csv.gz": (b"a,b\n1,2\n", "not a table of numbers: .*header"),
    "text.parquet": (b"a,b\n1,2\n", "cannot be read as Parquet"),
    "empty.npy": (b"", "not a NumPy file"),
    "cut.npy": (NUMBERS[:-1], "not a NumPy file of numbers .mmap length"),
    "pickle.npy": (pickle.dumps(Bomb()), "not a NumPy file"),
    "objects.npy": (saved(BOMB, allow_pickle=True), "not a NumPy file"),
    "text.npy": (saved(np.array([["a"] * 6] * 9)), "array of <U1 .*: expected rows of numbers"),
    "complex.npy": (saved(np.ones((9, 6)) * 1j), "array of complex128 .*: expected rows"),
    "scalar.npy": (saved(np.float32(3)), r"shape \(\): expected rows"),
    "vector.npy": (saved(np.ones(3)), r"shape \(3,\): expected rows"),
    "announced.npy": (announcing(10**9, 10**6), "not a NumPy file"),
    "overflow.npy": (announcing(2**63, 2), "not a NumPy file"),
    "archive.npy": (b"PK\3\4" + bytes(99), "not a NumPy file"),
    "rows.npz": (b"PK\3\4", "has the ending '.npz': expected .npy"),
    "rows.txt": (b"1,2\n", "has the ending '.txt': expected .npy"),
}


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", UNUSABLE)
def test_an_unusable_file_is_named(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, message = UNUSABLE[name]
    with pytest.raises(ValueError, match=rf"(?s){name}.*{message}"):
        read_table(write(tmp_path / name, content))
    assert not Path("exploded").exists()


@pytest.mark.parametrize("name", ["no.npy", "no.csv", "no.parquet", "."])
def test_a_missing_file_is_named(name):
    with pytest.raises(FileNotFoundError, match=rf"{name} is neither .* nor a data set .digits, "):
        read_table(name)


def test_without_pyarrow_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.tables.arrow.find_spec", lambda name: None)
    for name in ("t.csv", "t.parquet"):
        with pytest.raises(ValueError, match=rf"{name} needs pyarrow: pip install 'dkae\[table"):
            read_table(write(tmp_path / name, b"a,b\n1,2\n"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), name=st.sampled_from(["a.csv", "a.tsv.gz", "a.npy"]))
def test_garbage_is_rows_or_an_error_of_the_file(content, name, tmp_path):
    source = write(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    message = ""
    try:
        assert read_table(source, gaps=True).rows.dtype.kind in "biuf"
    except ValueError as error:
        message = str(error)
    assert not message or name in message
