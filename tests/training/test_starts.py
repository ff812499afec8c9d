"""What weights start from: Nyström features, ridge regression, principal directions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from dkae.training.building import build
from dkae.training.starts import ALPHAS, HOLD_OUT_EVERY, choose_width, fit_ridge, make_path
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import kernel_of
from dkae.networks import KernelLayerNetwork, decode_rows, encode_rows
from dkae.training import starts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 6)).astype(np.float32) * np.float32([1, 2, 3, 1, 1, 5])
NEW = RNG.normal(size=(20, 6)).astype(np.float32)


def started(rows, n_components, spec=None, **params):
    """Return a kernel layer as training finds it, and its fitted kernel."""
    defaults = {"kernel": "rbf", "hidden_layer_sizes": (8,), "random_state": 0}
    model = DeepKernelizedAutoencoder(
        n_components, network=spec or KernelLayerNetwork(), **(defaults | params)
    )
    model.fill_ = None
    kernel = kernel_of(model, rows, None)
    return build(model, rows, kernel, seed=0), kernel


def gram_of_codes(built, rows):
    codes = encode_rows(built.maps, rows).astype(np.float64)
    return codes @ codes.T


# --- codes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "rank"),
    [({"gamma": 0.5}, 90), ({"kernel": "laplacian"}, 90), ({"kernel": "linear"}, 6)],
)
def test_as_many_codes_as_the_kernel_has_dimensions_are_the_kernel(params, rank):
    built, kernel = started(X, rank, KernelLayerNetwork(n_linear=0), **params)
    gram = kernel.gram(X)
    np.testing.assert_allclose(gram_of_codes(built, X), gram, atol=1e-4 * np.abs(gram).max())


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cosine"])
@pytest.mark.parametrize("n_landmarks", [15, 40])
def test_codes_are_the_leading_part_of_scikit_learn_s_nystroem_features(kernel, n_landmarks):
    """Also at rows that the start has not seen."""
    spec = KernelLayerNetwork(n_landmarks, n_linear=0)
    rows = X[:, :3] if kernel == "cosine" else X
    n_components = 3 if kernel == "cosine" else 7
    built, fitted = started(rows, n_components, spec, kernel=kernel)
    landmarks = built.network.similarity.rows.numpy()
    assert landmarks.shape == (n_landmarks, rows.shape[1])
    assert {row.tobytes() for row in landmarks} <= {row.tobytes() for row in rows}
    # scikit-learn keeps round-off of a cosine kernel of low rank: it is its own Gram matrix then.
    both = np.vstack([rows, NEW[:, : rows.shape[1]]])
    if kernel == "cosine":
        expected = fitted.gram(both)
    else:
        params = {"gamma": fitted.gamma_}
        oracle = Nystroem(kernel=kernel, n_components=n_landmarks, random_state=1, **params)
        features = oracle.fit(landmarks.astype(np.float64)).transform(both)
        _, _, directions = np.linalg.svd(features[: len(rows)], full_matrices=False)
        projected = features @ directions[:n_components].T
        expected = projected @ projected.T
    np.testing.assert_allclose(gram_of_codes(built, both), expected, atol=2e-4)


def test_inner_products_are_the_kernel_s_with_a_linear_path_too():
    built, _ = started(X, 12, KernelLayerNetwork(n_linear=4))
    codes = encode_rows(built.maps, X).astype(np.float64)
    own, path = codes[:, :8], codes[:, 8:]
    ratio = np.linalg.norm(path @ path.T) / np.linalg.norm(own @ own.T)
    assert ratio == pytest.approx(starts.FAINT, rel=1e-3)


def test_coordinates_that_the_kernel_has_no_use_for_go_to_the_linear_path():
    """The kernel sees two of six features: the path has the other four, and all come back."""
    rows = X * np.float32([1, 1, 1e-5, 1e-5, 1e-5, 1e-5])
    spec = KernelLayerNetwork(n_linear=0)
    built, _ = started(rows, 6, spec, kernel="linear", standardize="features")
    assert built.network.weight.shape == (90, 2)
    assert built.network.directions.shape == (6, 4)
    back = decode_rows(built.maps, encode_rows(built.maps, rows))
    np.testing.assert_allclose(back / rows.std(axis=0), rows / rows.std(axis=0), atol=0.01)


def test_a_code_that_is_all_linear_path_has_the_principal_components():
    built, _ = started(X, 4, KernelLayerNetwork(n_linear=4), standardize="shared")
    codes = encode_rows(built.maps, X)
    seen = (X - X.mean(axis=0)) / built.scaling.scale.item()
    np.testing.assert_allclose(
        codes @ codes.T, (pca := PCA(4).fit_transform(seen)) @ pca.T, atol=1e-3
    )


@pytest.mark.parametrize("n_linear", [0, 2, 5])
def test_the_width_of_the_linear_path_is_as_asked(n_linear):
    built, _ = started(X, 5, KernelLayerNetwork(n_linear=n_linear))
    assert built.network.n_linear == n_linear
    assert built.network.weight.shape[1] == 5 - n_linear


def test_the_linear_path_is_wider_if_rows_count_more():
    widths = [
        started(X, 8, alignment_weight=weight)[0].network.n_linear for weight in (1.0, 0.5, 0.01)
    ]
    assert widths == sorted(widths)
    assert widths[0] == 0 < widths[-1]


def test_the_chosen_width_has_the_least_loss_on_held_out_rows():
    """An oracle that knows nothing of the code: the loss of Eq. 8 by hand."""
    rng = np.random.default_rng(3)
    codes, seen = rng.normal(size=(160, 8)) * np.arange(8, 0, -1), rng.normal(size=(160, 5))
    gram = codes @ codes.T
    held_out = np.arange(160) % HOLD_OUT_EVERY == 0

    def loss(n_linear, weight=0.05):
        path = make_path(codes[~held_out], seen[~held_out], 8, n_linear)
        c = np.hstack([codes[:, : path.n_kernel], seen @ path.directions])
        error = seen[held_out] - fit_ridge(c[~held_out], seen[~held_out]).predict(c[held_out])
        mine, prior = c[held_out] @ c[held_out].T, gram[np.ix_(held_out, held_out)]
        mine, prior = (a - np.diag(a.diagonal()) for a in (mine, prior))
        distance = np.linalg.norm(mine / np.linalg.norm(mine) - prior / np.linalg.norm(prior))
        return (1 - weight) * np.square(error).mean() / 15 + weight * distance

    chosen = choose_width(codes, seen, lambda k: torch.tensor(gram[np.ix_(k, k)]).float(), 8, 0.05)
    candidates = [0, 1, 2, 4, 6]
    assert chosen == min(candidates, key=loss)


@pytest.mark.parametrize("n_rows", [2, 3, 9])
def test_few_rows_are_enough(n_rows):
    model = DeepKernelizedAutoencoder(4, hidden_layer_sizes=(4,), decoder_max_iter=1)
    codes = model.fit(X[:n_rows]).transform(X[:n_rows])
    assert codes.shape == (n_rows, 4)
    assert np.isfinite(model.inverse_transform(codes)).all()


# --- landmarks -----------------------------------------------------------------------------------


def test_as_many_landmarks_as_asked_for_at_most_all_rows():
    spec = KernelLayerNetwork()
    assert [spec.count(n, 10) for n in (50, 1000, 5000)] == [50, 1000, 1000]
    assert spec.count(5000, 800) == 1600
    assert KernelLayerNetwork(30).count(5000, 800) == 30
    assert KernelLayerNetwork(30).count(20, 800) == 20


def test_k_means_puts_landmarks_between_rows():
    rows = np.repeat(np.float32([[0, 0], [8, 0], [0, 8]]), 30, axis=0)
    rows += 0.1 * RNG.normal(size=rows.shape).astype(np.float32)
    spec = KernelLayerNetwork(3, landmarks="k-means", n_linear=0)
    built, _ = started(rows, 3, spec, gamma=0.1)
    centers = built.network.similarity.rows.numpy()
    expected = rows.reshape(3, 30, 2).mean(axis=1)
    order = [np.linalg.norm(centers - mean, axis=1).argmin() for mean in expected]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(centers[order], expected, atol=0.3)
    assert built.landmarks is None  # no rows of X, so their values are in no Gram matrix


def test_kernel_values_of_slow_kernels_come_from_the_gram_matrix():
    rows = np.abs(X)
    built, kernel = started(rows, 4, KernelLayerNetwork(12), kernel="chi2")
    np.testing.assert_array_equal(rows[built.landmarks], built.network.similarity.rows.numpy())
    block = kernel.on(rows).block(np.arange(5), built.landmarks)
    evaluated = built.network.similarity(torch.from_numpy(rows[:5])).numpy()
    np.testing.assert_allclose(block, evaluated, rtol=1e-5)
    assert started(rows, 4, KernelLayerNetwork(12))[0].landmarks is None  # a formula is as fast


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_landmarks": 0}, "n_landmarks=0 must be a whole number of at least 1"),
        ({"n_linear": -1}, "n_linear=-1 must be a whole number of at least 0"),
        (
            {"landmarks": "kmeans"},
            "landmarks='kmeans' is not known: expected one of 'k-means', 'random'; did you mean "
            "'k-means'",
        ),
    ],
)
def test_a_wrong_specification_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        KernelLayerNetwork(**params)


def test_a_linear_path_that_is_wider_than_the_code_is_refused():
    message = (
        "n_linear=6 is wider than the code, n_components=5, that it is a part of: lower it, or "
        "raise n_components"
    )
    with pytest.raises(ValueError, match=message):
        started(X, 5, KernelLayerNetwork(n_linear=6))


# --- the decoder ---------------------------------------------------------------------------------


def ridge_by_scikit_learn(codes, targets):
    """Ridge regression on standardised codes; its strength is the best on held-out rows."""
    z = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    y = targets - targets.mean(axis=0)
    held_out = np.arange(len(z)) % HOLD_OUT_EVERY == 0

    def error(alpha):
        ridge = Ridge(alpha * (~held_out).sum(), fit_intercept=False)
        ridge.fit(z[~held_out], y[~held_out])
        return np.square(ridge.predict(z[held_out]) - y[held_out]).mean()

    best = min(ALPHAS, key=error)
    return Ridge(best * len(z)).fit(z, targets).predict(z)


@pytest.mark.parametrize("n_linear", [0, 3])
@pytest.mark.parametrize("standardize", ["features", "shared", False])
def test_the_decoder_starts_as_ridge_regression(n_linear, standardize):
    spec = KernelLayerNetwork(n_linear=n_linear)
    built, _ = started(X + 3, 8, spec, standardize=standardize)
    codes = encode_rows(built.maps, X + 3)
    scale = built.scaling.scale.numpy()
    seen = (X + 3 - built.scaling.mean.numpy()) / scale
    expected = ridge_by_scikit_learn(codes.astype(np.float64), seen.astype(np.float64))
    expected = expected * scale + built.scaling.mean.numpy()
    np.testing.assert_allclose(decode_rows(built.maps, codes), expected, atol=2e-3)


def test_rows_in_the_unit_interval_start_there_too(digits):
    rows = digits[:100]
    built, _ = started(rows, 8, KernelLayerNetwork(n_linear=2))
    codes = encode_rows(built.maps, rows)
    decoder = built.network.decoder
    assert decoder.output_activation == "sigmoid"
    decoder.output_activation = "identity"
    linear = decode_rows(built.maps, codes)
    decoder.output_activation = "sigmoid"
    np.testing.assert_allclose(decode_rows(built.maps, codes), linear.clip(0.005, 0.995), atol=1e-5)


def test_ridge_of_codes_with_a_constant_column():
    codes = np.column_stack([X[:, 0], np.ones(90), X[:, 1]]).astype(np.float64)
    ridge = fit_ridge(codes, X[:, :2])
    np.testing.assert_allclose(ridge.predict(codes), X[:, :2], atol=1e-3)


# --- the linear path of a stack ------------------------------------------------------------------


@pytest.mark.parametrize("standardize", ["shared", "features", False])
def test_rows_in_the_unit_interval_come_back_through_the_linear_path(standardize, digits):
    """Through a sigmoid they could not: the path adds to what comes out."""
    rows = digits[:, 1:31]
    model = DeepKernelizedAutoencoder(
        20, network="stacked", linear_path=0.3, standardize=standardize, random_state=0
    )
    built = build(model, rows, None, seed=0)
    assert built.network.layers[0].output_activation == "identity"
    with torch.no_grad():
        for layer in built.network.layers:
            layer.weight.zero_()
    back = decode_rows(built.maps, encode_rows(built.maps, rows))
    assert np.square(back - rows).mean() < 0.1 * rows.var()


@pytest.mark.parametrize("n_components", [1, 4, 6, 9])
def test_a_stack_of_zeros_with_a_linear_path_is_pca(n_components):
    """Rows that come back are those of principal components, in the units of the data."""
    model = DeepKernelizedAutoencoder(
        n_components, network="stacked", linear_path=0.3, standardize=False, random_state=0
    )
    built = build(model, X, None, seed=0)
    with torch.no_grad():
        for layer in built.network.layers:
            layer.weight.zero_()
    back = decode_rows(built.maps, encode_rows(built.maps, X))
    pca = PCA(min(n_components, 6)).fit(X)
    np.testing.assert_allclose(back, pca.inverse_transform(pca.transform(X)), atol=1e-4)
