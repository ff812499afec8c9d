"""The law of tables: what is written comes back, in any format, in pieces of any size."""

import gzip

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkae.tables import Column, Layout, Table, TableReader, open_writer, read_table

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
    ["NA", "", "nan", "a\rb", "\r", "a\r\nb", '"', '""', ",", "\t", "a.b", " x ", "007", "\ufeff", "é"]
)  # fmt: skip
names = fields.filter(lambda name: name.strip() and not is_number(name))
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw):
    """Return a table with an index and a label, and whether it has gaps."""
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 4)))
    rows = draw(hnp.arrays(np.float32, shape, elements=floats))
    gaps = draw(st.booleans())
    if gaps:
        rows[draw(hnp.arrays(bool, shape))] = np.nan
    header = draw(st.lists(names, min_size=shape[1] + 2, max_size=shape[1] + 2, unique=True))
    column = st.lists(fields, min_size=shape[0], max_size=shape[0])
    index, label = (np.array(draw(column), dtype=object) for _ in range(2))
    return Table(rows, header[1:-1], Column(header[0], index), Column(header[-1], label))


def write(path, table, n_rows=10):
    """Write a table in pieces."""
    writer = open_writer(path)
    for start in range(0, len(table.rows), n_rows):
        part = slice(start, start + n_rows)
        index, label = (c and Column(c.name, c.values[part]) for c in (table.index, table.label))
        writer.append(Table(table.rows[part], table.names, index, label))
    writer.close()
    return str(path)


@pytest.mark.parametrize("ending", ENDINGS)
@shares_tmp_path
@given(table=tables(), n_rows=st.integers(1, 4))
def test_a_table_comes_back(ending, table, n_rows, tmp_path):
    source = write(tmp_path / f"t{ending}", table, n_rows)
    layout = Layout(index="0", label=str(len(table.names) + 1))
    back = read_table(source, layout, gaps=True)
    np.testing.assert_array_equal(back.rows, table.rows)
    assert back.names == table.names
    for found, expected in ((back.index, table.index), (back.label, table.label)):
        assert found.name == expected.name
        assert found.values.to_pylist() == expected.values.tolist()


@pytest.mark.parametrize("ending", TEXT)
def test_nine_digits_are_enough_for_any_float32(ending, tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, (10_000, 4), dtype=np.uint32)
    rows = np.nan_to_num(bits.view(np.float32))
    back = read_table(write(tmp_path / f"t{ending}", Table(rows)))
    assert back.rows.tobytes() == rows.tobytes()
