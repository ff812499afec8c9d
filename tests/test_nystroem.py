"""InvertibleNystroem against what a scikit-learn user would build: Nystroem, SVD, a regressor."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import InvertibleNystroem, metrics
from dkae.decoders import MLPDecoder
from dkae.kernels import PairwiseKernel
from dkae.training import Optimization


def make(n_components=8, **params):
    return InvertibleNystroem(
        n_components, **({"n_linear": 0, "decoder": "ridge", "random_state": 0} | params)
    )


def products(codes):
    return codes.astype(np.float64) @ codes.astype(np.float64).T


def error(model, X):
    return np.square(model.inverse_transform(model.transform(X)) - X).mean()


@pytest.fixture
def rows(digits):
    return digits[:200]


# --- the codes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reduction",
    [
        TruncatedSVD(4, algorithm="arpack"),
        TruncatedSVD(40, algorithm="randomized"),
        PCA(6),
    ],
    ids=["SVD of 4", "SVD of all", "PCA"],
)
def test_codes_are_nystroem_features_and_their_svd_or_pca(reduction, rows, digits):
    center = isinstance(reduction, PCA)
    model = make(reduction.n_components, n_landmarks=40, center=center).fit(rows)
    theirs = Nystroem(gamma=model.kernel_.gamma_, n_components=40, random_state=0)
    reduction.fit(theirs.fit(model.landmarks_).transform(rows))
    for X in (rows, digits[200:]):
        expected = products(reduction.transform(theirs.transform(X)))
        np.testing.assert_allclose(products(model.transform(X)), expected, atol=2e-4)
    assert (abs(model.transform(rows).mean(axis=0)).max() < 1e-5) == center


def test_with_all_rows_as_landmarks_inner_products_are_the_kernel(rows):
    model = make(200, n_landmarks=200, kernel="laplacian").fit(rows)
    np.testing.assert_allclose(products(model.transform(rows)), model.kernel_.gram(rows), atol=1e-3)
    assert model.kernel_scale_ == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("given", "n"), [(None, 200), (30, 30), (500, 200)])
def test_landmarks_are_training_rows(given, n, rows):
    landmarks = make(n_landmarks=given).fit(rows).landmarks_
    assert len(np.unique(landmarks, axis=0)) == n
    assert {row.tobytes() for row in landmarks} <= {row.tobytes() for row in rows}


# --- the linear path -----------------------------------------------------------------------------


def test_the_linear_path_is_faint_and_helps_the_decoder(rows):
    # So narrow a kernel tells rows apart, and says nothing about where they are.
    plain, model = (make(16, gamma=2.0, n_linear=n).fit(rows) for n in (0, 8))
    assert model.linear_path_.shape == (64, 8)
    codes = model.transform(rows)
    kernel, path = products(codes[:, :8]), products(codes[:, 8:])
    assert 0 < np.linalg.norm(path) < 1e-3 * np.linalg.norm(kernel)
    np.testing.assert_allclose(plain.transform(rows)[:, :8], codes[:, :8], atol=1e-6)
    assert error(model, rows) < 0.5 * error(plain, rows)


def test_a_code_that_is_all_path_is_pca(rows):
    codes = make(5, n_linear=5).fit(rows).transform(rows)
    scores = PCA(5).fit_transform(rows)
    correlations = np.linalg.svd(
        np.linalg.qr(codes - codes.mean(axis=0))[0].T @ np.linalg.qr(scores)[0], compute_uv=False
    )
    assert correlations.min() > 0.999


def test_the_width_of_the_path_is_chosen_by_the_kernel(rows):
    widths = [
        make(16, gamma=gamma, n_linear=None).fit(rows).linear_path_.shape[1]
        for gamma in ("median", 50.0)
    ]
    assert widths[0] < widths[1]  # the narrow kernel is nearly the identity


# --- the way back --------------------------------------------------------------------------------


def test_any_regressor_is_fitted_from_codes_to_rows(rows):
    regressor = make_pipeline(StandardScaler(), KernelRidge(alpha=0.1))
    model = make(decoder=regressor).fit(rows)
    codes = model.transform(rows)
    expected = regressor.fit(codes, rows).predict(codes)
    np.testing.assert_allclose(model.inverse_transform(codes), expected, atol=1e-4)


def test_decoders_by_name(rows, digits):
    """Linear regression is the floor of all that are shipped."""
    new = digits[200:]
    floor = error(make(16, decoder=LinearRegression()).fit(rows), new)
    errors = {
        d: error(make(16, decoder=d).fit(rows), new) for d in ("ridge", "kernel_ridge", "mlp")
    }
    assert errors["ridge"] < 1.02 * floor
    assert errors["kernel_ridge"] < 0.98 * floor
    assert errors["mlp"] < 0.98 * floor
    few = make(16, decoder="auto").fit(rows)
    assert "KernelRidgeDecoder" in repr(few)


def test_it_is_what_a_scikit_learn_user_would_build(rows, digits):
    """The map of Nystroem + PCA + KernelRidge, whose inverse is at least as good."""
    new = digits[200:]
    model = make(16, decoder="kernel_ridge", center=True).fit(rows)
    features = make_pipeline(
        Nystroem(gamma=model.kernel_.gamma_, n_components=200, random_state=0),
        PCA(16, random_state=0),
    ).fit(rows)
    Z, Z_new = features.transform(rows), features.transform(new)
    gamma = PairwiseKernel("rbf").fit(Z).gamma_
    regressions = [
        KernelRidge(kernel="rbf", gamma=gamma, alpha=alpha).fit(Z, rows - rows.mean(axis=0))
        for alpha in (1e-3, 1e-2, 0.1, 1)
    ]
    theirs = min(np.square(r.predict(Z_new) + rows.mean(axis=0) - new).mean() for r in regressions)
    assert error(model, new) < theirs
    prior = model.prior_gram(new)
    mine = metrics.centered_alignment(metrics.code_gram(model.transform(new)), prior)
    assert mine > metrics.centered_alignment(metrics.code_gram(Z_new), prior) - 1e-4


def test_a_decoder_that_gets_worse_stays_ridge_regression(rows):
    """The learning rate is so high that every epoch is worse than none."""
    wild = Optimization(learning_rate="constant", learning_rate_init=3.0)
    decoder = MLPDecoder((16,), max_iter=3, steps_per_epoch=10, optimization=wild)
    model = make(decoder=decoder).fit(rows)
    assert not model.decoder_.network_.last.weight.any()
    assert len(model.history_) == 3
