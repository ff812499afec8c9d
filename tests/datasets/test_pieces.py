"""Tables in pieces are those of one piece; an error names the row of the file, not of a piece."""

import gzip
import io
import os
import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dkae.datasets import DataFileError, lazy, tables
from dkae.datasets.npy import NpyWriter
from dkae.datasets.tables import Column, GapError, Layout, Table, TableReader, write_table
from dkae.datasets.writers import writing
from dkae.rows import RowArray

SOURCES = ["rows.npy", "rows.npz", "rows.csv", "rows.tsv.gz", "rows.parquet"]
OUTPUTS = ["out.npy", "out.npz", "out.csv", "out.tsv", "out.parquet"]
LAYOUT = Layout(label="4", index="0")
ROWS = np.random.default_rng(0).random((23, 3), dtype=np.float32)


@pytest.fixture
def small_pieces(monkeypatch):
    """Let pieces have one or two rows of the tables here."""
    monkeypatch.setattr("dkae.datasets.delimited._CHUNK", 10)
    monkeypatch.setattr("dkae.datasets.sizes.N_PIECE_NUMBERS", 10)


@pytest.fixture(params=["with pandas", "without pandas"])
def reader(request, monkeypatch):
    if request.param == "without pandas":
        monkeypatch.setitem(sys.modules, "pandas", None)


def write_source(folder, name, first=100):
    """Write rows between an index and a label, all of them numbers."""
    path = folder / name
    index, label = np.arange(first, first + 23), np.arange(23) % 3
    frame = pd.DataFrame({"id": index, **dict(zip("abc", ROWS.T, strict=True)), "y": label})
    if name.endswith(".parquet"):
        frame.to_parquet(path, index=False, row_group_size=7)
    elif name.endswith((".npy", ".npz")):
        save = np.save if name.endswith(".npy") else np.savez
        save(path, frame.to_numpy(np.float32))
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    return str(path)


def write_all(writer, pieces):
    with writer as opened:
        for piece in pieces:
            opened.append(piece)


def same(a, b):
    assert (a is None) == (b is None)
    if a is not None:
        assert a.name == b.name
        assert a.values.dtype == b.values.dtype
        assert a.values.tolist() == b.values.tolist()


# --- pieces are what they are pieces of ----------------------------------------------------------


@pytest.mark.parametrize("out", OUTPUTS)
@pytest.mark.parametrize("name", SOURCES)
def test_a_streamed_copy_is_the_copy(name, out, tmp_path, monkeypatch, request):
    source = write_source(tmp_path, name)
    whole = TableReader(source, LAYOUT).read()
    write_table(tmp_path / f"whole_{out}", whole)
    request.getfixturevalue("small_pieces")
    pieces = list(TableReader(source, LAYOUT))
    assert len(pieces) > 7
    assert max(len(piece.rows) for piece in pieces) <= 3
    write_all(writing(tmp_path / out), pieces)
    if out == "out.parquet":
        frames = [pd.read_parquet(tmp_path / name) for name in (out, f"whole_{out}")]
        pd.testing.assert_frame_equal(*frames)
    else:
        assert (tmp_path / out).read_bytes() == (tmp_path / f"whole_{out}").read_bytes()


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("with_pandas", [True, False])
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv.gz"])
def test_both_readers_of_text_give_the_same_pieces(name, with_pandas, tmp_path, monkeypatch):
    source = write_source(tmp_path, name)
    if not with_pandas:
        monkeypatch.setitem(sys.modules, "pandas", None)
    pieces = list(TableReader(source, LAYOUT))
    np.testing.assert_array_equal(np.concatenate([p.rows for p in pieces]), ROWS)
    assert [v for p in pieces for v in p.index.values] == [str(i) for i in range(100, 123)]
    assert [v for p in pieces for v in p.label.values] == [str(i % 3) for i in range(23)]


@pytest.mark.usefixtures("reader", "small_pieces")
def test_blank_lines_and_lines_in_quotes_between_pieces(tmp_path):
    text = "a,b,y\n" + '1,2,"x\ny"\n\n\n3,4,\n' * 5
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    table = TableReader(str(tmp_path / "t.csv"), Layout(label="y")).read()
    assert table.rows.tolist() == [[1, 2], [3, 4]] * 5
    assert table.label.values.tolist() == ["x\ny", ""] * 5


@pytest.mark.parametrize("name", SOURCES)
def test_rows_are_divided_by_the_scale(name, tmp_path, small_pieces):
    source = write_source(tmp_path, name)
    expected = RowArray(ROWS, scale=255)[:]
    reader = TableReader(source, LAYOUT, scale=255)
    np.testing.assert_array_equal(reader.read().rows, expected)
    pieces = list(reader)
    np.testing.assert_array_equal(np.concatenate([p.rows for p in pieces]), expected)
    assert float(pieces[0].index.values[0]) == 100  # which is no feature


@pytest.mark.parametrize("name", SOURCES)
def test_the_number_of_rows_is_known_but_of_text(name, tmp_path):
    n_rows = TableReader(write_source(tmp_path, name), LAYOUT).n_rows
    assert n_rows == (None if ".csv" in name or ".tsv" in name else 23)


# --- memory --------------------------------------------------------------------------------------


def test_a_mapped_file_is_never_read_whole(tmp_path, monkeypatch, small_pieces):
    reader = TableReader(write_source(tmp_path, "rows.npy"), LAYOUT, scale=2)
    rows = reader.read_or_map().rows
    assert isinstance(rows, lazy.ChangedRows)
    sizes, change = [], rows.change
    monkeypatch.setattr(rows, "change", lambda part: sizes.append(len(part)) or change(part))
    np.testing.assert_array_equal(np.concatenate([p.rows for p in reader]), ROWS / 2)
    assert max(sizes) <= 3
    np.testing.assert_array_equal(RowArray(rows)[[7, 2]], ROWS[[7, 2]] / 2)


def test_pages_of_a_mapped_file_are_let_go(tmp_path, monkeypatch, small_pieces):
    released = []
    monkeypatch.setattr(lazy, "release", released.append)
    np.save(tmp_path / "a.npy", ROWS)
    assert len(released) == 0
    assert len(list(TableReader(str(tmp_path / "a.npy")))) == len(released) == 8
    monkeypatch.setattr(lazy, "_MOST_MAPPED", 1)
    lazy.ChangedRows(np.load(tmp_path / "a.npy", mmap_mode="r"), lambda rows: rows[:, :1])[0:4]
    assert len(released) == 9


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv.gz", "rows.parquet"])
def test_a_large_table_is_spooled(name, tmp_path, monkeypatch):
    source = write_source(tmp_path, name)
    whole = TableReader(source, LAYOUT).read_or_map()
    assert not isinstance(whole.rows, np.memmap)
    monkeypatch.setattr(tables, "N_SPOOLED_BYTES", 1)
    monkeypatch.setattr(TableReader, "read", lambda self: pytest.fail("it was read whole"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(lazy.tempfile, "tempdir", str(tmp_path / "temporary"))
    spooled = TableReader(source, LAYOUT).read_or_map()
    assert list((tmp_path / "temporary").iterdir()) == []  # what has no name is not left behind
    assert isinstance(spooled.rows, np.memmap)
    np.testing.assert_array_equal(spooled.rows, whole.rows)
    same(spooled.index, whole.index)
    same(spooled.label, whole.label)
    assert spooled.names == whole.names


def test_a_full_disk_says_where_rows_were_to_go(monkeypatch):
    class Full(io.BytesIO):
        def write(self, content):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(lazy.tempfile, "TemporaryFile", Full)
    with pytest.raises(OSError, match=r"rows do not fit into .*No space left.*: set TMPDIR to"):
        lazy.spool([ROWS])


def test_float64_is_kept_until_it_is_changed(tmp_path):
    """What is 1 apart at 1e9 is the same number in float32."""
    np.save(tmp_path / "a.npy", np.array([[1e9, 0], [1e9 + 1, 0]]))
    rows = TableReader(str(tmp_path / "a.npy"), Layout(columns="0")).read_or_map().rows
    changed = lazy.ChangedRows(rows, lambda part: part - 1e9)
    np.testing.assert_array_equal(RowArray(changed)[:], [[0], [1]])


# --- .npy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pieces", [1, 9, 12])
def test_npy_in_pieces_is_the_file_that_numpy_writes(n_pieces, tmp_path):
    parts = np.array_split(np.asfortranarray(np.vstack([ROWS] * 50)), n_pieces)
    write_all(NpyWriter(tmp_path / "a.npy"), parts)
    np.save(tmp_path / "b.npy", np.ascontiguousarray(np.vstack(parts)))
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()


def test_a_header_that_grows_is_refused(tmp_path, monkeypatch):
    writer = NpyWriter(tmp_path / "a.npy")
    lengths = iter([128, 192])
    monkeypatch.setattr(writer, "_write_header", lambda: next(lengths))
    with pytest.raises(OSError, match="header grew from 128 to 192 bytes, and would replace rows"):
        write_all(writer, [ROWS])


def test_the_header_has_space_for_any_number_of_rows(tmp_path):
    lengths = set()
    for n in (0, 10**9, 10**18):
        writer = NpyWriter(tmp_path / "a.npy")
        with writer:
            writer._shape, writer._dtype = (n, 3), np.dtype(np.float32)
            writer._n_header_bytes = writer._write_header()
        lengths.add(writer._n_header_bytes)
    assert len(lengths) == 1


def test_rows_of_another_width_are_no_piece(tmp_path):
    message = r"rows have the shape \(2,\), after \(3,\)"
    with pytest.raises(ValueError, match=message):
        write_all(NpyWriter(tmp_path / "a.npy"), [ROWS, ROWS[:, :2]])


# --- labels are copied as they were --------------------------------------------------------------


@pytest.mark.parametrize("out", ["out.csv", "out.parquet"])
@pytest.mark.parametrize(
    "label",
    [
        pa.array([1, 2, 3, None, 5, 6, 7, 8]),
        pa.array([1, 2, 3, 4, 5, 6, 7, 8]),
        pa.array([None] * 6 + [7, 8]),
        pa.array(["a", "b", "c", "d", None, None, None, "h"]),
        pa.array([None, None, None, None, "e", None, None, "h"]),
        pa.array([True, False, None, None, True, True, True, True]),
        pa.array([0.5, None, 2, 3, 4, 5, 6, 7]),
    ],
    ids=lambda array: str(array.to_pylist()),
)
def test_labels_of_parquet(label, out, tmp_path, small_pieces):
    table = pa.table({"a": np.arange(8.0), "b": np.arange(8.0), "y": label})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=2)
    pieces = TableReader(str(tmp_path / "in.parquet"), Layout(label="y"))
    write_all(writing(tmp_path / out), pieces)
    if out == "out.parquet":
        assert pq.read_table(tmp_path / out)["y"].to_pylist() == label.to_pylist()
        return
    fields = (tmp_path / out).read_text(encoding="utf-8").splitlines()[1:]
    written = ["" if v is None else str(v).removesuffix(".0") for v in label.to_pylist()]
    assert [f.split(",")[2].replace("nan", "") for f in fields] == written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (["1", "2", "3", "4"], [1, 2, 3, 4]),
        (["1", "2", "3", "04"], ["1", "2", "3", "04"]),
        (["x", "2", "3", "4"], ["x", "2", "3", "4"]),
        (["1", "2", "", "4"], ["1", "2", "", "4"]),
    ],
)
def test_identifiers_are_text_if_a_late_piece_has_text(text, expected, tmp_path):
    path = tmp_path / "t.parquet"
    columns = [Column("id", np.array([value], dtype=object)) for value in text]
    write_all(writing(path), [Table(np.float32([[i]]), ["a"], c) for i, c in enumerate(columns)])
    frame = pd.read_parquet(path)
    assert (frame["id"].tolist(), frame["a"].tolist()) == (expected, [0, 1, 2, 3])
    assert list(tmp_path.iterdir()) == [path]


def test_a_column_of_two_types_is_refused(tmp_path):
    message = "column 'id' holds string in some rows and double in others: give all of them one"
    columns = [Column("id", np.array([value], dtype=object)) for value in ("x", 0.5)]
    with pytest.raises(ValueError, match=message):
        write_all(writing(tmp_path / "t.parquet"), [Table(ROWS[:1], None, c) for c in columns])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("index", "name", "values"),
    [
        (pd.RangeIndex(9), None, None),
        (pd.RangeIndex(5, 14), "index", list(range(5, 14))),
        (pd.RangeIndex(0, 18, 2, name="n"), "n", list(range(0, 18, 2))),
        (pd.RangeIndex(9, name="n"), "n", list(range(9))),
        (pd.Index(range(9)).astype("int32"), None, None),
        (pd.Index([*range(8), 3]), "index", [*range(8), 3]),
        (pd.Index(list("abcdefghi"), name="id"), "id", list("abcdefghi")),
    ],
    ids=str,
)
def test_the_index_of_a_frame_in_pieces(index, name, values, tmp_path, small_pieces):
    frame = pd.DataFrame({"a": np.arange(9.0), "b": np.arange(9.0)}, index=index)
    frame.to_parquet(tmp_path / "t.parquet")
    table = TableReader(str(tmp_path / "t.parquet")).read()
    assert table.names == ["a", "b"]
    found = table.index and (table.index.name, table.index.values.tolist())
    assert found == (None if name is None else (name, values))


def test_levels_of_an_index_are_columns(tmp_path, small_pieces):
    levels = pd.MultiIndex.from_arrays([range(9), range(9, 18)], names=["k", None])
    pd.DataFrame({"a": np.arange(9.0)}, index=levels).to_parquet(tmp_path / "t.parquet")
    table = TableReader(str(tmp_path / "t.parquet")).read()
    assert (table.names, table.rows[8].tolist()) == (["k", "level_1", "a"], [8, 17, 8])


# --- what is wrong in a late piece ---------------------------------------------------------------


def drain(path, **wishes):
    for _ in TableReader(str(path), **wishes):
        pass


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, r"a gap \(NaN\); fill it"), (np.inf, "inf is not finite in float32; correct it")],
)
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.parquet"])
def test_the_row_of_the_file_is_named(value, message, name, tmp_path):
    rows = np.arange(300, dtype=np.float32).reshape(100, 3)
    rows[71, 2] = value
    if name == "a.parquet":
        pd.DataFrame(rows, columns=list("abc")).to_parquet(tmp_path / name, row_group_size=9)
    else:
        (np.save if name == "a.npy" else np.savez)(tmp_path / name, rows)
    column = "'c'" if name == "a.parquet" else "2"
    message = rf"{re.escape(name)}, row 71 \(from 0\), column {column}: {message}"
    with pytest.raises(DataFileError, match=message):
        drain(tmp_path / name)
    if np.isnan(value):
        drain(tmp_path / name, gaps=True)


@pytest.mark.usefixtures("reader", "small_pieces")
@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("x", "line 52, column 'b': 'x' is not a number"),
        ("NaN", r"line 52, column 'b': a gap \(NaN\); fill it"),
        ("inf", "line 52, column 'b': inf is not finite"),
        ("2,3", "line 52: more fields than the first line, which has 2"),
    ],
)
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_the_line_of_the_file_is_named(field, message, ending, tmp_path):
    content = ("a,b\n" + "1,2\n" * 50 + f"3,{field}\n" + "1,2\n" * 50).encode()
    (tmp_path / f"t{ending}").write_bytes(gzip.compress(content) if ".gz" in ending else content)
    with pytest.raises(DataFileError, match=message):
        drain(tmp_path / f"t{ending}")


def test_a_gap_in_a_late_row_group_is_a_gap(tmp_path):
    table = pa.table({"a": pa.array([1, 2, 3, 4, None])})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    with pytest.raises(GapError, match=r"t\.parquet, row 4 \(from 0\), column 'a': a gap"):
        drain(tmp_path / "t.parquet")


def test_a_damaged_row_group_is_an_error_of_the_file(tmp_path, small_pieces):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"a": np.random.default_rng(0).random(4000)})
    frame.to_parquet(path, row_group_size=1000)
    content = bytearray(path.read_bytes())
    start = pq.read_metadata(path).row_group(2).column(0).dictionary_page_offset
    content[start : start + 40] = b"\xff" * 40
    path.write_bytes(content)
    with pytest.raises(DataFileError, match=r"t\.parquet cannot be read as Parquet"):
        drain(path)


@pytest.mark.parametrize("layout", [Layout(), Layout(columns="0")], ids=["as it is", "columns"])
def test_a_file_that_is_cut_while_it_is_read(layout, tmp_path, small_pieces):
    np.save(tmp_path / "a.npy", np.zeros((9000, 3), np.float32))
    pieces = iter(TableReader(str(tmp_path / "a.npy"), layout))
    next(pieces)
    os.truncate(tmp_path / "a.npy", 5000)
    with pytest.raises(ValueError, match=r"a\.npy had .* bytes or more and now has 5000: it was"):
        next(pieces)
