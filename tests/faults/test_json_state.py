"""Values in a file: they come back as what they were, and a malformed one is an error."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dkae._support.json_state import (
    MAX_DEPTH,
    NotPlainError,
    Packer,
    Unpacker,
    check_form,
    pack,
    unpack,
)

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(st.characters(codec="utf-8")) | st.integers(), inner, max_size=4)
    ),
    max_leaves=20,
)


def back(value):
    packed, tensors = pack(value)
    return unpack(json.loads(json.dumps(packed, allow_nan=False)), tensors)


@given(PLAIN)
def test_plain_values_come_back(value):
    assert repr(back(value)) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6, dtype=">i4")[::-2],
        np.zeros((0, 3), dtype=np.float32),
        np.array([True, False]),
        torch.arange(6.0).reshape(2, 3).T,
        torch.tensor(1, dtype=torch.bfloat16),
    ],
    ids=str,
)
def test_arrays_come_back_as_they_lay_in_memory(array):
    found = back({"a": [array]})["a"][0]
    assert type(found) is type(array)
    assert (np.array_equal if isinstance(array, np.ndarray) else torch.equal)(found, array)
    if isinstance(array, np.ndarray) and array.ndim == 2:
        assert found.flags["C_CONTIGUOUS"] == array.flags["C_CONTIGUOUS"]


def test_numbers_of_numpy_become_numbers_of_python():
    assert back(np.float32(0.1)) == float(np.float32(0.1))
    assert math.isnan(back(np.float64("nan")))


@pytest.mark.parametrize(
    "value",
    [
        print, object(), b"bytes", {1, 2}, 1j, "\ud800", {(1, 2): 3}, np.array(["a"]),
        np.array([None]), torch.nn.Linear(1, 1),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_no_file_can_hold_is_named(value):
    with pytest.raises(NotPlainError, match=r"where|it is"):
        pack({"where": [value]})


def test_what_is_nested_too_deep_is_refused_both_ways():
    value, packed = [], []
    for _ in range(MAX_DEPTH + 1):
        value, packed = [value], {"tuple": [packed]}
    with pytest.raises(NotPlainError, match="nested deeper than"):
        pack(value)
    with pytest.raises(ValueError, match="nested deeper than"):
        unpack(packed, {})


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        ({}, "has a type that no file"),
        ({"x": 1}, "has a type that no file"),
        ({"tuple": 1}, "has a type that no file"),
        ({"tuple": [], "dict": []}, "has a type that no file"),
        ({"again": -1}, "has a type that no file"),
        ({"again": 0}, "has a type that no file"),
        ({"float": "1"}, "has a type that no file"),
        ({"dict": [1]}, "not made of keys and values"),
        ({"dict": [[[1], 2]]}, "not made of keys and values"),
        ({"dict": [[None, 2]]}, "neither text nor a number"),
        ({"dict": [["a", 1], ["a", 2]]}, "a key twice"),
        ({"tensor": "b"}, "'b' is missing, or stands in two places"),
        ([{"tensor": "a"}, {"array": "a"}], "'a' is missing, or stands in two places"),
        ({"transposed": {"tuple": []}}, "has a type that no file"),
        ({"object": ["x", {}]}, "objects such as 'x' cannot stand here"),
        ({"object": ["x"]}, "has a type that no file"),
        ("\ud800", "not Unicode"),
        (None, "'a' belongs to nothing"),
    ],
)
def test_what_does_not_fit_is_an_error(packed, message):
    with pytest.raises(ValueError, match=message):
        unpack(packed, {"a": torch.ones(2)})


def test_an_object_in_two_places_stays_one():
    class Objects(Packer):
        def describe(self, value):
            return "kind", {"x": torch.ones(1)}

    class Lists(Unpacker):
        def build(self, kind, fields):
            return [kind, fields]

    packer, shared = Objects(), object()
    packed = packer.pack([shared, {"there": shared}])
    first, second = Lists(packer.tensors).unpack_all(packed)
    assert first is second["there"]
    assert first[0] == "kind"


@pytest.mark.parametrize(
    ("found", "expected", "message"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, "x has missing or surplus entries: b"),
        ({"a": {"b": "1"}}, {"a": {"b": 1}}, "x a b is a str, not a int"),
        (torch.ones(1), torch.ones(2), r"x is \(1,\) of torch.float32, expected \(2,\)"),
        (torch.ones(2).double(), torch.ones(2), "of torch.float64"),
        ([1], [1, 2], "x has 1 entries, expected 2"),
        (True, 1, "x is a bool, not a int"),
        (None, 1, "x is a NoneType"),
    ],
)
def test_another_form_is_named(found, expected, message):
    check_form(expected, expected, "x")
    with pytest.raises(ValueError, match=message):
        check_form(found, expected, "x")
