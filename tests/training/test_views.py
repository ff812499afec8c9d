"""Batches with views: half of each pool, with the kernel at what the network sees."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dkae import RowArray
from dkae.augmentation import Jitter, make_augmentation
from dkae.kernels import ForestKernel, PairwiseKernel, ProbabilisticClusterKernel, normalize
from dkae.training import BatchSource
from dkae.training.views import PassViewSource, Views, ViewSource
from tests.laws.maps import make

RNG = np.random.default_rng(0)
X = RNG.random((60, 5), dtype=np.float32)
KERNELS = {
    "rbf": PairwiseKernel("rbf"),
    "forest": ForestKernel(n_estimators=5, random_state=0),
    "pck": ProbabilisticClusterKernel(3, 2, reg_covar=1e-2, random_state=0),
    "a sum": PairwiseKernel("rbf") + 0.5 * normalize(PairwiseKernel("linear")),
}


def make_source(kernel=KERNELS["rbf"]):
    kernel = kernel.fit(X)
    rng, device = np.random.default_rng(0), torch.device("cpu")
    ids = np.arange(50)
    source = BatchSource(X, kernel.on(X), ids, np.arange(50, 60), 20, "samples", rng, device)
    return kernel, ViewSource(source, Views(Jitter(), kernel.on))


def is_row(batch):
    return (batch.targets.numpy()[:, None] == X).all(axis=2).any(axis=1)


@pytest.mark.parametrize("name", KERNELS)
def test_the_block_is_the_kernel_of_what_the_network_sees(name):
    kernel, source = make_source(KERNELS[name])
    for _ in range(30):  # more than one pool
        batch = source.draw()
        assert torch.equal(batch.inputs, batch.targets)
        expected = kernel.gram(batch.targets.numpy())
        np.testing.assert_allclose(batch.prior_gram.numpy(), expected, atol=2e-3)


def test_half_are_rows_and_half_are_views():
    _, source = make_source()
    batches = [source.draw(with_prior=False) for _ in range(50)]
    shares = [is_row(batch).mean() for batch in batches]
    assert 0.4 < np.mean(shares) < 0.6
    seen = np.concatenate([b.targets.numpy()[is_row(b)] for b in batches])
    assert len(np.unique(seen, axis=0)) == 50  # and never one that is held out
    assert all(batch.prior_gram is None for batch in batches)
    held_out = [b.targets for b in source.held_out()]
    np.testing.assert_array_equal(torch.cat(held_out), X[50:])


def test_pools_are_drawn_anew():
    _, source = make_source()
    views = [b.targets.numpy()[~is_row(b)] for b in (source.draw(False) for _ in range(75))]
    n_distinct = len(np.unique(np.concatenate(views), axis=0))
    assert 2 * 50 < n_distinct <= 3 * 50  # three pools of a view of each row


@pytest.mark.parametrize("n", [0, 3, 25, 26])
def test_the_state_is_enough_to_go_on(n):
    _, source = make_source()
    for _ in range(n):
        source.draw()
    state = source.state_dict()
    expected = [source.draw(input_noise=0.1) for _ in range(30)]
    _, other = make_source()
    other.load_state_dict(state)
    for batch in expected:
        for mine, theirs in zip(batch, other.draw(input_noise=0.1), strict=True):
            assert mine is theirs is None or torch.equal(mine, theirs)


def test_a_pass_has_views_in_place_of_every_second_row():
    class Pass(BatchSource):
        def draw_ids(self, k):
            return np.arange(10, 19)

    kernel = KERNELS["rbf"].fit(X)
    rng, device = np.random.default_rng(0), torch.device("cpu")
    source = Pass(X, None, np.arange(60), np.arange(0), 20, "samples", rng, device)
    batch = PassViewSource(source, Views(Jitter(), kernel.on)).draw()
    np.testing.assert_array_equal(np.sort(is_row(batch)), [False] * 5 + [True] * 4)
    expected = kernel.gram(batch.targets.numpy())
    np.testing.assert_allclose(batch.prior_gram.numpy(), expected, atol=1e-6)


# --- through the map ------------------------------------------------------------------------------

FIT = {"max_iter": 2, "decoder_max_iter": 1, "steps_per_epoch": 5}


def fitted(rows=X, **params):
    return make("autoencoder", augment="jitter", **FIT | params).fit(rows)


def test_rows_on_a_disk_and_in_chunks_are_varied_too():
    np.testing.assert_array_equal(fitted().transform(X), fitted(RowArray(X)).transform(X))
    chunks = fitted(RowArray(X, shuffle="chunks"))
    assert np.isfinite(chunks.transform(X)).all()


@pytest.mark.parametrize("augment", ["jitter", "mixup"])
def test_gaps_stay_out_of_the_loss(augment):
    rows = np.where(RNG.random(X.shape) < 0.2, np.float32(np.nan), X)
    kernel = PairwiseKernel("rbf").fit(X)
    source = BatchSource(
        rows, None, np.arange(60), np.arange(0), 20, 3, np.random.default_rng(0),
        torch.device("cpu"), np.full(5, 0.5, np.float32),
    )  # fmt: skip
    views = Views(make_augmentation(augment), lambda rows: kernel.on(np.nan_to_num(rows, nan=0.5)))
    batch = ViewSource(source, views).draw()
    missing = batch.targets.isnan()
    assert 0.1 < missing.float().mean() < 0.5
    assert (batch.inputs[missing] == 0.5).all()
    assert batch.gap_weight == pytest.approx(float(missing.numel() / (~missing).sum()))
    model = make("autoencoder", augment=augment, missing="mask", **FIT).fit(rows)
    assert all(record["reconstruction_loss"] < 10 for record in model.history_)


def test_an_augmentation_may_write_to_what_it_gets():
    def in_place(rows, rng):
        rows += 1
        return rows

    kept = X.copy()
    for rows in (X, RowArray(X), torch.utils.data.DataLoader(torch.from_numpy(X), 20)):
        make("autoencoder", augment=in_place, **FIT).fit(rows)
    np.testing.assert_array_equal(X, kept)
    a, b = (make("autoencoder", augment=f, **FIT).fit(X) for f in (in_place, lambda r, g: r + 1))
    np.testing.assert_array_equal(a.transform(X), b.transform(X))


@pytest.mark.parametrize("way", ["partial_fit", "loader"])
def test_parts_and_loaders_are_varied_too(way):
    def fit(augment):
        model = make("autoencoder", augment=augment, **FIT)
        if way == "partial_fit":
            return model.partial_fit(X).partial_fit(X)
        return model.fit(torch.utils.data.DataLoader(torch.from_numpy(X), 20))

    assert not np.array_equal(fit("mixup").transform(X), fit(None).transform(X))


def test_views_need_a_kernel_of_new_rows():
    P = X @ X.T
    message = "augment='jitter' needs the kernel at new rows, and the model has a Gram matrix"
    with pytest.raises(ValueError, match=message):
        make("autoencoder", augment="jitter").fit(X, gram=P)
    assert make("autoencoder", augment=None).fit(X, gram=P).n_iter_ > 0
    warm = make("autoencoder", augment="jitter", warm_start=True, **FIT).fit(X)
    with pytest.raises(ValueError, match=message):
        warm.fit(X, gram=P)
    with pytest.raises(ValueError, match=message):
        warm.partial_fit(X, gram=P)
    # A Gram of a kernel is enough.
    kernel = PairwiseKernel("linear").fit(X)
    assert make("autoencoder", augment="jitter").fit(X, gram=kernel.on(X)).n_iter_ > 0


def test_views_of_another_shape_are_an_error_that_names_the_parameter():
    with pytest.raises(ValueError, match=r"augment returned float32 of shape \(50, 5\)"):
        make("autoencoder", augment=lambda rows, rng: rows[:50]).fit(X)
