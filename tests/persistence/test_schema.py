"""The words of schemas, and that all classes of the table are written as they are."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from dkae.kernels import FunctionKernel, Kernel, PairwiseKernel
from dkae.persistence.schema import (
    FLAG,
    NEVER,
    NOTHING,
    PLAIN,
    ROW_SHAPE,
    array,
    instance,
    integer,
    is_learnt,
    mapping,
    number,
    one_of,
    several,
    size,
    text,
)
from dkae.persistence.schemas import SCHEMAS, TINY

ROW = np.ones(3)


@pytest.mark.parametrize(
    ("spec", "right", "wrong"),
    [
        (FLAG, [True, False], [1, None, "x"]),
        (one_of("a", 1), ["a", 1], ["b", True, 1.0]),
        (text(3), ["", "abc"], ["abcd", None, 1]),
        (number(0, 1), [0, 0.5, 1], [-1, 2, math.nan, math.inf, True, "1", None]),
        (number(may_be_infinite=True), [math.inf, 1], ["1", True]),
        (integer(1, 9), [1, 9], [0, 10, 1.0, True, None]),
        (number() | NOTHING, [1.5, None], ["x", [1]]),
        (array("n"), [ROW, ROW.astype(np.float32)], [ROW[None], [1.0], ROW > 0, None]),
        (array("n", "n"), [np.ones((2, 2))], [np.ones((2, 3)), ROW]),
        (array("?", 2), [np.ones((7, 2))], [np.ones((2, 7))]),
        (array(), [np.array(1.0)], [ROW]),
        (array("*"), [ROW, ROW[None]], [ROW * np.nan, ROW * np.inf]),
        (array("?", may_be_infinite=True), [ROW * np.inf], [np.ones(1, dtype=int)]),
        (array("?", low=TINY), [ROW, ROW.astype(np.float32) * 1e-40], [0 * ROW, -ROW]),
        (array("?", kinds="iu", low=0, below=3), [np.arange(3)], [np.arange(4), -np.arange(3)]),
        (PLAIN, [1, None, "x", (1.0, "a"), ROW], [{}, math.nan, [[1]], object()]),
        (array("?", is_tensor=True), [torch.ones(1)], [ROW, torch.ones(1, dtype=torch.bfloat16)]),
        (several(integer(), 1, 2), [[1], (1, 2)], [[], [1, 2, 3], [-1], "ab", None]),
        (mapping(integer()), [{}, {"a": 1}], [{1: 1}, {"a": -1}, []]),
        (several(text()), [["a", "b"]], ["ab", [1]]),
        (
            instance("PCA", Kernel),
            [PCA(), PairwiseKernel()],
            [None, "PCA", object(), FunctionKernel(max), StandardScaler()],
        ),
        (size("d"), [100], [101, 0, -1, 1.5, None]),
        (ROW_SHAPE, [(5,), (3, 4, 5)], [(), (101,), (5, 50), (0, 3), 5]),
    ],
)
def test_a_spec_takes_what_is_right_and_nothing_else(spec, right, wrong):
    for value in right:
        spec.check(value, {"widest": 100})
    for value in wrong:
        with pytest.raises(ValueError, match=r"^(is|has|are|does) "):
            spec.check(value, {"widest": 100})


def test_symbols_are_the_same_within_an_object():
    scope = {"widest": 100}
    size("d").check(3, scope)
    array("n", "d").check(np.ones((2, 3)), scope)
    ROW_SHAPE.check((4, 5), scope)
    array("n", "*row", "m").check(np.ones((2, 4, 5, 6)), scope)
    with pytest.raises(ValueError, match=r"has the shape \(3, 2\), expected \(2, 3\)"):
        array("n", "d").check(np.ones((3, 2)), scope)
    for shape in ((2, 5, 4, 6), (2, 4, 6), (2, 6), ()):
        with pytest.raises(ValueError, match=r"expected \(2, \(4, 5\), 6\)"):
            array("n", "*row", "m").check(np.ones(shape), scope)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_schema_declares_what_its_class_has(schema):
    parameters = set(inspect.signature(schema.target_class).parameters)
    declared = {name for name in schema.declared if not is_learnt(name)}
    if hasattr(schema.target_class, "get_params"):
        assert declared <= parameters
    assert not NEVER & schema.fields.keys()
