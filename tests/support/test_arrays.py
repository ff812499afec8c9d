"""The door for arrays: each error has the name of the parameter, and what came."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from dkae._support.arrays import (
    as_array,
    check_magnitude,
    check_out,
    finite_numbers,
    real_numbers,
)
from dkae.rows import RowArray, as_rows
from tests.stores import Results

RAGGED = [[1.0, 2.0], [1.0]]


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (RAGGED, ValueError, r"^codes, a list, cannot be used: setting an array element with a"),
        (torch.ones(2, requires_grad=True), ValueError, r"^codes, a Tensor, .* requires grad"),
        (torch.ones(2).bfloat16(), TypeError, "^codes, a Tensor, cannot be used: .* BFloat16"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), ValueError, r"codes\.filled\(0\)"),
    ],
    ids=["ragged", "gradient", "bfloat16", "masked"],
)
def test_what_cannot_be_converted(value, kind, message):
    with pytest.raises(kind, match=message):
        as_array(value, "codes")


def test_a_word_of_english_is_no_name():
    with pytest.raises(ValueError, match=r"^a, a list, cannot be used: setting an array element"):
        as_array(RAGGED, "a")


@pytest.mark.parametrize("value", ["abc", 1j, None, sparse.eye(3), np.datetime64("2020-01-01")])
def test_what_is_no_real_number(value):
    with pytest.raises(ValueError, match=r"^gram has entries of type .*: pass real numbers"):
        real_numbers(value, "gram")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3, r"^Y=3 has no rows: pass an array with one row for each sample"),
        (None, r"^Y=None has no rows"),
        ({"a": list(range(99))}, r"^Y=<dict> has no rows"),
        ([], r"^Y has shape \(0,\) and so no rows: pass at least one"),
        (np.ones((0, 4)), r"^Y has shape \(0, 4\) and so no rows"),
    ],
    ids=["number", "None", "dict", "list", "array"],
)
def test_what_has_no_rows(value, message):
    with pytest.raises(ValueError, match=message):
        as_rows(value, "Y")


def test_rows_that_can_be_indexed():
    rows = np.arange(6.0).reshape(3, 2)
    assert as_rows(rows) is rows
    for value in (rows.tolist(), pd.DataFrame(rows), torch.tensor(rows), sparse.coo_array(rows)):
        np.testing.assert_array_equal(as_rows(value)[np.array([2, 0])], rows[[2, 0]])
    assert isinstance(as_rows(sparse.coo_array(rows)), RowArray)


def test_a_row_array_stays_what_its_maker_said():
    rows = np.array([[1.0], [np.nan]], np.float32)
    assert np.isnan(as_rows(RowArray(rows, missing=True))[1])
    strict = RowArray(rows)
    assert as_rows(strict) is strict
    with pytest.raises(ValueError, match=r"row 1 of X contains NaN"):
        as_rows(strict)[:]


def test_numbers_that_are_not_finite():
    for bad in (np.array([1, np.inf]), sparse.csr_array([[1, np.nan]])):
        with pytest.raises(ValueError, match=r"^the kernel has NaN or infinite values: scale X"):
            finite_numbers(bad, "the kernel", "scale X")


@pytest.mark.parametrize(
    ("values", "largest"),
    [
        (np.array([1.0, -3e20]), r"3e\+20"),
        (np.array([np.nan, 2e15, 1]), r"2e\+15"),
        (np.array([2**63], dtype=np.uint64), r"9.22e\+18"),
        (sparse.csr_array([[0, 1e17]]), r"1e\+17"),
        (np.float32([[np.inf]]), "inf"),
    ],
    ids=["negative", "with a gap", "whole", "sparse", "infinite"],
)
def test_numbers_that_are_too_large(values, largest):
    message = (
        rf"^X has entries up to {largest}: numbers beyond 1e15 leave float32 arithmetic, scale X"
    )
    with pytest.raises(ValueError, match=message + r" \(for example with standardize=True, or"):
        check_magnitude(values, "X")


@pytest.mark.parametrize("values", [[], [1e15, -1e15], [np.nan], [True], np.uint8([200])], ids=str)
def test_all_other_numbers_pass(values):
    check_magnitude(np.asarray(values), "X")


# --- arrays that results are written to ----------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
def test_an_array_for_results_is_taken_as_it_is_or_made(dtype):
    made = check_out(None, (3, 2), dtype)
    assert (made.shape, made.dtype) == ((3, 2), dtype)
    out = np.empty((3, 2), dtype)
    assert check_out(out, (3, 2)) is out
    results = Results((3, 2), dtype)
    assert check_out(results, (3, 2)) is results


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty((2, 3)), r"codes has shape \(2, 3\): pass an array of shape \(3, 2\)"),
        (np.empty((3, 2), np.uint8), "codes has entries of type uint8: pass an array"),
        (np.broadcast_to(1.0, (3, 2)), "codes is read-only: pass an array that"),
        ("codes.npy", r"codes='codes.npy' cannot be written to: pass .* shape \(3, 2\)"),
    ],
    ids=["shape", "bytes", "read-only", "path"],
)
def test_an_array_for_results_that_does_not_fit(out, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_out(out, (3, 2), name="codes")
