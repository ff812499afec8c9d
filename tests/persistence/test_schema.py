"""The words of schemas, and that all classes of the table are written as they are."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from dkae.persistence import schemas
from dkae.persistence.schema import (
    FLAG,
    NOTHING,
    Array,
    Choice,
    Mapped,
    Names,
    Number,
    Object,
    Sequence,
    Size,
    Text,
    integer,
    new_scope,
)

ROW = np.ones(3)


@pytest.mark.parametrize(
    ("spec", "right", "wrong"),
    [
        (FLAG, [True, False], [1, None, "x"]),
        (Choice(("a", 1)), ["a", 1], ["b", True, 1.0]),
        (Text(3), ["", "abc"], ["abcd", None, 1]),
        (Number(0, 1), [0, 0.5, 1], [-1, 2, math.nan, math.inf, True, "1", None]),
        (Number(is_finite=False), [math.inf, 1], ["1", True]),
        (integer(1, 9), [1, 9, np.int64(3)], [0, 10, 1.0, True, None]),
        (integer(1, "widest"), [2**22], [2**23, -1]),
        (Number() | NOTHING, [1.5, None], ["x", [1]]),
        (Array(("n",)), [ROW, ROW.astype(np.float32)], [ROW[None], [1.0], ROW > 0, None]),
        (Array(("n", "n")), [np.ones((2, 2))], [np.ones((2, 3)), ROW]),
        (Array(("?", 2)), [np.ones((7, 2))], [np.ones((2, 7))]),
        (Array(), [ROW], [ROW * np.nan, ROW * np.inf]),
        (Array(may_be_infinite=True), [ROW * np.inf], [np.ones(1, dtype=int)]),
        (Array(is_positive=True), [ROW, ROW.astype(np.float32) * 1e-40], [0 * ROW, -ROW]),
        (Array(kinds="iu", low=0, below=3), [np.arange(3)], [np.arange(4), -np.arange(3), ROW]),
        (Array(dtype="float32"), [np.ones(1, dtype=np.float32)], [ROW]),
        (Array(is_tensor=True), [torch.ones(1)], [ROW, torch.ones(1, dtype=torch.bfloat16)]),
        (Sequence(integer(), 1, 2), [[1], (1, 2)], [[], [1, 2, 3], [-1], "ab", None]),
        (Mapped(integer()), [{}, {"a": 1}], [{1: 1}, {"a": -1}, []]),
        (Names(), [["a", "b"]], ["ab", [1]]),
        (Object(("SumKernel",)), [], [None, "SumKernel", object()]),
        (Size("d"), [0, 5], [-1, 2**60, 1.5, None]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_spec_takes_what_is_right_and_nothing_else(spec, right, wrong):
    for value in right:
        spec.read(value, new_scope(0))
    for value in wrong:
        with pytest.raises(ValueError, match=r"^(is|has|are|does) "):
            spec.read(value, new_scope(0))


def test_symbols_are_the_same_within_an_object():
    scope = new_scope(0)
    Size("d").read(3, scope)
    Array(("n", "d")).read(np.ones((2, 3)), scope)
    with pytest.raises(ValueError, match=r"has the shape \(3, 2\), expected \(2, 3\)"):
        Array(("n", "d")).read(np.ones((3, 2)), scope)
    with pytest.raises(ValueError, match="are not one for each feature"):
        Names().read(["a"], scope)


def test_numbers_get_the_type_that_their_object_had():
    assert type(Number(of=np.float32).read(0.5, {})) is np.float32


def test_the_schema_of_every_class_is_whole():
    """Kinds that fields name are there, and classes that are there have what is declared."""
    import importlib
    import inspect

    for kind, schema in schemas.SCHEMAS.items():
        module, name = schema.target.split(":")
        try:
            found = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue  # of a later commit
        if schema.state is schemas.estimator_state and schema.build is schemas.build_estimator:
            params = set(inspect.signature(found).parameters)
            declared = {n for n in schema.fields if n[-1] != "_" and n[0] != "_"}
            assert declared <= params | {"max_grad_norm"}, kind
