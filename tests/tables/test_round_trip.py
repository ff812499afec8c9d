"""The law of tables: they come back as written, in any format, in pieces of any size."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkae.tables import Column, Table, TableReader
from dkae.tables import write as write_table
from tests.tables.helpers import full_disk, read_table

# Each example overwrites the same file, so sharing tmp_path between examples is harmless.
shares_tmp_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXT = [".csv", ".tsv"]
ENDINGS = [*TEXT, ".parquet"]


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


fields = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ["NA", "", "nan", "a\rb", "\r", "a\r\nb", '"', '""', ",", "\t", "a.b", " x ", "007", "\ufeff"]
)  # fmt: skip
names = fields.filter(lambda name: name.strip() and not is_number(name))
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw):
    """Return a table with an index and a label; it may have gaps."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 4)))
    rows = draw(hnp.arrays(np.float32, shape, elements=floats))
    if draw(st.booleans()):
        rows[draw(hnp.arrays(bool, shape))] = np.nan
    header = draw(st.lists(names, min_size=shape[1] + 2, max_size=shape[1] + 2, unique=True))
    column = st.lists(fields, min_size=shape[0], max_size=shape[0])
    index, label = (np.array(draw(column), dtype=object) for _ in range(2))
    return Table(rows, header[1:-1], Column(header[0], index), Column(header[-1], label))


def write(path, table, n_rows=10**6):
    """Write a table in pieces, and return where."""
    parts = [slice(start, start + n_rows) for start in range(0, len(table.rows), n_rows)]
    assert write_table(path, (part_of(table, part) for part in parts)) == len(table.rows)
    return str(path)


def part_of(table, part):
    index, label = (c and Column(c.name, c.values[part]) for c in (table.index, table.label))
    return Table(table.rows[part], table.names, index, label)


def assert_same(back, table):
    np.testing.assert_array_equal(back.rows, table.rows)
    assert back.names == table.names
    for found, expected in ((back.index, table.index), (back.label, table.label)):
        assert found.name == expected.name
        assert list(found.values) == expected.values.tolist()


@pytest.mark.parametrize("ending", ENDINGS)
@shares_tmp_path
@given(table=tables(), n_rows=st.integers(1, 4))
def test_a_table_comes_back(ending, table, n_rows, tmp_path):
    source = write(tmp_path / f"t{ending}", table, n_rows)
    label = str(len(table.names) + 1)
    assert_same(read_table(source, index="0", label=label, gaps=True), table)


@shares_tmp_path
@given(rows=hnp.arrays(st.sampled_from(["f4", "f8", "u1"]), st.tuples(*[st.integers(1, 5)] * 3)))
def test_an_array_comes_back(rows, tmp_path):
    source = write(tmp_path / "a.npy", Table(rows), 2)
    back = np.load(source)
    assert back.dtype == rows.dtype
    np.testing.assert_array_equal(back, rows)
    np.testing.assert_array_equal(read_table(source).rows, rows)


def test_nine_digits_are_enough_for_any_float32(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, (10_000, 4), dtype=np.uint32)
    rows = np.nan_to_num(bits.view(np.float32))
    assert read_table(write(tmp_path / "t.csv", Table(rows))).rows.tobytes() == rows.tobytes()


# --- in pieces -----------------------------------------------------------------------------------

LONG = Table(
    np.random.default_rng(0).random((500, 3), dtype=np.float32),
    ["a", "b\rc", "d"],
    Column("id", np.array([f"{i:03}\n" for i in range(500)], dtype=object)),
    Column("kind", np.array(["cat", "NA"] * 250, dtype=object)),
)
LAYOUT = {"index": "id", "label": "kind"}


@pytest.fixture
def small_pieces(monkeypatch):
    """Let a piece have about 30 rows."""
    monkeypatch.setattr("dkae.tables.arrow.BLOCK_BYTES", 1200)
    monkeypatch.setattr("dkae.tables.table.N_PIECE_NUMBERS", 100)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("ending", "out"),
    [(".csv", ".parquet"), (".tsv", ".csv"), (".parquet", ".tsv"), (".csv.gz", ".csv")],
)
def test_a_stream_is_the_whole(ending, out, tmp_path):
    source = write(tmp_path / f"t{ending.removesuffix('.gz')}", LONG)
    if ending == ".csv.gz":
        (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
        source = str(tmp_path / "t.csv.gz")
    reader = TableReader(source, **LAYOUT)
    pieces = list(reader)
    assert reader.n_rows == (500 if ending == ".parquet" else None)
    assert len(pieces) > 5
    assert max(len(piece.rows) for piece in pieces) < 100
    write_table(tmp_path / f"copy{out}", pieces)
    assert_same(read_table(tmp_path / f"copy{out}", **LAYOUT), LONG)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("ending", [*ENDINGS, ".npy"])
def test_a_table_is_read_into_a_temporary_file(ending, tmp_path):
    source = write(tmp_path / f"t{ending}", LONG)
    layout = {"columns": "1,0", "label": "2"} if ending == ".npy" else LAYOUT
    table = read_table(source, **layout, scale=2)
    assert isinstance(table.rows, np.memmap)
    chosen = LONG.rows[:, [1, 0]] if ending == ".npy" else LONG.rows
    np.testing.assert_array_equal(table.rows, chosen / 2)
    labels = LONG.rows[:, 2] if ending == ".npy" else ["cat", None] * 250
    assert table.labels().tolist() == list(labels)


def test_a_mapped_array_is_not_read_whole(tmp_path, small_pieces):
    source = write(tmp_path / "a.npy", LONG)
    assert isinstance(read_table(source).rows, np.memmap)
    assert read_table(source, scale=2).rows[:1].tolist() == [(LONG.rows[0] / 2).tolist()]
    assert [len(piece.rows) for piece in TableReader(source)][:2] == [33, 33]


def test_a_scale_out_of_range_is_an_error(tmp_path):
    """Rows divided by 1e308 are zeros."""
    source = write(tmp_path / "a.npy", LONG)
    for scale in (0, -1, np.nan, 1e308, 1e-308):
        with pytest.raises(ValueError, match=r"--scale=.* must be a number in \[1e-15, 1e\+15\]"):
            TableReader(source, scale=scale)


def test_a_full_disk_names_the_folder(tmp_path):
    source = write(tmp_path / "t.csv", LONG)
    with full_disk(), pytest.raises(OSError, match=r"rows do not fit into .*: set TMPDIR"):
        read_table(source, **LAYOUT)


# --- limits of the formats -----------------------------------------------------------------------


def test_no_header_is_written_that_would_be_read_as_a_row(tmp_path):
    table = Table(LONG.rows, ["2019", "b", "c"])
    back = read_table(write(tmp_path / "t.csv", table))
    assert back.names is None
    np.testing.assert_array_equal(back.rows, table.rows)
    assert read_table(write(tmp_path / "t.parquet", table)).names == table.names


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (Table(LONG.rows, ["a", "b", "c"], LONG.index, Column("a", LONG.label.values)), "name 'a'"),
        (Table(LONG.rows[:, None]), r"rows of the shape \(1, 3\) are no table .*: write \.npy"),
    ],
)
def test_a_table_that_no_file_holds_is_an_error(table, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "t.csv", table)


def test_pages_of_parquet_have_checksums(tmp_path):
    """A flipped bit in a page is an error, not another number."""
    source = tmp_path / "t.parquet"
    write(source, Table(LONG.rows))
    content = bytearray(source.read_bytes())
    content[content.index(LONG.rows[0, 0].tobytes())] ^= 1
    source.write_bytes(content)
    with pytest.raises(ValueError, match=r"t\.parquet cannot be read as Parquet.*CRC"):
        read_table(str(source))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "2", "1"], [1, 2, 1]),
        (["0.10", "", "NA"], [0.1, np.nan, np.nan]),
        (["cat", "", "dog"], ["cat", None, "dog"]),
    ],
)
def test_labels_are_numbers_if_all_of_them_are(values, expected):
    table = Table(np.zeros((3, 1)), label=Column("y", np.array(values, dtype=object)))
    np.testing.assert_array_equal(table.labels(), np.array(expected))
    assert Table(np.zeros((3, 1))).labels() is None
