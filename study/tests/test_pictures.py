from __future__ import annotations

import json

import numpy as np
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
