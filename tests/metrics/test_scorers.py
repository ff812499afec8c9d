"""Scorers for searches: dense formulas, and what they choose, for any transformer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from dkae import DeepKernelizedAutoencoder
from dkae.metrics import label_alignment_score, reconstruction_r2_score

RNG = np.random.default_rng(0)
Y = np.arange(60) % 3
#: Features of very different variances, and classes that matter.
X = RNG.standard_normal((60, 5)) * [3, 1, 1, 0.2, 1] + 2 * Y[:, None] + 1


def dense_cka(a, b):
    H = np.eye(len(a)) - 1 / len(a)
    a, b = H @ a @ H, H @ b @ H
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


@pytest.fixture(scope="module")
def model():
    params = {"gamma": 0.05, "max_iter": 2, "steps_per_epoch": 5, "random_state": 0}
    return DeepKernelizedAutoencoder(3, **params).fit(X)


def test_label_alignment_is_the_dense_formula(model):
    codes = model.transform(X).astype(float)
    found = label_alignment_score(model, X, Y)
    assert found == pytest.approx(dense_cka(codes @ codes.T, Y[:, None] == Y), abs=1e-6)
    assert label_alignment_score(model, X, np.array(["zero", "one", "two"])[Y]) == found
    # -1 means no label, but of two classes one is enough for the centred ideal kernel.
    signs, numbers = np.where(Y > 0, 1, -1), np.where(Y > 0, 1, 0)
    expected = pytest.approx(label_alignment_score(model, X, numbers), abs=1e-9)
    assert label_alignment_score(model, X, signs) == expected


def test_r2_is_that_of_scikit_learn_in_the_units_of_x(model):
    pipeline = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    for fitted in (model, pipeline):
        back = fitted.inverse_transform(fitted.transform(X))
        expected = r2_score(X, back, multioutput="variance_weighted")
        assert reconstruction_r2_score(fitted, X) == pytest.approx(expected, abs=1e-6)


def test_constant_codes_have_no_alignment_with_labels():
    constant = make_pipeline(PCA(1), Normalizer()).fit(np.abs(X))
    constant[-1].transform = lambda X: np.ones((len(X), 3))
    assert label_alignment_score(constant[-1], X, Y) == 0


def test_labels_choose_gamma_and_reconstructions_choose_the_width():
    digits, classes = load_digits(return_X_y=True)
    digits, classes = digits[:900] / 16, classes[:900]
    split = StratifiedShuffleSplit(1, test_size=0.3, random_state=0)
    gammas = [5e-6, 0.05, 0.5]  # near-constant, about the median, and ten times that
    kernel_pca = KernelPCA(16, kernel="rbf")
    search = GridSearchCV(
        kernel_pca, {"gamma": gammas}, scoring=label_alignment_score, cv=split, refit=False
    ).fit(digits, classes)
    assert search.best_params_ == {"gamma": 0.5}
    search = GridSearchCV(
        PCA(), {"n_components": [1, 4]}, scoring=reconstruction_r2_score, cv=split
    ).fit(digits, classes)
    assert search.best_params_ == {"n_components": 4}
    expected = pytest.approx(reconstruction_r2_score(search.best_estimator_, digits))
    assert search.score(digits) == expected


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda model: label_alignment_score(model, X),
            r"^label_alignment_score needs labels: pass y, as in search.fit\(X, y\)$",
        ),
        (
            lambda model: label_alignment_score(model, X, Y[1:]),
            "^labels has 59 entries, but X has 60 rows: pass that of the rows",
        ),
        (
            lambda model: label_alignment_score(3, X, Y),
            "^estimator=int has no transform: pass a fitted map, such as DeepKernelizedAuto",
        ),
        (
            lambda model: reconstruction_r2_score(Normalizer(), X),
            "^estimator=Normalizer has no inverse_transform: pass a fitted map",
        ),
    ],
)
def test_errors(call, message, model):
    with pytest.raises(ValueError, match=message):
        call(model)
