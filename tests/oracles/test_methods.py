"""Kernel PCA, Nyström features and the way back, against scikit-learn and naive formulas."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel

from dkae import InvertibleNystroem, KernelPCA
from dkae.decoders import KernelRidgeDecoder, RidgeDecoder
from dkae.kernels import NystroemFeatures, PairwiseKernel

NAMES = ("rbf", "laplacian", "poly", "linear", "cosine", "sigmoid")


def random_rows(seed, n=60):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    return rng.normal(size=(n, d)), rng.normal(size=(15, d)), rng


def values(kernel, X, Y=None):
    """Return κ(X, Y) of scikit-learn for a fitted kernel by name."""
    params = {"gamma": kernel.gamma_, "filter_params": True}
    return pairwise_kernels(X, Y, kernel.metric, **params)


def up_to_sign(scores, expected):
    signs = np.sign(np.sum(scores * expected, axis=0))
    np.testing.assert_allclose(scores * signs, expected, atol=1e-5 * np.abs(expected).max())


# --- kernel PCA ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "cosine"])
@pytest.mark.parametrize("seed", range(6))
def test_kernel_pca_is_that_of_scikit_learn(seed, name):
    X, new, _ = random_rows(seed)
    ours = KernelPCA(2, kernel=name, decoder=None).fit(X)
    theirs = decomposition.KernelPCA(
        2, kernel=name, gamma=ours.kernel_.gamma_, eigen_solver="dense"
    ).fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-5)
    up_to_sign(ours.transform(X), theirs.transform(X))
    up_to_sign(ours.transform(new), theirs.transform(new))


@pytest.mark.parametrize("solver", ["dense", "lanczos"])
@pytest.mark.parametrize("seed", range(6))
def test_uncentred_kernel_pca_is_an_eigendecomposition(seed, solver):
    """Out of sample it is Nyström's extension, Z = K(new, X) E Λ^(-1/2)."""
    X, new, _ = random_rows(seed)
    ours = KernelPCA(4, kernel="rbf", center=False, solver=solver, decoder=None, random_state=0)
    ours.fit(X)
    kernel = ours.kernel_
    eigenvalues, E = np.linalg.eigh(values(kernel, X))
    eigenvalues, E = eigenvalues[:-5:-1], E[:, :-5:-1]
    np.testing.assert_allclose(ours.eigenvalues_, eigenvalues, rtol=1e-5)
    up_to_sign(ours.transform(new), values(kernel, new, X) @ E / np.sqrt(eigenvalues))


# --- Nyström -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "laplacian", "poly"])
@pytest.mark.parametrize("seed", range(6))
def test_nystroem_features_have_the_inner_products_of_scikit_learn(seed, name):
    X, new, rng = random_rows(seed)
    landmarks = X[: int(rng.integers(5, 20))]
    kernel = PairwiseKernel(name).fit(X)
    gram = values(kernel, landmarks)
    theirs = Nystroem("precomputed", n_components=len(landmarks), random_state=0).fit(gram)
    expected = theirs.transform(values(kernel, new, landmarks))
    for features in (
        NystroemFeatures(kernel, landmarks),
        NystroemFeatures(kernel, landmarks, len(landmarks)).fit(X),
    ):
        codes = features(new)
        scale = np.abs(expected @ expected.T).max()
        np.testing.assert_allclose(codes @ codes.T, expected @ expected.T, atol=1e-4 * scale)


@pytest.mark.parametrize("seed", range(6))
def test_leading_directions_are_those_of_the_features(seed):
    """Truncated, the inner products are those of the best rank-m part of the features of X."""
    X, new, _ = random_rows(seed)
    kernel = PairwiseKernel("rbf").fit(X)
    phi, psi = (NystroemFeatures(kernel, X[:20])(rows) for rows in (X, new))
    _, _, V = np.linalg.svd(phi, full_matrices=False)
    expected = psi @ V[:4].T @ V[:4] @ psi.T
    codes = NystroemFeatures(kernel, X[:20], 4).fit(X)(new)
    np.testing.assert_allclose(codes @ codes.T, expected, atol=1e-5)
    pca = decomposition.PCA(4).fit(phi)
    up_to_sign(NystroemFeatures(kernel, X[:20], 4, center=True).fit(X)(new), pca.transform(psi))


@pytest.mark.parametrize("seed", range(4))
def test_the_map_from_all_landmarks_is_scikit_learns_nystroem(seed):
    X, new, _ = random_rows(seed)
    gamma = 0.1
    model = InvertibleNystroem(
        20, kernel=partial(rbf_kernel, gamma=gamma), n_landmarks=20, n_linear=0,
        decoder="ridge", random_state=seed,
    ).fit(X)  # fmt: skip
    L = model.landmarks_.astype(np.float64)
    S = rbf_kernel(new, L, gamma)
    expected = S @ np.linalg.inv(rbf_kernel(L, gamma=gamma)) @ S.T
    codes = model.transform(new)
    np.testing.assert_allclose(codes @ codes.T, expected, atol=1e-3)


# --- the way back --------------------------------------------------------------------------------


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_ridge_is_that_of_scikit_learn(seed, alpha):
    rows, _, rng = random_rows(seed)
    codes, new = rng.normal(size=(60, 5)) * rng.uniform(0.1, 9, 5), rng.normal(size=(9, 5))
    ours = RidgeDecoder([alpha]).fit(codes, rows)
    mean, scale = codes.mean(axis=0), codes.std(axis=0)
    theirs = Ridge(alpha=alpha * len(codes)).fit((codes - mean) / scale, rows)
    np.testing.assert_allclose(ours.predict(new), theirs.predict((new - mean) / scale), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("alpha", [1e-2, 0.3])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:Singular matrix in solving dual problem")  # the sigmoid
def test_the_pre_image_is_scikit_learns_kernel_ridge(seed, alpha, name):
    """Of what linear regression leaves of the rows."""
    rows, _, rng = random_rows(seed)
    codes, new = rng.normal(size=(60, 4)), rng.normal(size=(9, 4))
    ours = KernelRidgeDecoder(kernel=name, alphas=[alpha]).fit(codes, rows)
    ridge = RidgeDecoder().fit(codes, rows)
    left = rows - ridge.predict(codes)
    theirs = KernelRidge(alpha=alpha, kernel=name, gamma=ours.gamma_).fit(codes, left)
    expected = ridge.predict(new) + theirs.predict(new)
    np.testing.assert_allclose(ours.predict(new), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_strength_is_chosen_by_leaving_rows_out(seed):
    rows, _, rng = random_rows(seed, n=30)
    codes, alphas = rows[:, :2] + 0.1 * rng.normal(size=(30, 2)), [1e-3, 0.03, 1.0, 30.0]
    ours = KernelRidgeDecoder(alphas=alphas).fit(codes, rows)
    left = rows - RidgeDecoder().fit(codes, rows).predict(codes)

    def error(alpha):
        ridge, own = KernelRidge(alpha=alpha, kernel="rbf", gamma=ours.gamma_), np.arange(30)
        parts = [
            ridge.fit(codes[own != i], left[own != i]).predict(codes[[i]])[0] - left[i]
            for i in range(30)
        ]
        return np.sum(np.square(parts))

    assert ours.alpha_ == min(alphas, key=error)


@pytest.mark.parametrize("seed", range(4))
def test_landmarks_give_the_least_squares_of_the_formula(seed):
    """A = (l(L, C) l(C, L) + α l(L, L))⁻¹ l(L, C) Z."""
    rows, _, rng = random_rows(seed)
    codes, new, alpha = rng.normal(size=(60, 4)), rng.normal(size=(9, 4)), 0.1
    ours = KernelRidgeDecoder(alphas=[alpha], n_landmarks=15, random_state=0).fit(codes, rows)
    ridge, L = RidgeDecoder().fit(codes, rows), ours.landmarks_
    S = rbf_kernel(codes, L, ours.gamma_)
    gram = S.T @ S + alpha * rbf_kernel(L, gamma=ours.gamma_)
    A = np.linalg.solve(gram, S.T @ (rows - ridge.predict(codes)))
    expected = ridge.predict(new) + rbf_kernel(new, L, ours.gamma_) @ A
    np.testing.assert_allclose(ours.predict(new), expected, rtol=1e-5, atol=1e-6)
