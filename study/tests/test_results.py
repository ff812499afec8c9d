"""Result files, intervals of means, and packed pictures."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from dkae_study.results import ResultFileError, estimate, read_run, read_runs, select, write_run
from dkae_study.results.numbers import collect, estimate_of, format_column, format_point
from dkae_study.results.pictures import pack, unpack
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import stats

from study.tests.helpers import invented

RUN = invented("lambda", {"validation": {"alignment_loss": 0.1}}, point=0.25)

# --- files ---------------------------------------------------------------------------------------


def test_a_run_comes_back_as_it_was(tmp_path):
    write_run(RUN, tmp_path / "a.json")
    (tmp_path / ".a.json.x1y2.json").write_text("{")  # a file that is being written
    assert read_runs(tmp_path) == [RUN]


def test_numbers_that_are_none_are_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(replace(RUN, scores={"x": float("nan")}), tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "dkae run 0"}'])
def test_a_file_that_is_no_result_is_refused(tmp_path, content):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(ResultFileError, match=r"a.json is not a result .* move it away"):
        read_run(path)


def test_select():
    runs = [RUN, replace(RUN, recipe="network"), replace(RUN, experiment="code-size")]
    assert select(runs, "lambda") == runs[:2]
    assert select(runs, "lambda", "paper") == [RUN]
    assert select(runs) == runs


# --- numbers -------------------------------------------------------------------------------------


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20))
def test_the_interval_is_students(x):
    result = estimate(x)
    if np.std(x) > 1e-9:
        low, high = stats.t.interval(0.95, len(x) - 1, np.mean(x), stats.sem(x))
        assert result.low == pytest.approx(low, rel=1e-9, abs=1e-9)
        assert result.high == pytest.approx(high, rel=1e-9, abs=1e-9)
    assert result.n == len(x)


def test_numbers_are_written_out():
    single = estimate([0.5])
    assert (single.mean, single.half_width, single.low, single.high) == (0.5, None, 0.5, 0.5)
    assert single.format() == "0.5000"
    assert estimate([1.0, 2.0, 3.0]).format(2) == "2.00 ± 2.48"
    assert estimate([1.0, 1.0001]).format(2) == "1.00 ± <0.01"
    cells = [estimate([0.00421, 0.00441]), estimate([0.0131]), None, "text"]
    assert format_column(cells) == ["0.00431 ± 0.00127", "0.01310", "–", "text"]
    assert format_column([estimate([-12.34])]) == ["−12.3"]
    points = [format_point(point) for point in (0.25, 2000, "clean", None)]
    assert points == ["0.25", "2,000", "clean", "–"]


def test_scores_that_are_not_there_are_left_out():
    assert collect([RUN, RUN], "validation", "nothing") == []
    assert estimate_of([RUN, RUN], "validation", "alignment_loss").n == 2
    assert estimate_of([RUN], "nothing") is None


# --- pictures ------------------------------------------------------------------------------------

some_arrays = arrays(np.float64, array_shapes(max_dims=3, max_side=6), elements=st.floats(-50, 50))


@given(some_arrays)
def test_an_array_comes_back_to_half_a_level(array):
    packed = json.loads(json.dumps(pack(array)))
    level = (array.max() - array.min()) / 255
    assert unpack(packed).shape == array.shape
    assert np.abs(unpack(packed) - array).max() <= level / 2 + 1e-9
    back = unpack(pack(array, 0, 1))
    assert np.abs(back - array.clip(0, 1)).max() <= 1 / 510 + 1e-9
