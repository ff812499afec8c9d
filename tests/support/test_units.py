"""Units are powers of two: they change no digit, and are 1 where squares exist."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dkae._support.units import exponent_of, in_unit, largest_entry


@pytest.mark.parametrize(
    ("values", "largest"),
    [([1.0, -3.0], 3), ([0.0], 0), ([-2.0, -1.0], 2), (np.array([1, 200], np.uint8), 200)],
    ids=["mixed", "zero", "negative", "unsigned"],
)
def test_largest_entry(values, largest):
    assert largest_entry(np.asarray(values)) == largest


def test_what_is_not_finite_is_the_largest():
    assert math.isnan(largest_entry(np.array([1, np.nan, np.inf])))
    assert largest_entry(np.array([1, -np.inf])) == math.inf


@pytest.mark.parametrize(
    ("largest", "dtype"), [(1e70, np.float64), (1e-9, np.float32), (0.0, "f8")]
)
def test_no_unit_where_squares_exist(largest, dtype):
    assert exponent_of(largest, dtype) == 0


@pytest.mark.parametrize("largest", [5e-324, 1e-300, 1e-100, 1e100, 1.7e308])
def test_in_its_unit_the_largest_is_near_one(largest):
    values = np.array([largest, largest / 3])
    unit = in_unit(values, exponent_of(largest))
    assert 0.5 <= unit[0] <= 1
    np.testing.assert_array_equal(np.ldexp(unit, exponent_of(largest)), values)


def test_a_unit_of_one_copies_nothing():
    values = np.ones(3)
    assert in_unit(values, 0) is values
