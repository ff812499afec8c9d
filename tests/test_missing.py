"""Rows with missing values: who sees what, what counts, and how well gaps are filled."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from dkae import DeepKernelizedAutoencoder, load, save
from dkae.kernels import PairwiseKernel, Precomputed
from dkae.networks import KernelLayerNetwork
from dkae.networks.scaling import VARIANCE
from dkae.training import Batch
from dkae.training.trainer import _measured
from tests.nets import Linear

RNG = np.random.default_rng(0)
FULL = (RNG.normal(size=(80, 6)) * [1, 2, 3, 1, 5, 1] + [0, 3, 0, -9, 1, 1]).astype(np.float32)
GAPS = RNG.random(FULL.shape) < 0.2
X = np.where(GAPS, np.float32(np.nan), FULL)
MEANS = np.nanmean(X.astype(np.float64), axis=0)
FILLED = np.where(GAPS, MEANS.astype(np.float32), X)


def make(**params):
    defaults = {
        "n_components": 4,
        "missing": "mask",
        "hidden_layer_sizes": (12,),
        "max_iter": 1,
        "decoder_max_iter": 1,
        "steps_per_epoch": 4,
        "batch_size": 40,
        "random_state": 0,
    }
    return DeepKernelizedAutoencoder(**(defaults | params))


both = pytest.mark.parametrize("network", ["stacked", "kernel_layer"])


# --- who sees what -------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("kernel", ["rbf", "linear", "pck", "forest"])
def test_kernels_of_the_library_see_means(kernel, network):
    params = {"max_components": 3, "n_initializations": 2} if kernel == "pck" else None
    model = make(kernel=kernel, network=network, kernel_params=params).fit(X)
    np.testing.assert_allclose(model.fill_, MEANS, rtol=1e-6)
    block = model.prior_gram(X).block(np.arange(80))
    np.testing.assert_allclose(block, model.kernel_.gram(FILLED), rtol=1e-4, atol=1e-5)


def test_the_bandwidth_is_that_of_filled_rows():
    gamma = make().fit(X).kernel_.gamma_
    assert gamma == pytest.approx(PairwiseKernel("rbf").fit(FILLED).gamma_, rel=1e-6)


@both
def test_a_kernel_of_the_user_s_sees_gaps(network):
    seen = []

    def of_known_entries(A, B):
        seen.append(np.isnan(A).any() and np.isnan(B).any())
        a, b = (np.nan_to_num(rows) for rows in (A, B))
        return a @ b.T + (~np.isnan(A)).astype(float) @ (~np.isnan(B)).astype(float).T

    model = make(kernel=of_known_entries, network=network).fit(X)
    assert all(seen)
    expected = of_known_entries(X, X)
    np.testing.assert_allclose(model.prior_gram(X).block(np.arange(80)), expected, rtol=1e-5)
    assert np.isfinite(model.transform(X)).all()


@both
def test_a_kernel_of_the_user_s_that_says_so_sees_means(network):
    class Plain(PairwiseKernel):
        def evaluate(self, X, Y):
            assert not np.isnan(X).any()
            return super().evaluate(X, Y)

    assert make(kernel=Plain("rbf"), network=network).fit(X).score(X) > 0


@both
def test_codes_are_those_of_rows_with_means_in_the_gaps(network):
    model = make(network=network).fit(X)
    np.testing.assert_allclose(model.transform(X), model.transform(model_filled(model)), atol=1e-5)


def model_filled(model):
    return np.where(GAPS, model.fill_, X)


@both
def test_new_rows_may_have_gaps_where_the_training_rows_had_none(network):
    model = make(network=network).fit(FULL)
    codes = model.transform(X[:7])
    expected = model.transform(np.where(GAPS, FULL.mean(axis=0), X)[:7])
    np.testing.assert_allclose(codes, expected, atol=1e-4 * np.abs(expected).max())


@both
def test_a_feature_and_a_row_without_any_value_are_no_trouble(network):
    rows = X.copy()
    rows[:, 2] = rows[5] = np.nan
    model = make(network=network).fit(rows)
    assert np.isfinite(model.inverse_transform(model.transform(rows))).all()
    assert np.isfinite(model.r2_)


# --- what counts ---------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("standardize", ["features", "shared", False])
def test_the_reconstruction_loss_is_the_mean_over_known_entries(network, standardize):
    model = make(
        network=network,
        standardize=standardize,
        max_iter=1,
        decoder_max_iter=0,
        steps_per_epoch=1,
        batch_size=80,
        early_stopping=False,  # all rows are in the batch
        learning_rate_init=1e-12,  # the weights stay what they are
    ).fit(X)
    scale = {"features": np.nanstd(X, axis=0), "shared": np.sqrt(np.nanvar(X, axis=0).mean())}
    unit = 1.0 if standardize is False else scale[standardize] / np.sqrt(VARIANCE)
    error = (X - model.inverse_transform(model.transform(X))) / unit
    loss = model.history_[0]["reconstruction_loss"]
    assert loss == pytest.approx(np.square(error[~GAPS]).mean(), rel=1e-3)


def test_what_stands_in_a_gap_has_no_gradient():
    outputs = torch.zeros(80, 6, requires_grad=True)
    rows = torch.from_numpy(X)
    targets, measured = _measured(Batch(rows, rows, None), outputs, None)
    loss = (measured - targets).square().mean()
    (gradient,) = torch.autograd.grad(loss, outputs)
    known = ~torch.from_numpy(GAPS)
    assert not gradient[~known].any()
    expected = -2 * torch.from_numpy(X)[known] / known.sum()
    torch.testing.assert_close(gradient[known], expected)


def test_a_batch_of_gaps_alone_has_no_loss():
    rows = torch.full((3, 2), torch.nan)
    targets, outputs = _measured(Batch(rows, rows, None), torch.ones(3, 2), torch.tensor(2.0))
    assert (targets - outputs).square().mean() == 0


@pytest.mark.parametrize("network", ["stacked", "kernel_layer", Linear])
@pytest.mark.parametrize("standardize", ["auto", "features", False])
def test_rows_without_gaps_are_trained_on_as_without_the_mask(network, standardize):
    if network is Linear:
        torch.manual_seed(0)
    params = {"network": network, "standardize": standardize, "decoder_max_iter": 0}
    masked, plain = (make(missing=missing, **params).fit(FULL) for missing in ("mask", "error"))
    for a, b in zip(masked.history_, plain.history_, strict=True):
        assert a["reconstruction_loss"] == pytest.approx(b["reconstruction_loss"], rel=2e-3)
    # Up to a constant, where rows are not standardised: the linear path has the means for its zero.
    a, b = (codes - codes.mean(axis=0) for codes in (masked.transform(FULL), plain.transform(FULL)))
    np.testing.assert_allclose(a, b, atol=2e-3)


def test_r2_is_over_known_entries():
    model = make(standardize="features", decoder_max_iter=20).fit(X)
    scale = np.nanstd(X, axis=0)
    error = (X - model.inverse_transform(model.transform(X))) / scale
    total = np.nansum(np.square((X - np.nanmean(X, axis=0)) / scale))
    assert model.r2_ == pytest.approx(1 - np.nansum(np.square(error)) / total, abs=1e-4)


@pytest.mark.parametrize("standardize", ["features", False])
@pytest.mark.parametrize("shift", [0, 50])
def test_the_linear_path_takes_a_gap_for_the_mean(standardize, shift):
    """Also where rows are not standardised, and the mean is far from 0."""
    spec = KernelLayerNetwork(n_linear=3)
    model = make(network=spec, standardize=standardize, max_iter=0).fit(X + np.float32(shift))
    filled = model.transform(np.where(GAPS, model.fill_, X + np.float32(shift)))
    codes = model.transform(X + np.float32(shift))
    spread = filled.std(axis=0)
    np.testing.assert_allclose(codes / spread, filled / spread, atol=1e-2)
    assert model.r2_ > 0.3


@pytest.mark.parametrize("landmarks", ["random", "k-means"])
def test_landmarks_may_have_gaps(landmarks):
    model = make(network=KernelLayerNetwork(20, landmarks), max_iter=0).fit(X)
    assert model.alignment_ > 0.9


# --- imputation ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("network", "n_components"), [("stacked", 6), ("kernel_layer", 2)])
def test_gaps_of_low_rank_rows_are_filled_better_than_by_means(network, n_components):
    rng = np.random.default_rng(1)
    truth = (rng.normal(size=(400, 2)) @ rng.normal(size=(2, 12))).astype(np.float32)
    gaps = rng.random(truth.shape) < 0.1
    rows = np.where(gaps, np.float32(np.nan), truth)
    model = DeepKernelizedAutoencoder(
        n_components, missing="mask", network=network, kernel="linear", hidden_layer_sizes=(64,),
        alignment_weight=0.1, steps_per_epoch=20, random_state=0,
    ).fit(rows)  # fmt: skip
    filled = model.inverse_transform(model.transform(rows))
    by_means = np.broadcast_to(np.nanmean(rows, axis=0), rows.shape)
    mine, means = (np.square(a - truth)[gaps].mean() for a in (filled, by_means))
    assert mine < 0.3 * means


# --- refusals and files --------------------------------------------------------------------------


def test_gaps_are_refused_without_the_mask():
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make(missing="error").fit(X)
    model = make(missing="error").fit(FULL)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.transform(X)


@pytest.mark.parametrize("infinity", [np.inf, -np.inf])
def test_infinite_values_are_refused_with_the_mask_too(infinity):
    rows = X.copy()
    rows[0, 0] = infinity
    with pytest.raises(ValueError, match="Input X contains infinity"):
        make().fit(rows)
    with pytest.raises(ValueError, match="Input X contains infinity"):
        make().fit(X).transform(rows)


def test_an_unknown_way_is_refused():
    with pytest.raises(
        ValueError, match="missing='drop' is not known: expected one of 'error', 'mask'"
    ):
        make(missing="drop").fit(FULL)


def test_the_tags_say_so():
    assert make().__sklearn_tags__().input_tags.allow_nan
    assert not make(missing="error").__sklearn_tags__().input_tags.allow_nan


@both
def test_a_model_file_keeps_the_means(network, tmp_path):
    model = make(network=network).fit(X)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    codes = model.transform(X)
    np.testing.assert_array_equal(loaded.fill_, model.fill_)
    np.testing.assert_array_equal(loaded.transform(X), codes)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))
    assert loaded.score(X) == model.score(X)


def test_a_gram_matrix_of_rows_with_gaps():
    gram = rbf_kernel(FILLED, gamma=0.05)
    model = make(network="stacked").fit(X, gram=gram)
    assert model.kernel_ is None
    assert model.score(X, gram=gram) > 0
    shuffled = RNG.permutation(80)
    known = make(network="stacked", kernel=Precomputed(gram, rows=X)).fit(X[shuffled])
    block = known.prior_gram(X[:9]).block(np.arange(9))
    np.testing.assert_allclose(block, gram[:9, :9], rtol=1e-6)


@both
def test_sparse_rows_may_have_gaps(network):
    rows = sparse.csr_array(X)
    dense, mine = make(network=network).fit(X), make(network=network).fit(rows)
    np.testing.assert_array_equal(mine.transform(rows), dense.transform(X))
    assert mine.score(rows) == dense.score(X)


def test_noise_pretraining_and_distillation_with_gaps():
    for params in ({"input_noise": 0.3}, {"pretrain_max_iter": 1}, {"distillation": 1.0}):
        model = make(network="stacked", **params).fit(X)
        assert np.isfinite(model.transform(X)).all()
