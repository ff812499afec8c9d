from __future__ import annotations

import numpy as np
import pytest
from dkae_study.results import estimate
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

values = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=20)


@given(values)
def test_the_interval_is_students(x):
    result = estimate(x)
    if np.std(x) > 1e-9:
        low, high = stats.t.interval(0.95, len(x) - 1, np.mean(x), stats.sem(x))
        assert result.low == pytest.approx(low, rel=1e-9, abs=1e-9)
        assert result.high == pytest.approx(high, rel=1e-9, abs=1e-9)
    assert result.n == len(x)


def test_a_single_value_has_no_interval():
    result = estimate([0.5])
    assert (result.mean, result.half_width, result.low, result.high) == (0.5, None, 0.5, 0.5)
    assert result.format() == "0.5000"


def test_it_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = rng.normal(3, 2, (4000, 5))
    hits = [(e := estimate(x)).low <= 3 <= e.high for x in samples]
    assert np.mean(hits) == pytest.approx(0.95, abs=0.012)


def test_format():
    assert estimate([1.0, 2.0, 3.0]).format(2) == "2.00 ± 2.48"
    assert estimate([1.0, 1.0001]).format(2) == "1.00 ± <0.01"
    assert estimate([1.0, 1.0]).format(2) == "1.00 ± 0.00"
