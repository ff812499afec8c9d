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


def make_source(**params):
    everyone = np.arange(len(X))
    gram = PairwiseKernel().fit(X).on(X)
    rng = np.random.default_rng(0)
    return BatchSource(
        X, gram, everyone[10:], everyone[:10], 20, 5, rng, torch.device("cpu"), **params
    )


def same(a, b):
    return all((x is None and y is None) or torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_the_same_batches_in_the_same_order_whatever_is_asked_for():
    plain, ahead = make_source(), Prefetching(make_source())
    for asked in [(True, 0.0)] * 3 + [(False, 0.0), (True, 0.5), (True, 0.5), (False, 0.0)]:
        assert same(ahead.draw(*asked), plain.draw(*asked))
    assert ahead.n_steps == plain.n_steps
    for ours, theirs in zip(ahead.held_out(), plain.held_out(), strict=True):
        assert same(ours, theirs)
    ahead.close()


def test_the_state_is_that_before_the_batch_that_waits():
    plain, ahead = make_source(), Prefetching(make_source())
    for n in range(4):
        state = ahead.state_dict()
        assert state == plain.state_dict()
        other = Prefetching(make_source())
        other.draw(True, 0.0)
        other.load_state_dict(state)
        expected = plain.draw(True, 0.0)
        assert same(other.draw(True, 0.0), expected), n
        assert same(ahead.draw(True, 0.0), expected), n


def test_it_reads_in_another_thread(monkeypatch):
    threads, batch = [], BatchSource._batch

    def watched(self, *args):
        threads.append(threading.current_thread())
        return batch(self, *args)

    monkeypatch.setattr(BatchSource, "_batch", watched)
    n_threads = torch.get_num_threads()
    source = Prefetching(make_source())
    source.draw(True, 0.0)
    source.draw(True, 0.0)
    source.close()
    assert threading.main_thread() in threads
    assert any(thread.name.startswith("dkae-rows") for thread in threads)
    assert torch.get_num_threads() == n_threads


def test_an_error_comes_with_its_batch():
    hole = X.copy()
    hole[50] = np.nan
    model = DeepKernelizedAutoencoder(
        3, network="stacked", batch_size=20, max_iter=5, steps_per_epoch=5, random_state=0
    )

    class Late:
        """An array in which a row goes bad after the first pass."""

        shape, dtype, n = X.shape, X.dtype, 0

        def __getitem__(self, ids):
            self.n += 1
            return (X if self.n < 20 else hole)[ids]

    with pytest.raises(ValueError, match="row 50 of X contains NaN"):
        model.fit(Late())
    assert not hasattr(model, "network_")


@pytest.mark.parametrize("shuffle", ["rows", "chunks"])
def test_rows_on_a_disk_train_the_model_of_rows_in_memory(shuffle):
    params = {"network": "stacked", "max_iter": 3, "early_stopping": True, "pretrain_max_iter": 1}
    models = [
        DeepKernelizedAutoencoder(3, random_state=0, shuffle=shuffle, **params).fit(rows)
        for rows in (X, RowArray(X))
    ]
    assert models[0].history_ == models[1].history_


# --- neighbours -----------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 7, 16, 20, 50])
def test_chunks_are_runs_of_neighbours_and_distinct(k):
    source = make_source(shuffle="chunks")
    length = -(-k // 8)
    for _ in range(20):
        rows = source._draw_rows(k)
        assert len(rows) == len(set(rows.tolist())) == k
        runs = 1 + int((np.diff(rows) != 1).sum())
        assert runs <= -(-k // length)


def test_all_chunks_are_drawn():
    source = make_source(shuffle="chunks")
    seen = {int(row) for _ in range(300) for row in source._draw_rows(16)}
    assert seen == set(range(10, 90))


def test_few_rows_are_drawn_as_ever():
    source = make_source(shuffle="chunks")
    assert sorted(source._draw_rows(80)) == list(range(10, 90))
