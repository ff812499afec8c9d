from __future__ import annotations

import base64
import json
import tracemalloc
import zlib

import numpy as np
import pytest
from dkae_study.results.pictures import pack, unpack
from hypothesis import given
from hypothesis.extra.numpy import array_shapes, arrays
from hypothesis.strategies import floats

some_arrays = arrays(np.float64, array_shapes(max_dims=3, max_side=6), elements=floats(-50, 50))


@given(some_arrays)
def test_an_array_comes_back_to_half_a_level(array):
    packed = json.loads(json.dumps(pack(array)))
    level = (array.max() - array.min()) / 255
    assert unpack(packed).shape == array.shape
    assert np.abs(unpack(packed) - array).max() <= level / 2 + 1e-9


@given(some_arrays)
def test_what_lies_outside_the_range_is_clipped(array):
    back = unpack(pack(array, 0, 1))
    assert np.abs(back - array.clip(0, 1)).max() <= 1 / 510 + 1e-9


def test_whole_numbers_up_to_255_come_back_exactly():
    classes = np.repeat(np.arange(10), 30)
    assert np.array_equal(unpack(pack(classes.astype(np.float64), 0, 255)), classes)


# --- pictures that nobody packed -----------------------------------------------------------------


def packed(shape, n_bytes):
    data = base64.b64encode(zlib.compress(bytes(n_bytes), 9)).decode()
    return {"shape": shape, "low": 0, "high": 1, "data": data}


@pytest.mark.parametrize(
    ("shape", "n_bytes", "message"),
    [
        ([2, 3], 5, "not that of its data"),
        ([2, 3], 7, "not that of its data"),
        ([2, 3], 50_000_000, "not that of its data"),
        ([10**9], 0, "of more than 16777216 values"),
        ([10**5, 10**5], 50_000_000, "of more than 16777216 values"),
        ([2**62, 2**62, 0], 0, "not that of its data|cannot reshape|too big|of more than"),
        ([1] * 100, 1, "of more than"),
        ([-1, -6], 6, "expected whole numbers"),
        ([2.0, 3], 6, "expected whole numbers"),
        ([True, 6], 6, "expected whole numbers"),
        ("66", 6, "expected whole numbers"),
        (None, 6, "expected whole numbers"),
    ],
)
def test_a_picture_is_what_it_announces(shape, n_bytes, message):
    picture = packed(shape, n_bytes)
    tracemalloc.start()
    try:
        with pytest.raises((ValueError, TypeError), match=message):
            unpack(picture)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


@pytest.mark.parametrize("bad", [{"low": None}, {"high": "1"}, {"low": [0]}], ids=str)
def test_the_range_of_a_picture_is_two_numbers(bad):
    with pytest.raises(TypeError, match="expected two numbers"):
        unpack(packed([2, 3], 6) | bad)
