"""Batches that are fetched ahead are those that would be fetched in time."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch

from dkae import DeepKernelizedAutoencoder, RowArray
from dkae.kernels import PairwiseKernel
from dkae.training import BatchSource
from dkae.training.prefetch import Prefetching

X = np.random.default_rng(0).random((90, 7)).astype(np.float32)


def make_source(rows=X, **params):
    everyone = np.arange(len(X))
    gram = PairwiseKernel().fit(X).on(X)
    rng = np.random.default_rng(0)
    return BatchSource(
        rows, gram, everyone[10:], everyone[:10], 20, 5, rng, torch.device("cpu"), **params
    )


def same(a, b):
    return all((x is None and y is None) or torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_same_batches_in_the_same_order_in_every_phase():
    plain, ahead = make_source(), Prefetching(make_source())
    for asked in [(True, 0.0)] * 3 + [(False, 0.0), (True, 0.5), (True, 0.5), (False, 0.0)]:
        assert same(ahead.draw(*asked), plain.draw(*asked))
    assert ahead.n_steps == plain.n_steps
    for ours, theirs in zip(ahead.held_out(), plain.held_out(), strict=True):
        assert same(ours, theirs)
    ahead.close()


def test_the_state_is_that_before_the_batch_that_waits():
    plain, ahead = make_source(), Prefetching(make_source())
    for _ in range(4):
        state = ahead.state_dict()
        assert state == plain.state_dict()
        other = Prefetching(make_source())
        other.draw(True, 0.0)
        other.load_state_dict(state)
        expected = plain.draw(True, 0.0)
        assert same(other.draw(True, 0.0), expected)
        assert same(ahead.draw(True, 0.0), expected)


class Watched:
    """Rows that note which threads read them, and of which one goes bad after some reads."""

    shape, dtype = X.shape, X.dtype

    def __init__(self, n_good=10**9):
        self.threads, self.n_good = [], n_good

    def __len__(self):
        return len(X)

    def __getitem__(self, ids):
        self.threads.append((threading.current_thread().name, torch.get_num_threads()))
        rows = X[ids]
        if len(self.threads) > self.n_good:
            raise OSError("the disk is gone")
        return rows


def test_it_reads_in_another_thread_that_has_one_of_torch_s_threads():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rows = Watched()
        source = Prefetching(make_source(rows))
        source.draw(True, 0.0)
        source.draw(True, 0.0)
        source.close()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)
    assert rows.threads[0] == ("MainThread", 2)
    assert rows.threads[1] == ("dkae-rows_0", 1)


def test_an_error_comes_with_its_batch():
    source = Prefetching(make_source(Watched(n_good=2)))
    source.draw(True, 0.0)
    source.draw(True, 0.0)
    with pytest.raises(OSError, match="the disk is gone"):
        source.draw(True, 0.0)
    source.close()


def test_rows_on_a_disk_train_the_model_of_rows_in_memory():
    params = {"network": "stacked", "max_iter": 3, "validation_fraction": 0.2, "random_state": 0}
    models = [DeepKernelizedAutoencoder(3, **params).fit(rows) for rows in (X, RowArray(X))]
    assert models[0].history_ == models[1].history_


# --- neighbours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 7, 16, 20, 50])
def test_chunks_are_runs_of_neighbours_and_distinct(k):
    source = make_source(shuffle="chunks")
    length = -(-k // 8)
    for _ in range(20):
        rows = source._draw_rows(k)
        assert len(rows) == len(set(rows.tolist())) == k
        assert 1 + int((np.diff(rows) != 1).sum()) <= -(-k // length)


def test_all_chunks_are_drawn():
    source = make_source(shuffle="chunks")
    seen = {int(row) for _ in range(300) for row in source._draw_rows(16)}
    assert seen == set(range(10, 90))


def test_few_rows_are_drawn_as_ever():
    source = make_source(shuffle="chunks")
    assert sorted(source._draw_rows(80)) == list(range(10, 90))
