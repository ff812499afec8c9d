"""Batches: distinct rows, independent draws, the right block of the prior, ahead or in time."""

from __future__ import annotations

import threading
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dkae import DeepKernelizedAutoencoder, RowArray
from dkae.kernels import PairwiseKernel
from dkae.networks import Stack
from dkae.training import BatchSource, Callback, batches_per_epoch
from dkae.training.batches import Prefetching, split_rows

X = np.random.default_rng(0).standard_normal((60, 3)).astype(np.float32)
PRIOR = PairwiseKernel("rbf").fit(X).on(X)


def make_source(rows=X, train=None, held_out=None, batch_size=20, seed=0, **params) -> BatchSource:
    train = np.arange(len(X)) if train is None else train
    held_out = train[:0] if held_out is None else held_out
    rng, device = np.random.default_rng(seed), torch.device("cpu")
    return BatchSource(rows, PRIOR, train, held_out, batch_size, "samples", rng, device, **params)


def ids_of(batch) -> list[int]:
    return [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in batch.targets.numpy()]


def same(a, b):
    return all((x is None and y is None) or torch.equal(x, y) for x, y in zip(a, b, strict=True))


# --- epochs and held-out rows ---------------------------------------------------------------------


def test_the_paper_has_4900_batches_an_epoch():
    assert batches_per_epoch(14_000, 200, "pairs") == 4900
    assert batches_per_epoch(14_000, 200, "samples") == 70
    assert batches_per_epoch(14_000, 200, 37) == 37
    assert [batches_per_epoch(n, 200, "auto") for n in (10, 500, 10_000)] == [25, 50, 100]


@given(st.integers(2, 10_000), st.integers(2, 500))
def test_epochs_have_enough_batches(n, k):
    k_used = min(n, k)
    samples, pairs = (batches_per_epoch(n, k, epoch) for epoch in ("samples", "pairs"))
    assert (samples - 1) * k_used < n <= samples * k_used
    assert (pairs - 1) * k_used**2 < n**2 <= pairs * k_used**2


@pytest.mark.parametrize(
    ("epoch", "message"),
    [
        (0, "steps_per_epoch=0 must be a whole number of at least 1"),
        (1.5, r"steps_per_epoch=1.5 must be a whole number"),
        (None, r"steps_per_epoch=None must be a whole number"),
        ("pair", r"steps_per_epoch='pair' is not.*did you mean 'pairs'"),
    ],
)
def test_impossible_epochs(epoch, message):
    with pytest.raises(ValueError, match=message):
        batches_per_epoch(10, 2, epoch)


def test_rows_are_split():
    train, held_out = split_rows(100, 0.25, np.random.default_rng(0))
    assert len(held_out) == 25
    assert sorted([*train, *held_out]) == list(range(100))
    # One held-out row would be aligned with anything.
    assert [len(part) for part in split_rows(10, 0.1, np.random.default_rng(0))] == [8, 2]
    with pytest.raises(ValueError, match=r"of 2 rows leaves fewer than 2 rows to train"):
        split_rows(2, 0.1, np.random.default_rng(0))


# --- draws ----------------------------------------------------------------------------------------


@given(st.integers(1, 80), st.integers(0, 1000))
def test_rows_of_a_batch_are_distinct_and_allowed(batch_size, seed):
    allowed = np.arange(0, 60, 2)
    rows = ids_of(make_source(train=allowed, batch_size=batch_size, seed=seed).draw())
    assert len(set(rows)) == len(rows) == min(batch_size, 30)
    assert set(rows) <= set(allowed)


def test_the_block_belongs_to_the_rows():
    batch = make_source().draw()
    np.testing.assert_array_equal(batch.prior_gram, PRIOR.block(np.array(ids_of(batch))))
    assert torch.equal(batch.inputs, batch.targets)


def test_a_batch_without_its_block_is_the_same_batch():
    with_prior, without = make_source(), make_source()
    for noise in (0.0, 0.5, 0.0):
        a, b = with_prior.draw(True, noise), without.draw(False, noise)
        assert same(a[:2], b[:2])
        assert b.prior_gram is None


def test_draws_are_seeded_and_every_row_is_as_likely():
    first, again = (ids_of(make_source(seed=1).draw()) for _ in range(2))
    assert first == again
    source = make_source(seed=2)
    counts = np.bincount(np.concatenate([ids_of(source.draw()) for _ in range(600)]), minlength=60)
    # Binomial(600, 1/3): six standard deviations are 70.
    assert np.abs(counts - 200).max() < 70
    source = make_source(batch_size=30)  # a row may return at once
    assert set(ids_of(source.draw())) & set(ids_of(source.draw()))


def test_noise_is_on_the_inputs_only_and_of_random_size():
    noises = []
    for seed in range(200):
        batch, clean = make_source(seed=seed).draw(True, 0.5), make_source(seed=seed).draw()
        assert same(batch[1:], clean[1:])
        noises.append(batch.inputs - batch.targets)
    # A standard deviation drawn from U(0, a) gives a mean square of a²/3.
    noise = torch.cat(noises)
    assert noise.square().mean().item() == pytest.approx(0.5**2 / 3, rel=0.05)
    sizes = noise.std(dim=1)
    assert sizes.max() > 4 * sizes.min()


@pytest.mark.parametrize("batch_size", [7, 20, 100])
def test_held_out_blocks_cover_every_row_once_in_parts_of_nearly_equal_size(batch_size):
    held_out = np.arange(10, 60)
    source = make_source(held_out=held_out, batch_size=batch_size)
    blocks = [ids_of(batch) for batch in source.held_out()]
    assert sorted(np.concatenate(blocks)) == held_out.tolist()
    sizes = [len(block) for block in blocks]
    assert max(sizes) <= batch_size
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("k", [2, 16, 20, 50])
def test_chunks_are_runs_of_neighbours_and_distinct(k):
    source = make_source(RowArray(X, shuffle="chunks"), batch_size=k, train=np.arange(10, 60))
    seen = set()
    for _ in range(200):
        ids = ids_of(source.draw())
        assert len(ids) == len(set(ids)) == k
        assert 1 + int((np.diff(ids) != 1).sum()) <= 8
        seen |= set(ids)
    assert seen == set(range(10, 60))


# --- ahead of time --------------------------------------------------------------------------------


def test_batches_that_are_fetched_ahead_are_the_same_in_every_phase():
    held_out = np.arange(50, 60)
    plain = make_source(held_out=held_out)
    with Prefetching(make_source(held_out=held_out)) as ahead:
        for asked in [(True, 0.0)] * 3 + [(False, 0.0), (True, 0.5), (True, 0.5), (False, 0.0)]:
            assert same(ahead.draw(*asked), plain.draw(*asked))
        assert ahead.n_steps == plain.n_steps
        for ours, theirs in zip(ahead.held_out(True), plain.held_out(True), strict=True):
            assert same(ours, theirs)


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
    """Rows that note which threads read them, and that go bad after some reads."""

    shape, dtype = X.shape, X.dtype

    def __init__(self, n_good=10**9):
        self.threads, self.n_good = [], n_good

    def __len__(self):
        return len(X)

    def __getitem__(self, ids):
        self.threads.append((threading.current_thread().name, torch.get_num_threads()))
        if len(self.threads) > self.n_good:
            raise OSError("the disk is gone")
        return X[ids]


def test_they_are_read_in_another_thread_that_has_one_of_torch_s_threads():
    n_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        rows = Watched()
        with Prefetching(make_source(rows)) as source:
            source.draw(True, 0.0)
            source.draw(True, 0.0)
        n_read = len(rows.threads)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(n_threads)
    assert rows.threads[:2] == [("MainThread", 2), ("dkae-rows_0", 1)]
    assert len(rows.threads) == n_read  # nobody reads on


def test_an_error_comes_with_its_batch():
    with Prefetching(make_source(Watched(n_good=2))) as source:
        source.draw(True, 0.0)
        source.draw(True, 0.0)
        with pytest.raises(OSError, match="the disk is gone"):
            source.draw(True, 0.0)


def test_rows_on_a_disk_train_the_model_of_rows_in_memory():
    params = {"network": Stack((8,)), "max_iter": 3, "validation_fraction": 0.2, "random_state": 0}
    models = [DeepKernelizedAutoencoder(3, **params).fit(rows) for rows in (X, RowArray(X))]
    assert models[0].history_ == models[1].history_


# --- a block may cost more than a step: it is computed for those that learn from it ---------------


@pytest.fixture
def blocks_of(digits, tiny, monkeypatch):
    """Return a function that fits a model and counts the blocks of the prior in each phase."""

    def fit(**params):
        phases, current = [], ["before"]

        class Watching(Callback):
            def on_phase_begin(self, trainer, phase):
                current.append(phase.name)

            def on_train_end(self, trainer):
                current.append("after")

        def evaluate(kernel, X, Y):
            phases.append(current[-1])
            return original(kernel, X, Y)

        model = tiny(pretrain_max_iter=1, decoder_max_iter=3, callbacks=[Watching()], **params)
        original = PairwiseKernel.evaluate
        with monkeypatch.context() as patch:
            patch.setattr(PairwiseKernel, "evaluate", evaluate)
            model.fit(digits)
        return Counter(phases), model

    return fit


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"alignment_weight": 0.1}, {"layer 2": 5, "fine-tuning": 10}),
        ({"alignment_weight": 0}, {}),
        # 60 rows are two blocks of 30.
        ({"validation_fraction": 0.2}, {"layer 2": 7, "fine-tuning": 14}),
    ],
)
def test_blocks_are_computed_where_they_are_learned(params, expected, blocks_of):
    blocks, model = blocks_of(**params)
    # One before training, because a kernel that fails should fail at once; the fit is measured.
    assert blocks == {"before": 1, "after": 1} | expected
    for record in model.history_:
        assert ("alignment_loss" in record) == (record["phase"] in expected)
