"""Missing values: what counts in losses and measures, and how well gaps are filled."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dkae import DeepKernelizedAutoencoder, InvertibleNystroem, KernelPCA
from dkae.kernels import PairwiseKernel
from dkae.networks import VARIANCE, Stack
from dkae.training import BatchSource
from dkae.training.loss import without_gaps

RNG = np.random.default_rng(0)
FULL = (RNG.normal(size=(80, 6)) * [1, 2, 3, 1, 5, 1] + [0, 3, 0, -9, 1, 1]).astype(np.float32)
GAPS = RNG.random(FULL.shape) < 0.2
X = np.where(GAPS, np.float32(np.nan), FULL)


def make(**params):
    model = DeepKernelizedAutoencoder(
        4, missing="mask", network=Stack((12,)), max_iter=1, decoder_max_iter=1, steps_per_epoch=4,
        batch_size=40, random_state=0,
    )  # fmt: skip
    return model.set_params(**params)


@pytest.mark.parametrize("scaling", ["features", "shared", False])
def test_the_reconstruction_loss_is_the_mean_over_known_entries(scaling):
    model = make(
        network__input_scaling=scaling,
        decoder_max_iter=0,
        steps_per_epoch=1,
        batch_size=80,  # all rows are in the batch
        optimization__learning_rate_init=1e-12,  # the weights stay what they are
    ).fit(X)
    scale = {"features": np.nanstd(X, axis=0), "shared": np.sqrt(np.nanvar(X, axis=0).mean())}
    unit = 1.0 if scaling is False else scale[scaling] / np.sqrt(VARIANCE)
    error = (X - model.inverse_transform(model.transform(X))) / unit
    loss = model.history_[0]["reconstruction_loss"]
    assert loss == pytest.approx(np.square(error[~GAPS]).mean(), rel=1e-3)


def test_what_stands_in_a_gap_has_no_gradient():
    outputs = torch.zeros(80, 6, requires_grad=True)
    ids, fill = np.arange(80), np.zeros(6, np.float32)
    source = BatchSource(
        X, None, ids, ids[:0], 80, 1, np.random.default_rng(0), torch.device("cpu"), fill
    )
    batch = source.draw()
    rows, known = batch.targets, ~batch.targets.isnan()
    targets, measured = without_gaps(rows, outputs, batch.gap_weight)
    (gradient,) = torch.autograd.grad((measured - targets).square().mean(), outputs)
    assert not gradient[~known].any()
    torch.testing.assert_close(gradient[known], -2 * rows[known] / known.sum())
    nothing, unit = torch.full((3, 2), torch.nan), torch.tensor(2.0)
    targets, outputs = without_gaps(nothing, torch.ones(3, 2), torch.tensor(6.0), unit)
    assert (targets - outputs).square().mean() == 0


def test_r2_is_over_known_entries():
    model = make(network__input_scaling="features", decoder_max_iter=20).fit(X)
    scale = np.nanstd(X, axis=0)
    error = (X - model.inverse_transform(model.transform(X))) / scale
    total = np.nansum(np.square((X - np.nanmean(X, axis=0)) / scale))
    assert model.r2_ == pytest.approx(1 - np.nansum(np.square(error)) / total, abs=1e-4)


@pytest.mark.parametrize("params", [{"input_noise": 0.3}, {"pretrain_max_iter": 1}], ids=str)
def test_noise_and_pretraining_with_gaps(params):
    assert np.isfinite(make(**params).fit(X).transform(X)).all()


@pytest.mark.parametrize("model", [make(), InvertibleNystroem(4, missing="mask", random_state=0)])
def test_a_feature_and_a_row_without_any_value_are_no_trouble(model):
    rows = X.copy()
    rows[:, 2] = rows[5] = np.nan
    model.fit(rows)
    assert np.isfinite(model.inverse_transform(model.transform(rows))).all()
    assert np.isfinite(model.r2_)


@pytest.mark.parametrize("shift", [0, 50])
def test_the_linear_path_takes_a_gap_for_the_mean(shift):
    rows = X + np.float32(shift)
    model = InvertibleNystroem(4, n_linear=3, missing="mask", random_state=0).fit(rows)
    filled = model.transform(np.where(GAPS, model.fill_, rows))
    spread = filled.std(axis=0)
    np.testing.assert_allclose(model.transform(rows) / spread, filled / spread, atol=1e-2)
    assert model.r2_ > 0.3


def test_a_kernel_that_takes_no_gaps_sees_means():
    class Plain(PairwiseKernel):
        def evaluate(self, X, Y):
            assert not np.isnan(X).any()
            return super().evaluate(X, Y)

    for model in (make(), InvertibleNystroem(4, missing="mask"), KernelPCA(4, missing="mask")):
        assert model.set_params(kernel=Plain("rbf")).fit(X).score(X) > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        DeepKernelizedAutoencoder(6, network=Stack((64,)), steps_per_epoch=20, random_state=0),
        InvertibleNystroem(2, decoder="ridge", random_state=0),
    ],
    ids=["autoencoder", "nystroem"],
)
def test_gaps_of_low_rank_rows_are_filled_better_than_by_means(model):
    rng = np.random.default_rng(1)
    truth = (rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))).astype(np.float32)
    gaps = rng.random(truth.shape) < 0.1
    rows = np.where(gaps, np.float32(np.nan), truth)
    model.set_params(missing="mask", kernel="linear").fit(rows)
    filled = model.inverse_transform(model.transform(rows))
    by_means = np.broadcast_to(np.nanmean(rows, axis=0), rows.shape)
    mine, means = (np.square(a - truth)[gaps].mean() for a in (filled, by_means))
    assert mine < 0.3 * means
