"""Which columns are features: by name, by position, and by the names of a model."""

import numpy as np
import pytest

from dkae.datasets import DataFileError
from dkae.tables import Layout, TableReader, read_table

ABC = "a,b,c\n1,2,x\n3,4,y\n"
NUMBERS = ABC.replace("x", "5").replace("y", "6")


@pytest.fixture
def source(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text, name="rows.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("layout", "wanted", "names"),
    [
        ({"label": "c"}, None, ["a", "b"]),
        ({"drop": "c"}, None, ["a", "b"]),
        ({"drop": "2,0"}, None, ["b"]),
        ({"columns": "b,a"}, None, ["b", "a"]),
        ({"columns": "1, a"}, None, ["b", "a"]),
        ({"label": "2", "index": "a"}, None, ["b"]),
        ({}, ["b", "a"], ["b", "a"]),
        ({"label": "c"}, 2, ["a", "b"]),
        ({"columns": "a,b"}, ["b"], ["b"]),
        ({"label": "no", "index": "c", "drop": "no,b", "is_partial": True}, None, ["a"]),
    ],
    ids=str,
)
def test_features_are_chosen(layout, wanted, names, source):
    table = read_table(source(ABC), Layout(**layout), wanted=wanted)
    assert table.names == names
    expected = [[{"a": 1, "b": 2}[n] + 2 * row for n in names] for row in (0, 1)]
    np.testing.assert_array_equal(table.rows, expected)


def test_columns_that_the_model_does_not_use_are_listed(source):
    assert TableReader(source(ABC), wanted=["b"]).unused == ("a", "c")
    assert TableReader(source(ABC), Layout(index="a", drop="c"), wanted=["b"]).unused == ()
    assert TableReader(source(NUMBERS)).unused == ()


def test_names_with_commas_blanks_and_digits(source):
    assert read_table(source('"a,b",c\n1,2\n'), Layout(columns='"a,b"')).names == ["a,b"]
    assert read_table(source(" a ,b\n1,2\n"), Layout(columns="a")).names == [" a "]
    assert read_table(source("1,2,3\n"), Layout(columns="2,1")).rows.tolist() == [[3, 2]]


def test_codes_may_have_other_names(source):
    table = read_table(source(NUMBERS), wanted=["x", "y", "z"], by_order=True)
    assert table.names == ["a", "b", "c"]
    with pytest.raises(ValueError, match="3 columns of features, and the model expects 2"):
        read_table(source(NUMBERS), wanted=["x", "y"], by_order=True)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"columns": " , "}, "--columns is empty: name columns, such as --columns a,b,c"),
        ({"drop": ""}, "--drop is empty"),
        ({"columns": "a\nb"}, r"--columns 'a\\nb' is not a list of names: separate them by commas"),
        ({"columns": "a,-1"}, "--columns '-1' is not there"),
        ({"columns": "3"}, r"--columns '3' is not there: .*rows\.csv has the columns 0 to 2$"),
        ({"columns": "a,0"}, "--columns has 'a' twice: name each column once"),
        ({"columns": "a,b", "label": "b"}, "--columns has 'b', and so has --label"),
        ({"label": "a", "index": "0"}, "--label and --index are both 'a': give one of them"),
        ({"index": "aa"}, r"--index 'aa' is not there: .*'a', 'b', 'c'; did you mean 'a'\?$"),
        ({"label": "a", "index": "b", "drop": "c"}, "no column left that could be a feature"),
    ],
    ids=str,
)
def test_a_layout_that_cannot_be_is_an_error(layout, message, source):
    with pytest.raises(ValueError, match=message):
        read_table(source(ABC), Layout(**layout))


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["a", "speed"], r"rows\.csv lacks 'speed', which the model was fitted to$"),
        (["a", "cc"], r"lacks 'cc', which the model was fitted to; did you mean 'c'\?$"),
        (list("uvwxyz"), "lacks 'u', 'v', 'w', 'x', 'y' and 1 more"),
        (2, "has 3 columns of features, and the model expects 2: choose them with --columns"),
    ],
    ids=str,
)
def test_a_table_that_does_not_fit_the_model_is_an_error(wanted, message, source):
    with pytest.raises(ValueError, match=message):
        read_table(source(NUMBERS), wanted=wanted)


def test_names_need_a_header(source):
    with pytest.raises(ValueError, match=r"columns 0 to 1 and no header with names$"):
        read_table(source("1,2\n"), Layout(label="a"))


def test_a_name_that_occurs_twice_is_an_error(source):
    with pytest.raises(DataFileError, match="more than one column with the name 'a': rename them"):
        read_table(source("a,a\n1,2\n"))


def test_the_row_numbers_that_pandas_writes_are_no_feature(source):
    text = ",a\n0,7\n1,8\n"
    with pytest.raises(DataFileError, match=r"column 0 has no name .*: pass --index 0, --drop 0"):
        read_table(source(text))
    table = read_table(source(text), Layout(index="0"))
    assert (table.names, table.index.name) == (["a"], "index")
    assert read_table(source(text), wanted=["a"]).rows.tolist() == [[7], [8]]


def test_images_have_no_columns(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match=r"has the shape \(2, 3, 4\): no columns"):
        read_table(str(tmp_path / "a.npy"), Layout(label="0"))
