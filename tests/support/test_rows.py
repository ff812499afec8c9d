"""Arrays of rows: read in part, in order, checked, and never by more than is asked for."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dkae import RowArray
from dkae.rows import chunks_of, is_row_array, release
from tests.stores import Store, on_disk

X = np.random.default_rng(0).random((50, 4))
ROWS = X.astype(np.float32)


class Broken(Store):
    """A dataset that does not keep its word."""

    def __init__(self, array, shape=None, dtype=None, give=None):
        super().__init__(array)
        self.shape, self.dtype = shape or self.shape, dtype or self.dtype
        self._give = give

    def __getitem__(self, ids):
        part = super().__getitem__(ids)
        return part if self._give is None else self._give(part)


@given(ids=st.lists(st.integers(-50, 49), min_size=1), kind=st.sampled_from([list, np.array]))
def test_any_rows_in_any_order(ids, kind):
    np.testing.assert_array_equal(RowArray(Store(X))[kind(ids)], ROWS[ids])


@given(start=st.integers(-60, 60), stop=st.integers(-60, 60), step=st.sampled_from([1, 2, -1, -3]))
def test_any_slice(start, stop, step):
    part = slice(start, stop, step)
    np.testing.assert_array_equal(RowArray(Store(X))[part], ROWS[part])


def test_a_mask_and_a_row():
    rows = RowArray(Store(X))
    np.testing.assert_array_equal(rows[X[:, 0] > 0.5], ROWS[X[:, 0] > 0.5])
    np.testing.assert_array_equal(rows[3], ROWS[3])
    np.testing.assert_array_equal(np.asarray(rows), ROWS)
    assert (len(rows), rows.shape, rows.ndim, rows.size) == (50, (50, 4), 2, 200)
    with pytest.raises(IndexError, match="X has 50 rows"):
        rows[[50]]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int16, np.uint8, bool, ">f4"])
def test_any_type_of_numbers(dtype, tmp_path):
    array = (10 * X).astype(dtype)
    rows = RowArray(on_disk(array, tmp_path / "x.npy"))
    assert rows[[7, 1]].dtype == np.float32
    np.testing.assert_array_equal(rows[[7, 1]], array[[7, 1]].astype(np.float32))


def test_what_is_given_is_a_copy_that_is_scaled():
    pixels = np.arange(200, dtype=np.float32).reshape(50, 4)
    expected = pixels / np.float32(255)
    rows = RowArray(pixels, scale=255)
    for ids in (slice(0, 5), [1, 2]):
        part = rows[ids]
        np.testing.assert_array_equal(part, expected[ids])
        part[:] = 9
    np.testing.assert_array_equal(RowArray(rows, scale=2)[:], expected / np.float32(2))
    np.testing.assert_array_equal(pixels.ravel(), np.arange(200))


def test_chosen_rows_are_read_when_they_are_asked_for():
    store = Store(X)
    some = RowArray(store).chosen(np.arange(1, 49, 2)).chosen(np.arange(20))
    assert some.shape == (20, 4)
    assert store.most == 0
    for ids in (slice(3, 9), [7, 0], slice(None, None, 3)):
        np.testing.assert_array_equal(some[ids], ROWS[1:41:2][ids])
    with pytest.raises(IndexError, match="X has 20 rows"):
        some[[20]]


def test_images_as_vectors():
    images = RowArray(Store(X.reshape(50, 2, 2)))
    assert images.flattened().shape == (50, 4)
    np.testing.assert_array_equal(images.flattened()[[9, 2]], ROWS[[9, 2]])
    flat = RowArray(images.flattened(), missing=True)
    np.testing.assert_array_equal(flat[:3], ROWS[:3])


def test_what_is_an_array_of_rows(tmp_path):
    assert is_row_array(on_disk(X, tmp_path / "x.npy"))
    assert is_row_array(Store(X))
    assert is_row_array(RowArray(X))
    for other in (X, torch.zeros(3, 2), X.tolist(), pd.DataFrame(X), pd.Series(X[0]), None, "a"):
        assert not is_row_array(other)


@pytest.mark.parametrize("n_numbers", [1, 8, 30, 10**6])
def test_chunks_are_everything_in_order(n_numbers):
    np.testing.assert_array_equal(np.concatenate(list(chunks_of(ROWS, n_numbers))), ROWS)
    part = list(chunks_of(RowArray(Store(X)), n_numbers, slice(11, 30)))
    np.testing.assert_array_equal(np.concatenate(part), ROWS[11:30])


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e39])
def test_the_row_is_named_that_is_not_finite(bad):
    array = X.copy()
    array[37, 2] = bad
    what = "NaN" if np.isnan(bad) else "an infinite value"
    for rows in (RowArray(Store(array)), RowArray(sparse.csr_array(array))):
        np.testing.assert_array_equal(rows[:37], ROWS[:37])
        for ids in (slice(30, 45), [41, 37, 2], slice(None, None, -1)):
            with pytest.raises(ValueError, match=rf"row 37 of X contains {what}"):
                rows[ids]
    if np.isnan(bad):
        assert np.isnan(RowArray(array, missing=True)[[37]][0, 2])
    else:
        with pytest.raises(ValueError, match="row 37 of X contains an infinite value"):
            RowArray(array, missing=True)[:]


def test_gaps_are_filled_and_what_was_said_of_rows_still_holds():
    array, center, scale = X.copy(), np.float32([0, 1, 2, 3]), np.float32([1, 2, 3, 4])
    array[37, 2] = np.nan
    filled = RowArray(array).filled(np.arange(4, dtype=np.float32))
    assert filled[:].dtype == np.float32
    assert filled[[37]][0, 2] == 2
    np.testing.assert_array_equal(
        filled.standardized(center, scale)[:], (filled[:] - center) / scale
    )
    again = RowArray(filled, scale=2).filled(np.zeros(4, np.float32))
    assert again.missing
    assert again[[37]][0, 2] == 1
    assert RowArray(RowArray(array, missing=True)).missing


def test_a_sum_of_large_numbers_is_no_infinity():
    array = np.full((50, 4), 3e38, dtype=np.float32)
    np.testing.assert_array_equal(RowArray(array)[:], array)


BROKEN = {
    "ends early": (
        {"shape": (60, 4)}, slice(40, 60),
        r"X has the shape \(60, 4\) .* but gave \(10, 4\) .* where \(20, 4\) was asked for",
    ),
    "no such rows": (
        {"shape": (60, 4)}, [3, 55], r"rows 3 to 55 of X, a Broken, cannot be read \(IndexError",
    ),
    "another width": (
        {"give": lambda part: part[:, :3]}, slice(0, 5), r"but gave \(5, 3\) .* where \(5, 4\)",
    ),
    "another type": (
        {"dtype": np.dtype(np.int8)}, slice(0, 5), "the type int8, but gave .* of float64",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_a_source_that_does_not_keep_its_word(case):
    params, ids, message = BROKEN[case]
    with pytest.raises(ValueError, match=message):
        RowArray(Broken(X, **params))[ids]


def test_a_source_whose_length_changes():
    source = Broken(X)
    rows = RowArray(source)
    source.shape = (51, 4)
    with pytest.raises(ValueError, match=r"X had the shape \(50, 4\) and now has \(51, 4\)"):
        rows[:3]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"source": np.array([["a"]])}, "X has entries of type <U1: pass rows of real numbers"),
        ({"source": X.tolist()}, "X, a list, cannot be read by rows: pass an array with shape, a"),
        ({"source": torch.ones(3)}, "X, a Tensor, cannot be read by rows"),
        ({"source": np.float64(3)}, r"X=.*3.0.* has no rows"),
        ({"scale": 0}, "scale=0 must be a number"),
        ({"missing": "yes"}, "missing='yes' must be True or False"),
        ({"shuffle": "chunk"}, "shuffle='chunk' is not known.*did you mean 'chunks'"),
    ],
)
def test_parameters(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RowArray(**{"source": X} | params)


@pytest.mark.parametrize("ids", ["a", None, 1.5, [0.5]])
def test_what_does_not_select_rows(ids):
    with pytest.raises(IndexError, match="does not select rows: pass row numbers, or a slice"):
        RowArray(X)[ids]


def test_a_file_that_was_truncated(tmp_path):
    path = tmp_path / "x.npy"
    rows = RowArray(on_disk(X, path))
    rows[:3]
    os.truncate(path, 500)
    with pytest.raises(ValueError, match="and now has 500: it was truncated; write it again"):
        rows[:3]


# --- memory ---------------------------------------------------------------------------------------


STATM = Path("/proc/self/statm")


def resident():
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not STATM.exists(), reason="Linux tells")
@pytest.mark.parametrize("order", ["in order", "at random"])
def test_pages_of_a_file_are_let_go(order, tmp_path):
    path, n = tmp_path / "x.npy", 60_000
    np.lib.format.open_memmap(path, "w+", np.uint8, (n, 4096))  # 245 MB, mostly nowhere
    rows = RowArray(np.load(path, mmap_mode="r"))
    ids = np.random.default_rng(0).permutation(n) if order == "at random" else np.arange(n)
    before = resident()
    for part in np.array_split(ids, 300):
        rows[part]
    assert resident() - before < 100e6


@pytest.mark.parametrize("mode", ["r+", "c"])
def test_what_was_written_is_kept(mode, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, ROWS)
    array = np.load(path, mmap_mode=mode)
    array[:] = 5
    release(array)
    assert (array == 5).all()
    assert (np.load(path) == 5).all() == (mode == "r+")  # the other is a private copy
