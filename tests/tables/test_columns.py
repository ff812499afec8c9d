"""Which columns are features: by name, by position, and by the names of a model."""

import numpy as np
import pytest

from dkae.tables import TableReader
from tests.tables.helpers import read_table

ABC = "a,b,c\n1,2,5\n3,4,6\n"


@pytest.fixture
def source(tmp_path):
    """Return a function that writes a file and returns its path."""

    def write(text, name="rows.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.mark.parametrize(
    ("layout", "wanted", "names", "unused"),
    [
        ({"label": "c"}, None, ["a", "b"], []),
        ({"drop": "2,0"}, None, ["b"], []),
        ({"columns": "1, a"}, None, ["b", "a"], []),
        ({"label": "2", "index": "a"}, None, ["b"], []),
        ({}, ["b", "a"], ["b", "a"], ["c"]),
        ({"index": "a", "drop": "c"}, ["b"], ["b"], []),
        ({"label": "c"}, 2, ["a", "b"], []),
        ({"columns": "a,b"}, ["b"], ["b"], ["a"]),
    ],
    ids=str,
)
def test_features_are_chosen_and_the_others_are_listed(layout, wanted, names, unused, source):
    reader = TableReader(source(ABC), wanted=wanted, **layout)
    table = reader.read()
    assert (table.names, reader.unused) == (names, unused)
    expected = [[{"a": 1, "b": 2}[n] + 2 * row for n in names] for row in (0, 1)]
    np.testing.assert_array_equal(table.rows, expected)


def test_names_with_commas_blanks_and_digits(source):
    assert read_table(source('"a,b",c\n1,2\n'), columns="0").names == ["a,b"]
    assert read_table(source('"a,b",c\n1,2\n'), label="a,b").names == ["c"]
    assert read_table(source(" a ,b\n1,2\n"), columns="a").names == [" a "]
    assert read_table(source("1,2,3\n"), columns="2,1").rows.tolist() == [[3, 2]]
    # Without a header the columns of a model are taken in their order.
    assert read_table(source("1,2,3\n"), wanted=["a", "b", "c"]).rows.tolist() == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("text", "layout", "wanted", "message"),
    [
        (ABC, {"columns": ""}, None, "--columns '' is not there: .*rows.csv has the columns 'a'"),
        (ABC, {"columns": "3"}, None, r"--columns '3' is not there: .*rows\.csv has .* 0 to 2$"),
        (ABC, {"columns": "a,0"}, None, "name 'a' more than once: give each column once"),
        (ABC, {"columns": "a,b", "label": "b"}, None, "name 'b' more than once"),
        (ABC, {"label": "a", "index": "0"}, None, "name 'a' more than once"),
        (ABC, {"index": "aa"}, None, r"--index 'aa' is .*'a', 'b', 'c'; did you mean 'a'\?$"),
        (ABC, {"drop": "c,a,b"}, None, "no column left that could be a feature"),
        (ABC, {}, ["a", "cc"], r"lacks 'cc', which the model expects; did you mean 'c'\?$"),
        (ABC, {}, list("uvwxyz"), r"rows\.csv lacks 'u', 'v', 'w', 'x', 'y' and 1 more"),
        (ABC, {}, 2, "has 3 columns of features, and the model expects 2: choose them with --col"),
        ("1,2\n", {}, ["a"], "has 2 columns of features, and the model expects 1"),
        ("1,2\n", {"label": "a"}, None, r"columns 0 to 1 and no header with names$"),
        ("a,a\n1,2\n", {}, None, "more than one column with the name 'a': rename them"),
        (",a\n0,7\n", {}, None, r"column 0 has no name .*row numbers.*: pass --index 0, --drop 0"),
    ],
    ids=str,
)
def test_columns_that_cannot_be_chosen_are_an_error(text, layout, wanted, message, source):
    with pytest.raises(ValueError, match=message):
        read_table(source(text), wanted=wanted, **layout)


def test_the_row_numbers_that_pandas_writes_may_be_the_index(source):
    text = ",a\n0,7\n1,8\n"
    table = read_table(source(text), index="0")
    assert (table.names, table.index.name) == (["a"], "index")
    assert read_table(source(text), wanted=["a"]).rows.tolist() == [[7], [8]]


def test_images_have_no_columns(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((2, 3, 4)))
    with pytest.raises(ValueError, match=r"has the shape \(2, 3, 4\): no columns"):
        read_table(tmp_path / "a.npy", label="0")
