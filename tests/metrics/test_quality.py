"""How good a fit is, by hand, and warnings that come where they should and nowhere else."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder
from dkae.metrics.quality import Quality, r_squared

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 5)).astype(np.float32) * np.float32([1, 2, 1, 1, 1.5])
NEAR_CONSTANT = (
    r"the codes are nearer to a constant kernel \(alignment \d\.\d{3}\) than to the kernel "
    r"\(\d\.\d{3}\): train for longer \(max_iter\), raise n_components or alignment_weight, or "
    "scale X"
)
BELOW_THE_MEAN = (
    r"the reconstructions are worse than the mean of the rows \(R² = -.*\): train for longer "
    r"\(max_iter, decoder_max_iter\), raise n_components, or lower alignment_weight"
)


def make(**params):
    defaults = {
        "n_components": 4,
        "hidden_layer_sizes": (16,),
        "decoder_max_iter": 2,
        "steps_per_epoch": 10,
        "batch_size": 50,
        "random_state": 0,
    }
    return DeepKernelizedAutoencoder(**(defaults | params))


def cosine(a, b):
    return (a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)


def centred(gram):
    h = np.eye(len(gram)) - 1 / len(gram)
    return h @ gram @ h


@pytest.mark.parametrize("network", ["stacked", "kernel_layer"])
@pytest.mark.parametrize("standardize", ["features", "shared", False])
def test_the_attributes_are_those_of_dense_matrices(network, standardize):
    model = make(network=network, max_iter=3, standardize=standardize).fit(X)
    codes = model.transform(X).astype(np.float64)
    mine, prior = codes @ codes.T, rbf_kernel(X.astype(np.float64), gamma=model.kernel_.gamma_)
    assert model.alignment_ == pytest.approx(cosine(mine, prior), abs=1e-5)
    expected = cosine(centred(mine), centred(prior))
    assert model.centered_alignment_ == pytest.approx(expected, abs=1e-4)
    assert model.kernel_scale_ == pytest.approx((mine * prior).sum() / (mine**2).sum(), rel=1e-4)
    back = model.inverse_transform(model.transform(X))
    # In these units all features count the same, or as they are.
    how = "uniform_average" if standardize == "features" else "variance_weighted"
    assert model.r2_ == pytest.approx(r2_score(X, back, multioutput=how), abs=1e-4)


def test_of_many_rows_a_sample_is_measured(monkeypatch):
    monkeypatch.setattr("dkae.fitting.N_SAMPLE_ROWS", 40)
    rows = np.sort(np.random.default_rng(0).choice(len(X), 40, replace=False))
    model = make().fit(X)
    codes = model.transform(X[rows]).astype(np.float64)
    prior = rbf_kernel(X[rows].astype(np.float64), gamma=model.kernel_.gamma_)
    assert model.alignment_ == pytest.approx(cosine(codes @ codes.T, prior), abs=1e-5)


@pytest.mark.parametrize("n_gaps", [0, 30])
def test_r2_is_scikit_learn_s(n_gaps):
    rows, decoded = X.astype(np.float64).copy(), X + RNG.normal(size=X.shape)
    rows.flat[RNG.choice(rows.size, n_gaps, replace=False)] = np.nan
    scale = np.float64([1, 2, 3, 4, 5])
    scores, variances = [], []
    for x, y, s in zip(rows.T, decoded.T, scale, strict=True):
        known = np.isfinite(x)
        scores.append(r2_score(x[known], y[known]))
        variances.append(np.square((x[known] - x[known].mean()) / s).sum())
    expected = np.average(scores, weights=variances)
    assert r_squared(rows, decoded, scale) == pytest.approx(expected, abs=1e-9)


def test_r2_of_constant_rows_is_zero():
    assert r_squared(np.ones((4, 2)), np.zeros((4, 2))) == 0.0


# --- warnings ------------------------------------------------------------------------------------


def quality(**values):
    good = {
        "alignment": 0.9,
        "centered_alignment": 0.8,
        "constant_alignment": 0.5,
        "r2": 0.5,
        "scale": 1.0,
    }
    return Quality(**(good | values))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("values", "alignment_weight", "message"),
    [
        ({}, 0.1, None),
        ({"alignment": 0.4}, 0.1, NEAR_CONSTANT),
        ({"alignment": 0.4}, 0, None),  # nobody asked for an alignment
        ({"r2": -0.01}, 0.1, BELOW_THE_MEAN),
        ({"r2": -0.01}, 1, None),  # nobody asked for reconstructions
        ({"r2": 0.0}, 0.1, None),
    ],
)
def test_a_warning_comes_where_something_is_bad_that_was_asked_for(
    values, alignment_weight, message
):
    if message is None:
        quality(**values).warn_if_bad(alignment_weight)
    else:
        with pytest.warns(ConvergenceWarning, match=message):
            quality(**values).warn_if_bad(alignment_weight)


@pytest.mark.filterwarnings("error")
def test_the_defaults_have_nothing_to_warn_of():
    make().fit(X)


def bad():
    """Return a model that has not learnt anything: its kernel is far from constant."""
    return make(
        n_components=2,
        network="stacked",
        max_iter=1,
        decoder_max_iter=0,
        steps_per_epoch=1,
        learning_rate_init=1e-9,
        code_activation="sigmoid",
        gamma=3.0,
    )


@pytest.mark.filterwarnings("ignore:the reconstructions are worse")
def test_codes_that_are_nearly_constant_are_warned_of():
    with pytest.warns(ConvergenceWarning, match=NEAR_CONSTANT) as caught:
        bad().fit(X)
    assert caught[0].filename == __file__  # at the line of the user


@pytest.mark.filterwarnings("ignore:the codes are nearer")
def test_reconstructions_that_are_worse_than_the_mean_are_warned_of():
    with pytest.warns(ConvergenceWarning, match=BELOW_THE_MEAN):
        bad().set_params(standardize=False).fit(X + 20)


def test_where_warnings_are_errors_the_fitted_model_is_kept():
    model = bad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning, match="nearer to a constant kernel"):
            model.fit(X)
    assert model.transform(X).shape == (150, 2)
    assert len(model.history_) == 1


# --- one feature that is all --------------------------------------------------------------------

LARGE = X * np.float32([1, 1, 1000, 1, 1])
DOMINANT = (
    r"feature {} has 100 % of the squared distances between rows, so kernel 'rbf' hardly sees the "
    r"others: scale X first, for example with make_pipeline\(StandardScaler\(\), model\), or "
    "`dkae fit --standardize`"
)


def test_a_feature_that_hides_the_others_is_warned_of():
    with pytest.warns(UserWarning, match=DOMINANT.format(2)):
        make().fit(LARGE)


def test_a_feature_of_a_data_frame_is_called_by_its_name():
    frame = pd.DataFrame(LARGE, columns=["age", "height", "income", "weight", "size"])
    with pytest.warns(UserWarning, match=DOMINANT.format("'income'")):
        make().fit(frame)


@pytest.mark.filterwarnings("error")
def test_the_remedy_is_one():
    make_pipeline(StandardScaler(), make()).fit(LARGE)


@pytest.mark.filterwarnings("error")
def test_there_is_nothing_to_scale_where_the_kernel_or_the_gram_is_the_user_s():
    make(kernel=lambda A, B: rbf_kernel(A / 1000, B / 1000), alignment_weight=0.0).fit(LARGE)
    make(alignment_weight=0.0).fit(LARGE, gram=rbf_kernel(X))
    make().fit(LARGE[:, [2]])  # the one feature that there is
    make().fit(np.c_[LARGE[:, 2], np.ones(len(X), np.float32)])  # the one that varies


@pytest.mark.filterwarnings("error")
def test_the_share_that_is_too_much_is_nine_tenths():
    """Independent features have shares as their variances."""
    rows = RNG.normal(size=(150, 2)).astype(np.float32)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    make().fit(rows * np.float32([np.sqrt(8.9), 1]))
    with pytest.warns(UserWarning, match=r"feature 0 has 90\.1 % of the squared distances"):
        make().fit(rows * np.float32([np.sqrt(9.1), 1]))
