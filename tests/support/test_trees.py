"""Nested values as JSON and tensors: they come back as what they were, and as nothing else."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dkae._support.trees import MAX_DEPTH, Codec, NotPlainError, Registry, decode, encode
from dkae.kernels import PairwiseKernel
from dkae.kernels.compose import SumKernel
from dkae.persistence.models import REGISTRY

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
ARRAYS = st.sampled_from(["<f8", ">f8", "f4", "f2", "i8", "i4", "u1", "u8", "?"]).flatmap(
    lambda dtype: hnp.arrays(dtype, SHAPES)
)
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
KEYS = st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT | st.none()
VALUES = st.recursive(
    PLAIN | ARRAYS | ARRAYS.map(lambda a: torch.tensor(a.astype(a.dtype.newbyteorder("=")))),
    lambda v: (
        st.lists(v, max_size=3)
        | st.lists(v, max_size=3).map(tuple)
        | st.dictionaries(TEXT, v, max_size=3)
        | st.dictionaries(KEYS | st.tuples(KEYS), v, max_size=3)
    ),
    max_leaves=12,
)


def through_text(value, registry=None):
    """Return a value after its way through JSON."""
    encoded, tensors = encode(value, *([registry] if registry else []))
    text = json.dumps(encoded, allow_nan=False)
    return decode(json.loads(text), tensors, *([registry] if registry else []))


def is_same(a, b):
    """Say whether two values are the same, of the same types, to the bit."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    if isinstance(a, dict):
        return is_same(list(a.items()), list(b.items()))
    if isinstance(a, torch.Tensor):
        return a.dtype is b.dtype and is_same(a.numpy(), b.numpy())
    if isinstance(a, np.ndarray):
        native = a.astype(a.dtype.newbyteorder("="))
        return (native.dtype, a.shape) == (b.dtype, b.shape) and native.tobytes() == b.tobytes()
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and repr(a) == repr(b))
    return a == b


@given(VALUES)
@settings(max_examples=300)
def test_values_come_back_as_what_they_were(value):
    assert is_same(value, through_text(value))


@pytest.mark.parametrize(
    "value",
    [
        2**64, -(10**100), -0.0, 5e-324, 1.7976931348623157e308, math.nan, -math.inf,
        "", "\0", "😀",
        {1: 2, "1": 3, 1.5: (), None: [], False: {}, (1, (2,)): "x"}, {"dict": 1}, {"tensor": "a"},
        {"object": ["os.system", {}]}, [[], (), {}], ((),), {"": {"": {}}},
        {1: np.arange(2), "1": np.arange(3)},
        {"a.b": np.arange(2), "a": {"b": np.arange(3)}},
        np.zeros((0, 5)),
        np.float32([[1, 2], [3, 4]]).T, np.ones((4, 3), order="F")[:2],
        np.arange(6)[::-2], torch.arange(6).reshape(2, 3).T, np.array(3),
        torch.ones(2, dtype=torch.bfloat16).float(),
    ],
    ids=repr,
)  # fmt: skip
def test_odd_values(value):
    assert is_same(value, through_text(value))


@pytest.mark.parametrize("value", [np.float32(0.1), np.int8(-3), np.True_, np.str_("a")], ids=repr)
def test_scalars_of_numpy_become_those_of_python(value):
    assert is_same(through_text(value), value.item())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1j]}, r"^a\.0 is a complex"),
        ({"a": {2}}, "^a is a set"),
        (len, "^the value is a builtin_function_or_method"),
        (b"bytes", "bytes"),
        ("\ud800", "the value is or has text that is not Unicode"),
        ({"x": ["\udfff"]}, r"x\.0 is or has text that is not Unicode"),
        ({"\udc00": 1}, "text that is not Unicode"),
        ({"a": np.array(["x"])}, "a is an array of <U1"),
        ({"a": np.array([None])}, "a is an array of object"),
        (np.ma.masked_array([1.0], [True]), "masked array"),
        (np.zeros(2, dtype="complex64") + np.longdouble(1), "array of"),
    ],
    ids=range(11),
)
def test_what_no_file_can_hold_is_named(value, message):
    with pytest.raises(NotPlainError, match=message):
        through_text(value)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_lie_in_memory_as_they_did(order):
    array = np.array(np.arange(24.0).reshape(2, 3, 4), order=order)
    found = through_text([array, torch.from_numpy(array)])
    assert found[0].strides == found[1].numpy().strides == array.strides
    assert is_same(found[0], array)


# --- objects -------------------------------------------------------------------------------------


class Box:
    def __init__(self, content):
        self.content = content


BOXES = Registry({"Box": Codec(Box, vars, lambda state: Box(**state))})


def test_an_object_in_two_places_is_one_again():
    box = Box(np.arange(3))
    first, (second, outer) = through_text([box, (box, Box(box))], BOXES)
    assert first is second is outer.content
    assert len(encode([box, box], BOXES)[1]) == 1


def test_a_subclass_is_not_taken_for_its_base():
    with pytest.raises(NotPlainError, match="is a Other"):
        encode(type("Other", (Box,), {})(1), BOXES)


def test_what_is_left_out_is_none():
    box = Box(1)
    assert encode({"a": box, "b": 2}, BOXES, [box])[0] == {"dict": {"a": None, "b": 2}}


# --- depth ---------------------------------------------------------------------------------------


def nested(depth, wrap):
    value = 0
    for _ in range(depth):
        value = wrap(value)
    return value


@pytest.mark.parametrize(
    "wrap", [lambda v: [v], lambda v: (v,), lambda v: {"a": v}, lambda v: {1: v}, Box],
    ids=["list", "tuple", "dict", "map", "object"],
)  # fmt: skip
def test_whatever_can_be_written_can_be_read(wrap):
    """The deepest value that `encode` takes is one that `decode` takes."""
    deepest = 0
    for depth in range(MAX_DEPTH + 20):
        try:
            encoded, _ = encode(nested(depth, wrap), BOXES)
        except NotPlainError:
            break
        decode(encoded, {}, BOXES)
        deepest = depth
    assert MAX_DEPTH // 2 <= deepest <= MAX_DEPTH
    with pytest.raises(NotPlainError, match="nested deeper than"):
        encode(nested(deepest + 1, wrap), BOXES)


def test_a_value_within_itself_is_too_deep():
    loop: list = []
    loop.append(loop)
    with pytest.raises(NotPlainError, match="nested deeper than"):
        encode(loop)


def test_what_is_too_deep_is_refused_before_the_stack_ends():
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_DEPTH}"):
        decode(nested(900, lambda v: [v]), {})


# --- what others have written --------------------------------------------------------------------

KINDS = st.sampled_from(["dict", "map", "tuple", "float", "tensor", "array", "again", "object"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | KINDS
    | st.sampled_from(["t", "nan", "params", "learnt", "weights", *REGISTRY.codecs]),
    lambda v: (
        st.lists(v, max_size=4)
        | st.dictionaries(st.text(max_size=5) | KINDS, v, max_size=3)
        | st.tuples(KINDS, v).map(lambda pair: dict([pair]))
        | st.tuples(st.sampled_from(sorted(REGISTRY.codecs)), st.dictionaries(
            st.sampled_from(["params", "learnt", "weights", "layers", "steps", "sizes"]), v
        )).map(lambda pair: {"object": list(pair)})
    ),
)  # fmt: skip


@given(JSON)
@settings(max_examples=300)
def test_any_json_gives_a_value_or_a_value_error(encoded):
    try:
        decode(encoded, {"t": torch.ones(2)}, BOXES)
    except ValueError:
        return
    except TypeError as error:  # of the constructor of the box above
        assert "Box" in str(error)  # noqa: PT017


@pytest.mark.parametrize(
    ("encoded", "message"),
    [
        ({}, "of no kind"),
        ({"dict": {}, "list": []}, "of no kind"),
        ({"eval": "1"}, "of no kind"),
        ({"__class__": "str"}, "of no kind"),
        ({"dict": []}, "of no kind"),
        ({"map": [[1, 2], [3]]}, "not made of pairs"),
        ({"map": [[1, 2], [1, 3]]}, "a key twice"),
        ({"map": [[[], 2]]}, "cannot be keys"),
        ({"float": "1e3"}, "a number is none"),
        (math.inf, "a number is none"),
        ("\ud800", "not Unicode"),
        ({"dict": {"\ud800": 1}}, "not Unicode"),
        ({"tensor": "absent"}, "the tensor 'absent' is missing"),
        ({"transposed": {"tuple": []}}, "what is transposed is no array"),
        ({"again": 0}, "in none of them whole"),
        ({"again": -1}, "in none of them whole"),
        ({"again": True}, "in none of them whole"),
        ({"object": ["Box", {"content": {"again": 0}}]}, "in none of them whole"),
        ({"object": []}, "no kind of object"),
        ({"object": ["os.system", {"dict": {}}]}, "'os.system' is no kind of object"),
        ({"object": [["Box"], {}]}, "no kind of object"),
        ({"object": ["Box", None]}, "the Box has no state"),
        (1, "the tensor 't' belongs to nothing"),
    ],
    ids=str,
)
def test_what_is_no_value_is_refused(encoded, message):
    with pytest.raises(ValueError, match=message):
        decode(encoded, {"t": torch.ones(2)}, BOXES)


def test_objects_that_use_each_other_again_and_again_are_refused():
    """Nine kilobytes of sums of sums: what they stand for doubles with each level."""
    kernel = PairwiseKernel("rbf", gamma=1.0).fit(np.zeros((2, 2)))
    for _ in range(30):
        parts = SumKernel([kernel])
        parts.kernels_, parts.weights_ = [kernel, kernel], [1.0, 1.0]
        parts.kernels = [kernel, kernel]
        kernel = parts
    encoded, tensors = encode(kernel, REGISTRY)
    assert len(json.dumps(encoded)) < 20_000
    with pytest.raises(ValueError, match="is made of more than 1,000 others"):
        decode(encoded, tensors, REGISTRY)
