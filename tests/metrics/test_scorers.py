"""Scorers for searches: what they compute, against dense formulas, and what they prefer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.metrics import (
    centered_alignment_score,
    label_alignment_score,
    reconstruction_r2,
    reconstruction_r2_score,
)
from tests.conftest import PLAIN

SCORERS = [centered_alignment_score, label_alignment_score, reconstruction_r2_score]
GAMMA = 0.05


def make_model(n_components=3, **params):
    tiny = {"gamma": GAMMA, "hidden_layer_sizes": (8,), "max_iter": 2, "steps_per_epoch": 5}
    return DeepKernelizedAutoencoder(n_components, **(tiny | {"random_state": 0} | params))


def dense_cka(a, b):
    H = np.eye(len(a)) - 1 / len(a)
    a, b = H @ a @ H, H @ b @ H
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    # Features of very different variances, and classes that matter.
    y = np.arange(60) % 3
    return rng.standard_normal((60, 5)) * [3, 1, 1, 0.2, 1] + 2 * y[:, None] + 1, y


@pytest.fixture(scope="module")
def model(data):
    return make_model().fit(data[0])


# --- values --------------------------------------------------------------------------------------


def test_centered_alignment_is_the_dense_formula(model, data):
    codes = model.transform(data[0]).astype(float)
    expected = dense_cka(codes @ codes.T, rbf_kernel(data[0], gamma=GAMMA))
    assert centered_alignment_score(model, data[0]) == pytest.approx(expected, abs=1e-5)


def test_label_alignment_is_the_dense_formula(model, data):
    X, y = data
    codes = model.transform(X).astype(float)
    expected = dense_cka(codes @ codes.T, y[:, None] == y)
    names = np.array(["zero", "one", "two"])[y]
    assert label_alignment_score(model, X, y) == pytest.approx(expected, abs=1e-6)
    assert label_alignment_score(model, X, names) == label_alignment_score(model, X, y)


def test_two_classes_may_be_called_minus_one_and_one(model, data):
    """-1 means no label, but of two classes one is enough for the centred ideal kernel."""
    X, y = data
    signs, numbers = np.where(y > 0, 1, -1), np.where(y > 0, 1, 0)
    expected = pytest.approx(label_alignment_score(model, X, numbers), abs=1e-9)
    assert label_alignment_score(model, X, signs) == expected


def test_r2_is_that_of_scikit_learn(model, data):
    back = model.inverse_transform(model.transform(data[0]))
    expected = r2_score(data[0], back, multioutput="variance_weighted")
    assert reconstruction_r2_score(model, data[0]) == pytest.approx(expected, abs=1e-6)
    uniform = r2_score(data[0], back, multioutput="uniform_average")
    assert abs(uniform - expected) > 1e-3  # features are not alike: the two can be told apart


def test_r2_pools_all_entries_of_images():
    X, back = np.random.default_rng(0).random((2, 10, 3, 4))
    flat = (values.reshape(10, -1) for values in (X, back))
    expected = r2_score(*flat, multioutput="variance_weighted")
    assert reconstruction_r2(X, back) == pytest.approx(expected, abs=1e-12)


def test_r2_of_rows_without_variance():
    X = np.full((4, 2), 0.1, np.float32)
    assert (reconstruction_r2(X, X), reconstruction_r2(X, X + 1)) == (1, 0)


def test_r2_of_the_mean_is_zero(data):
    means = np.broadcast_to(data[0].mean(axis=0), data[0].shape)
    assert reconstruction_r2(data[0], means) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("scorer", SCORERS[:2], ids=lambda scorer: scorer.__name__)
def test_scale_of_the_codes_does_not_matter(scorer, model, data, monkeypatch):
    before, encode = scorer(model, *data), model.transform
    monkeypatch.setattr(model, "transform", lambda X: 1000 * encode(X))
    assert scorer(model, *data) == pytest.approx(before, rel=1e-5)


@pytest.mark.parametrize("scorer", SCORERS[:2], ids=lambda scorer: scorer.__name__)
def test_constant_codes_have_no_centered_alignment(scorer, model, data, monkeypatch):
    monkeypatch.setattr(model, "transform", lambda X: np.ones((len(X), 3), np.float32))
    assert scorer(model, *data) == 0
    assert model.score(data[0]) > 0.3  # what the floor is for


def test_grams_are_read_by_tiles(model, data, monkeypatch):
    whole = [scorer(model, *data) for scorer in SCORERS]
    monkeypatch.setattr(metrics.comparison, "N_TILE_ROWS", 7)
    sizes = []
    evaluate = type(model.kernel_).evaluate
    monkeypatch.setattr(
        type(model.kernel_), "evaluate", lambda *a: sizes.append(len(a[1])) or evaluate(*a)
    )
    assert [scorer(model, *data) for scorer in SCORERS] == pytest.approx(whole, abs=1e-9)
    assert max(sizes) == 7


# --- pipelines and searches ----------------------------------------------------------------------


def test_pipeline_gives_the_scores_of_its_last_step(data):
    X, y = data
    pipeline = make_pipeline(StandardScaler(), make_model()).fit(X)
    scaler, model = pipeline.named_steps.values()
    scaled = scaler.transform(X)
    assert centered_alignment_score(pipeline, X) == centered_alignment_score(model, scaled)
    assert label_alignment_score(pipeline, X, y) == label_alignment_score(model, scaled, y)
    # In the units of X: scaled features would count alike.
    back = scaler.inverse_transform(model.inverse_transform(model.transform(scaled)))
    expected = r2_score(X, back, multioutput="variance_weighted")
    assert reconstruction_r2_score(pipeline, X) == pytest.approx(expected, abs=1e-6)
    assert abs(expected - reconstruction_r2_score(model, scaled)) > 1e-3


def test_pipeline_of_the_model_alone(model, data):
    alone = make_pipeline(model)
    for scorer in SCORERS:
        assert scorer(alone, *data) == scorer(model, *data)


@pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: scorer.__name__)
def test_grid_search_takes_the_scorer(scorer, data):
    grid = {"deepkernelizedautoencoder__n_components": [1, 4]}
    pipeline = make_pipeline(StandardScaler(), make_model(max_iter=5, steps_per_epoch=20))
    search = GridSearchCV(pipeline, grid, scoring=scorer, cv=2).fit(*data)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(*data) == scorer(search.best_estimator_, *data)
    if scorer is not label_alignment_score:
        assert search.best_params_ == {"deepkernelizedautoencoder__n_components": 4}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["frobenius", "centered"])
def test_what_can_choose_gamma(loss):
    """What docs/yardsticks.md says, on fewer rows and epochs."""
    X, y = load_digits(return_X_y=True)
    X = (X[:900] / 16).astype(np.float32)
    model = make_model(
        16, **PLAIN | {"alignment": loss}, hidden_layer_sizes=(64,), max_iter=10, steps_per_epoch=30
    )
    gammas = [5e-6, 0.05, 0.5]  # near-constant, about the median, and ten times that
    search = GridSearchCV(
        model,
        {"gamma": gammas},
        scoring={
            "own": lambda model, X, y: model.score(X),
            "centered": centered_alignment_score,
            "labels": label_alignment_score,
        },
        cv=StratifiedShuffleSplit(1, test_size=0.3, random_state=0),
        refit=False,
    ).fit(X, y[:900])
    found = {
        name: search.cv_results_[f"mean_test_{name}"] for name in ("own", "centered", "labels")
    }
    assert found["own"][0] > 0.98
    assert found["own"][2] < 0.9
    assert found["centered"][:2].min() > found["centered"][2] + 0.1
    if loss == "centered":
        assert np.argmax(found["centered"]) == 0
    assert np.argmax(found["labels"]) == 2


# --- errors --------------------------------------------------------------------------------------


def test_missing_labels(model, data):
    message = r"^label_alignment_score needs labels: pass y, as in search.fit\(X, y\)$"
    with pytest.raises(ValueError, match=message):
        label_alignment_score(model, data[0])


def test_wrong_number_of_labels(model, data):
    with pytest.raises(ValueError, match=r"^y has 59 labels, but gram has 60 rows: pass one label"):
        label_alignment_score(model, data[0], data[1][1:])


def test_model_without_a_kernel(data):
    X, y = data
    model = make_model().fit(X, gram=X @ X.T)
    with pytest.raises(ValueError, match=r"^the model has no kernel that it could evaluate on X"):
        centered_alignment_score(model, X)
    assert 0 < label_alignment_score(model, X, y) < 1
    assert reconstruction_r2_score(model, X) < 1


def test_estimator_without_a_kernel(data):
    pca = PCA(2).fit(data[0])
    message = "^estimator=PCA has no kernel to compare codes with: pass a DeepKernelizedAutoencoder"
    for estimator in (pca, make_pipeline(StandardScaler(), PCA(2)).fit(data[0])):
        with pytest.raises(ValueError, match=message):
            centered_alignment_score(estimator, data[0])
    expected = pca.explained_variance_ratio_.sum()
    assert reconstruction_r2_score(pca, data[0]) == pytest.approx(expected)
