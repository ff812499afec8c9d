"""Tests of tables: what pandas writes is read, what is no number is named, and names are kept."""

import gzip
import sys
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkae.datasets import DataFileError
from dkae.datasets.tables import Column, GapError, Layout, Table, read_table, write_table

ENDINGS = [".csv", ".tsv", ".parquet"]
TEXT = [".csv", ".tsv"]
SEPARATORS = {".csv": ",", ".tsv": "\t"}
FRAME = pd.DataFrame(
    {
        "id": ["007", "x, y", "NA"],
        "a": [0.1, -2.0, 3e30],
        "b": [1, 2, 3],
        "yes": [True, False, True],
        "kind": ["cat", "dog", "cat"],
    }
)
LAYOUT = Layout(label="kind", index="id")
FEATURES = ["a", "b", "yes"]

# Each example overwrites the same file, so sharing tmp_path between examples is harmless.
shares_tmp_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def no_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)


@pytest.fixture(params=["with pandas", "without pandas"])
def reader(request):
    """Run a test with both readers of text."""
    if request.param == "without pandas":
        request.getfixturevalue("no_pandas")


def write_frame(path, frame=FRAME, **options):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False, **options)
    else:
        frame.to_csv(path, index=False, sep=SEPARATORS[path.suffix], **options)
    return str(path)


def write_text(folder, text, name="rows.csv"):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def read_frame(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    # As text, to see the very digits that were written.
    return pd.read_csv(path, sep=SEPARATORS[path.suffix], dtype=str, keep_default_na=False)


# --- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_pandas_writes_is_read(ending, tmp_path):
    table = read_table(write_frame(tmp_path / f"t{ending}"), LAYOUT)
    assert table.rows.dtype == np.float32
    np.testing.assert_array_equal(table.rows, FRAME[FEATURES].to_numpy(np.float32))
    assert table.names == FEATURES
    assert (table.index.name, list(table.index.values)) == ("id", ["007", "x, y", "NA"])
    assert (table.label.name, list(table.label.values)) == ("kind", ["cat", "dog", "cat"])


@pytest.mark.parametrize("ending", TEXT)
def test_text_is_read_without_pandas(ending, tmp_path, monkeypatch):
    source = write_frame(tmp_path / f"t{ending}", FRAME.drop(columns="yes"))
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pandas", None)
        table = read_table(source, LAYOUT)
    np.testing.assert_array_equal(table.rows, FRAME[["a", "b"]].to_numpy(np.float32))
    assert table.names == ["a", "b"]
    assert list(table.index.values) == ["007", "x, y", "NA"]
    assert list(table.label.values) == ["cat", "dog", "cat"]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("1,2\n3,4\n", None),
        ("a,b\n1,2\n3,4", ["a", "b"]),
        ('"a, b","c ""d"""\n1,2\n"3","4"\n', ["a, b", 'c "d"']),
        ("\ufeffa,b\r\n1,2\r\n3,4\r\n", ["a", "b"]),
        ("\na,b\n\n1,2\n\n3,4\n\n", ["a", "b"]),
        ('"two\nlines",b\n1,2\n3,4\n', ["two\nlines", "b"]),
        ("größe,λ\n1.0, 2e0\n 3,+4\n", ["größe", "λ"]),
    ],
    ids=repr,
)
def test_header_and_rows_of_text(text, names, tmp_path):
    table = read_table(write_text(tmp_path, text))
    assert table.names == names
    np.testing.assert_array_equal(table.rows, [[1, 2], [3, 4]])


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.tsv.gz"])
def test_gzipped_text(name, tmp_path):
    separator = SEPARATORS[f".{name.split('.')[1]}"]
    text = separator.join("ab") + "\n" + separator.join("12") + "\n"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    table = read_table(str(tmp_path / name))
    assert (table.names, table.rows.tolist()) == (["a", "b"], [[1, 2]])


def test_rows_in_several_chunks_are_those_of_one(tmp_path, monkeypatch):
    source = write_frame(tmp_path / "t.csv", pd.concat([FRAME] * 5))
    whole = read_table(source, LAYOUT)
    monkeypatch.setattr("dkae.datasets.delimited._CHUNK", 8)  # one row of five columns
    parts = read_table(source, LAYOUT)
    np.testing.assert_array_equal(parts.rows, whole.rows)
    assert list(parts.index.values) == list(FRAME["id"]) * 5


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2], dtype="Int64"),
        pd.Series([1, 2], dtype="category"),
        pd.Series([Decimal(1), Decimal(2)]),
        pd.Series([1, 2], dtype="float16"),
    ],
    ids=lambda column: str(column.dtype),
)
def test_all_kinds_of_numbers_in_parquet(column, tmp_path):
    table = read_table(write_frame(tmp_path / "t.parquet", pd.DataFrame({"a": column})))
    assert table.rows.tolist() == [[1], [2]]


def test_the_index_that_pandas_stores_is_the_index(tmp_path):
    FRAME[["a", "b"]].set_index(FRAME["id"]).to_parquet(tmp_path / "t.parquet")
    table = read_table(str(tmp_path / "t.parquet"))
    assert (table.names, table.index.name) == (["a", "b"], "id")
    assert list(table.index.values) == ["007", "x, y", "NA"]


def test_rows_left_out_before_parquet_was_written_keep_their_numbers(tmp_path):
    FRAME[["a", "b"]].iloc[[2, 0]].to_parquet(tmp_path / "t.parquet")
    table = read_table(str(tmp_path / "t.parquet"))
    assert (table.index.name, table.index.values.tolist()) == ("index", [2, 0])


def test_an_array_is_a_table_without_names(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(6.0).reshape(2, 3))
    table = read_table(str(tmp_path / "a.npy"))
    assert isinstance(table.rows, np.memmap)  # not read whole
    chosen = read_table(str(tmp_path / "a.npy"), Layout(columns="2", label="0"))
    assert (chosen.rows.tolist(), chosen.names) == ([[2], [5]], None)
    assert chosen.label.values.tolist() == [0, 3]


# --- choosing columns ----------------------------------------------------------------------------

ABC = "a,b,c\n1,2,3\n4,5,6\n"


@pytest.mark.parametrize(
    ("columns", "names", "first"),
    [("c,a", ["c", "a"], [3, 1]), ("2, 0", ["c", "a"], [3, 1]), ("1", ["b"], [2])],
)
def test_columns_by_name_or_position(columns, names, first, tmp_path):
    table = read_table(write_text(tmp_path, ABC), Layout(columns=columns))
    assert (table.names, table.rows[0].tolist()) == (names, first)


def test_a_name_with_a_comma_stands_in_quotes(tmp_path):
    source = write_text(tmp_path, '"a,b",c\n1,2\n')
    assert read_table(source, Layout(columns='"a,b"')).names == ["a,b"]


def test_blanks_around_a_name_need_not_be_given(tmp_path):
    table = read_table(write_text(tmp_path, "a, b\n1, 2\n"), Layout(columns="b"))
    assert (table.names, table.rows.tolist()) == ([" b"], [[2]])


def test_a_name_goes_before_a_position(tmp_path):
    frame = pd.DataFrame({"1": [10.0], "b": [20.0]})
    table = read_table(write_frame(tmp_path / "t.parquet", frame), Layout(columns="1"))
    assert (table.names, table.rows.tolist()) == (["1"], [[10]])


def test_features_come_in_the_order_of_the_model(tmp_path):
    source = write_text(tmp_path, ABC)
    table = read_table(source, Layout(label="b"), wanted=["c", "a"])
    assert (table.names, table.rows.tolist()) == (["c", "a"], [[3, 1], [6, 4]])


def test_columns_may_leave_out_what_the_model_does_not_know(tmp_path):
    table = read_table(write_text(tmp_path, ABC), Layout(columns="a,c"), wanted=["c", "a"])
    assert table.names == ["c", "a"]


def test_a_partial_layout_does_without_what_is_not_there(tmp_path):
    layout = Layout(label="c", index="id", is_partial=True)
    table = read_table(write_text(tmp_path, ABC), layout)
    assert (table.names, table.label.name, table.index) == (["a", "b"], "c", None)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"columns": ""}, "--columns is empty: name the features"),
        ({"columns": " , "}, "--columns is empty: name the features"),
        ({"columns": "a\nb"}, r"--columns 'a\\nb' is not a list of names: separate them by commas"),
        ({"columns": "a,-1"}, "--columns -1: positions count from 0, and are not negative"),
        ({"columns": "3"}, r"--columns '3' is not there: .*rows\.csv has the columns 0 to 2$"),
        ({"columns": "a,a"}, "--columns has 'a' twice: name each column once"),
        ({"columns": "a,0"}, "--columns has 'a' twice: name each column once"),
        ({"columns": "a,b", "label": "b"}, "--columns has 'b', which is the label: leave it out"),
        ({"columns": "a", "index": "0"}, "--columns has 'a', which is the index: leave it out"),
        ({"label": "a", "index": "a"}, "--label and --index are both 'a': give one of them"),
        ({"label": "d"}, r"--label 'd' is not there: .*rows\.csv has the columns 'a', 'b', 'c'$"),
        ({"index": "aa"}, r"--index 'aa' is not there: .*; did you mean 'a'\?$"),
    ],
    ids=str,
)
def test_a_layout_that_cannot_be_is_refused(layout, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_table(write_text(tmp_path, ABC), Layout(**layout))


def test_names_need_a_header(tmp_path):
    message = r"--label 'a' is not there: .* has the columns 0 to 1 and no header with names$"
    with pytest.raises(ValueError, match=message):
        read_table(write_text(tmp_path, "1,2\n"), Layout(label="a"))


def test_nothing_is_left(tmp_path):
    with pytest.raises(DataFileError, match=r"rows\.csv has no column left that could be a feat"):
        read_table(write_text(tmp_path, "a,b\n1,2\n"), Layout(label="a", index="b"))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["a", "b", "c", "speed"], r"rows\.csv lacks 'speed', which the model was fitted to$"),
        (["a", "b", "cc"], r"lacks 'cc', which the model was fitted to; did you mean 'c'\?$"),
        (["c", "a"], "has 'b', which the model was not fitted to: name it with --label or --index"),
        (2, "has 3 columns of features, and the model expects 2: choose them with --columns"),
    ],
)
def test_columns_that_do_not_fit_the_model_are_named(wanted, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read_table(write_text(tmp_path, ABC), wanted=wanted)


def test_long_lists_of_names_are_cut(tmp_path):
    with pytest.raises(ValueError, match="lacks 'x0', 'x1', 'x2', 'x3', 'x4' and 95 more, which"):
        read_table(write_text(tmp_path, ABC), wanted=[f"x{i}" for i in range(100)])


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv"])
def test_names_that_occur_twice_are_refused(name, tmp_path):
    separator = SEPARATORS[name[4:]]
    source = write_text(tmp_path, separator.join("aab") + "\n" + separator.join("123"), name)
    with pytest.raises(DataFileError, match="more than one column with the name 'a': rename them"):
        read_table(source)


def test_the_row_numbers_that_pandas_writes_are_no_feature(tmp_path):
    FRAME[["a", "b"]].to_csv(tmp_path / "t.csv")
    message = r"column 0 has no name in the header.*: pass --index 0, choose"
    with pytest.raises(DataFileError, match=message):
        read_table(str(tmp_path / "t.csv"))
    table = read_table(str(tmp_path / "t.csv"), Layout(index="0"))
    assert (table.names, table.index.name) == (["a", "b"], "index")
    assert list(table.index.values) == ["0", "1", "2"]


def test_images_have_no_columns_to_choose_from(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match=r"has the shape \(2, 3, 4\), and so no columns"):
        read_table(str(tmp_path / "a.npy"), Layout(label="0"))


# --- what is no number ---------------------------------------------------------------------------

BAD_FIELDS = {
    "a,b\n1,2\n3,four\n": (
        "line 3, column 'b': 'four' is not a number; encode the column as numbers, leave it out "
        "with --columns, or name it with --label or --index"
    ),
    "a,b\n1,2\n3,\n": (
        r"line 3, column 'b': a gap \(an empty field\); fill it, leave out its row, or its column"
    ),
    "a,b\n1,2\n\n\n3,NA\n": r"line 5, column 'b': a gap \(NA\); fill it",
    "a,b\n1,2\n3\n": "line 3, column 'b': the line ends before it; fill it",
    'a,b\n"1\n",2\n3,x\n': "line 4, column 'b': 'x' is not a number",
    "a,b\n1,2\n3,-inf\n": "line 3, column 'b': -inf is not finite in float32; correct it",
    "a,b\n1e300,2\n": "line 2, column 'a': 1e300 is not finite in float32",
    "a,b\n1,2,3\n": r"line 2: more fields than the first line, which has 2; a field with ','",
    "a,b\n1,2\n3,4,5\n": "line 3: more fields than the first line, which has 2",
    "a,b\n1,2024-01-31\n": "line 2, column 'b': '2024-01-31' is not a number",
    "a,b\n1,1_000\n": "line 2, column 'b': '1_000' is not a number",
    "1,2\n3,x\n": "line 2, column 1: 'x' is not a number",
    "id,2019\n1,2\n": (
        "line 1, column 0: 'id' is not a number; .*; a first line that has a number in it is not "
        "taken for a header"
    ),
}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("text", BAD_FIELDS, ids=repr)
def test_a_field_that_is_no_number_is_named(text, tmp_path):
    with pytest.raises(DataFileError, match=rf"rows\.csv, {BAD_FIELDS[text]}"):
        read_table(write_text(tmp_path, text))


def test_a_gap_in_a_column_of_booleans_is_named(tmp_path):
    source = write_text(tmp_path, "a,b\n1,True\n2,False\n3,\n")
    with pytest.raises(GapError, match=r"line 4, column 'b': a gap \(an empty field\)"):
        read_table(source)


def test_booleans_need_pandas(tmp_path, no_pandas):
    source = write_text(tmp_path, "a,b\n1,True\n")
    message = r"line 2, column 'b': 'True' .*; pandas reads booleans: pip install 'dkae\[table\]'"
    with pytest.raises(DataFileError, match=message):
        read_table(source)


def test_text_that_is_far_down_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.datasets.delimited._CHUNK", 20)
    source = write_text(tmp_path, "a,b\n" + "1,2\n" * 50 + "3,x\n")
    with pytest.raises(DataFileError, match="line 52, column 'b': 'x' is not a number"):
        read_table(source)


@pytest.mark.usefixtures("reader")
def test_gaps_may_be_wanted(tmp_path):
    table = read_table(write_text(tmp_path, "a,b\n1,\n,2\nNA,nan\n"), gaps=True)
    nan = np.nan
    np.testing.assert_array_equal(table.rows, [[1, nan], [nan, 2], [nan, nan]])


@pytest.mark.usefixtures("reader")
def test_infinity_is_never_a_gap(tmp_path):
    with pytest.raises(DataFileError, match="line 3, column 'b': inf is not finite"):
        read_table(write_text(tmp_path, "a,b\n1,\n2,inf\n"), gaps=True)


@pytest.mark.usefixtures("reader")
def test_a_line_may_end_before_its_label(tmp_path):
    table = read_table(write_text(tmp_path, "a,y\n1,x\n2\n"), Layout(label="y"))
    assert (table.rows.tolist(), list(table.label.values)) == ([[1], [2]], ["x", ""])


@pytest.mark.usefixtures("reader")
def test_a_line_that_is_too_long_is_named_beside_a_label(tmp_path):
    with pytest.raises(DataFileError, match="line 3: more fields than the first line, which has 2"):
        read_table(write_text(tmp_path, "a,y\n1,x\n2,y,z\n"), Layout(label="y"))


def test_text_beside_the_features_is_no_error(tmp_path):
    source = write_text(tmp_path, "a,note\n1,\n2,hello\n")
    assert read_table(source, Layout(columns="a")).rows.tolist() == [[1], [2]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["x", "y"], r"column 'b': 'x' is not a number; encode the column as numbers"),
        (pd.Categorical(["x", "y"]), r"column 'b': 'x' is not a number"),
        (
            pd.to_datetime(["2024-01-31", "2024-02-01"]),
            r"column 'b': '2024-01-31.*' is a date; enc",
        ),
        ([date(2024, 1, 31)] * 2, r"column 'b': '2024-01-31' is not a number"),
        ([1.0, np.nan], r"row 1 \(from 0\), column 'b': a gap \(NaN\); fill it"),
        (pd.array([1, None], dtype="Int64"), r"row 1 \(from 0\), column 'b': a gap"),
        ([None, None], r"row 0 \(from 0\), column 'b': a gap"),
        ([1.0, -np.inf], r"row 1 \(from 0\), column 'b': -inf is not finite in float32"),
    ],
    ids=str,
)
def test_what_is_no_number_in_parquet_is_named(column, message, tmp_path):
    source = write_frame(tmp_path / "t.parquet", pd.DataFrame({"a": [1, 2], "b": column}))
    with pytest.raises(DataFileError, match=rf"t\.parquet, {message}"):
        read_table(source)


# --- files that cannot be read -------------------------------------------------------------------

UNUSABLE = {
    "empty.csv": b"",
    "blank.csv": b"\n \n",
    "header_only.csv": b"a,b\n",
    "latin1.csv": "größe,b\n1,2\n".encode("latin1"),
    "latin1_below.csv": b"a,b\n" + b"1,2\n" * 9999 + "1,ö\n".encode("latin1"),
    "long_field.csv": b"a" * 200_000,
    "binary.tsv": bytes(range(256)),
    "cut.csv.gz": gzip.compress(b"a,b\n1,2\n" * 99)[:30],
    "text.csv.gz": b"a,b\n1,2\n",
    "text.parquet": b"a,b\n1,2\n",
    "empty.parquet": b"",
}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("name", UNUSABLE)
def test_unusable_file_is_refused_by_its_name(name, tmp_path):
    (tmp_path / name).write_bytes(UNUSABLE[name])
    with pytest.raises(DataFileError, match=name):
        read_table(str(tmp_path / name))


def test_parquet_without_rows_is_refused(tmp_path):
    source = write_frame(tmp_path / "t.parquet", FRAME[["a"]].iloc[:0])
    with pytest.raises(DataFileError, match=r"t\.parquet has no rows: expected rows of numbers"):
        read_table(source)


@pytest.mark.parametrize("module", ["pandas", "pyarrow"])
def test_parquet_says_what_to_install(module, tmp_path, monkeypatch):
    source = write_frame(tmp_path / "t.parquet", FRAME[["a"]])
    monkeypatch.setitem(sys.modules, module, None)
    message = rf"t\.parquet needs {module}: pip install 'dkae\[table\]'"
    with pytest.raises(DataFileError, match=message):
        read_table(source)
    with pytest.raises(DataFileError, match=rf"parquet needs {module}: pip install"):
        write_table(tmp_path / "out.parquet", Table(np.ones((1, 1), np.float32), ["a"]))


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.parquet is neither a file nor a data set"):
        read_table(str(tmp_path / "no.parquet"))


# --- writing -------------------------------------------------------------------------------------


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


# Not a header: a line with a number in it, which also "Infinity" is.
names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).filter(
    lambda name: name.strip() == name and not is_number(name)
)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("ending", ENDINGS)
@shares_tmp_path
@given(data=st.data())
def test_a_table_comes_back(ending, data, tmp_path):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 4)))
    rows = data.draw(hnp.arrays(np.float32, shape, elements=floats))
    columns = data.draw(st.lists(names, min_size=shape[1] + 2, max_size=shape[1] + 2, unique=True))
    header = [columns[0], *columns[2:], columns[1]]
    values = data.draw(st.lists(names, min_size=shape[0], max_size=shape[0]))
    index = Column(header[0], np.array(values, dtype=object))
    label = Column(header[-1], np.array(values[::-1], dtype=object))
    path = tmp_path / f"t{ending}"
    write_table(path, Table(rows, header[1:-1], index, label))
    back = read_table(str(path), Layout(index="0", label=str(len(header) - 1)))
    np.testing.assert_array_equal(back.rows, rows)  # but for the sign of 0, an integer in text
    assert back.names == header[1:-1]
    assert (back.index.name, list(back.index.values)) == (index.name, list(index.values))
    assert (back.label.name, list(back.label.values)) == (label.name, list(label.values))


@pytest.mark.parametrize("ending", ENDINGS)
def test_pandas_reads_what_is_written(ending, tmp_path):
    path = tmp_path / f"t{ending}"
    table = read_table(write_frame(tmp_path / "in.csv"), LAYOUT)
    write_table(path, table.with_rows(table.rows[:, :2] / 3, ["c 0", "c,1"]))
    frame = read_frame(path)
    assert list(frame.columns) == ["id", "c 0", "c,1", "kind"]
    assert list(frame["id"]) == ["007", "x, y", "NA"]
    assert list(frame["kind"]) == ["cat", "dog", "cat"]
    np.testing.assert_array_equal(frame["c 0"].to_numpy(np.float32), table.rows[:, 0] / 3)


def test_identifiers_in_parquet_are_numbers_where_nothing_is_lost(tmp_path):
    rows = np.zeros((2, 1), np.float32)
    for text, expected in ([["1", "20"], [1, 20]], [["01", "20"], ["01", "20"]]):
        column = Column("id", np.array(text, dtype=object))
        write_table(tmp_path / "t.parquet", Table(rows, ["a"], column))
        assert pd.read_parquet(tmp_path / "t.parquet")["id"].tolist() == expected


@pytest.mark.parametrize("ending", [".npy", ".npz"])
def test_an_array_file_has_the_rows_alone(ending, tmp_path):
    table = read_table(write_frame(tmp_path / "in.csv"), LAYOUT)
    write_table(tmp_path / f"a{ending}", table)
    np.testing.assert_array_equal(read_table(str(tmp_path / f"a{ending}")).rows, table.rows)


def test_two_columns_of_one_name_are_not_written(tmp_path):
    table = Table(np.ones((1, 1), np.float32), ["a"], Column("a", np.array([1])))
    with pytest.raises(ValueError, match="two columns would have the name 'a': rename the column"):
        write_table(tmp_path / "t.csv", table)
    assert list(tmp_path.iterdir()) == []


def test_images_are_no_table(tmp_path):
    with pytest.raises(ValueError, match=r"rows have the shape \(2, 2\): write \.npy"):
        write_table(tmp_path / "t.csv", Table(np.ones((1, 2, 2), np.float32)))


# --- labels --------------------------------------------------------------------------------------


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


def test_without_a_label_there_are_none():
    assert Table(np.zeros((3, 1))).labels() is None
