"""Scores of real runs at the scale smoke, against other ways to compute them."""

from __future__ import annotations

import numpy as np
import pytest
from dkae_study.engine.workshop import Workshop
from dkae_study.experiments.kernel_pca import crossing
from dkae_study.experiments.tradeoff import rows_by_class
from dkae_study.paper import PAPER
from dkae_study.results import Run
from dkae_study.results.pictures import unpack
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import normalized_mutual_info_score
from sklearn.preprocessing import StandardScaler

from study.tests.helpers import EXPERIMENTS, SMOKE


def find(runs: list[Run], experiment: str, recipe: str, seed: int = 0, point: object = None) -> Run:
    key = (experiment, recipe, seed, point)
    return next(r for r in runs if (r.experiment, r.recipe, r.seed, r.point) == key)


def unit(gram):
    return gram / np.linalg.norm(gram)


def distance(a, b):
    return np.linalg.norm(unit(a) - unit(b))


@pytest.fixture(scope="module")
def workshop(smoke) -> Workshop:
    return Workshop(PAPER, SMOKE, smoke / "cache")


@pytest.fixture(scope="module", params=PAPER.recipe_names)
def recipe(request) -> str:
    return request.param


def models_of(workshop, run):
    networks = EXPERIMENTS[run.experiment].networks(workshop.scale, run.job)
    return {name: workshop.train(network) for name, network in networks.items()}


@pytest.mark.parametrize("point", [0.0, 0.75, 1.0])
def test_losses_of_the_sweeps(runs, workshop, recipe, point):
    run = find(runs, "lambda", recipe, point=point)
    model = models_of(workshop, run)["dkae"]
    for name in ("validation", "test"):
        X = workshop.parts[name].X
        codes, prior = model.transform(X), workshop.kernel(0).gram(X)
        scores = run.scores[name]
        assert scores["alignment_loss"] == pytest.approx(distance(codes @ codes.T, prior), rel=1e-4)
        back = model.inverse_transform(codes)
        assert scores["reconstruction_mse"] == pytest.approx(np.mean((back - X) ** 2), rel=1e-4)
        # All rows are one block here.
        assert scores["alignment_loss_blocks"] == pytest.approx(scores["alignment_loss"], rel=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_distances_to_the_ideal_kernel(runs, workshop, recipe, seed):
    run = find(runs, "ideal-kernel", recipe, seed)
    X, y = workshop.parts["test"]
    ideal = (y[:, None] == y).astype(np.float64)
    codes = {name: m.transform(X) for name, m in models_of(workshop, run).items()}
    expected = {"P": workshop.kernel(seed).gram(X)}
    expected |= {name: c @ c.T for name, c in codes.items()}
    for name, gram in expected.items():
        assert run.scores[name] == pytest.approx(distance(gram, ideal), rel=1e-4)
    assert run.scores["alignment_loss"] == pytest.approx(
        distance(expected["C"], expected["P"]), rel=1e-4
    )


def test_kernel_pca_is_eckart_young_and_nystroem(runs, workshop, recipe):
    scores = find(runs, "kernel-pca", recipe).scores
    train, test = workshop.parts["train"].X, workshop.parts["test"].X
    kernel = workshop.kernel(0)
    gram = kernel.gram(train).astype(np.float64)
    values, vectors = np.linalg.eigh(gram)
    n = len(test)
    for m in (1, 3, 10):
        top, e = values[-m:], vectors[:, -m:]
        inside = ((e * top) @ e.T)[:n, :n]
        z = kernel.gram(test, train).astype(np.float64) @ e / np.sqrt(top)
        expected = [distance(inside, gram[:n, :n]), distance(z @ z.T, kernel.gram(test))]
        found = [scores["in_sample"][m - 1], scores["out_of_sample"][m - 1]]
        assert found == pytest.approx(expected, rel=2e-3)
    for part in ("in_sample", "out_of_sample"):
        losses = np.array(scores[part])
        assert scores[f"crossing_{part}"] == crossing(losses, scores[f"dkae_{part}"])


def test_crossing():
    losses = np.array([0.5, 0.3, 0.2, 0.1])
    assert crossing(losses, 0.25) == 3
    assert crossing(losses, 0.2) == 4
    assert crossing(losses, 0.9) == 1
    assert crossing(losses, 0.05) is None


def test_linear_pca_and_noise(runs, workshop, recipe):
    scores = find(runs, "denoising", recipe, point="clean").scores
    for name, classes in {"5 and 6": (5, 6), "all digits": range(10)}.items():
        parts = (workshop.parts["train"], workshop.parts["test"])
        train, test = (part.X[np.isin(part.y, list(classes))] for part in parts)
        noise = scores[name]["noisy input"]
        assert noise["mse"] == pytest.approx(0.25**2, rel=0.02)
        assert noise["mse_clipped"] < noise["mse"]
        assert noise["psnr"] == pytest.approx(-10 * np.log10(noise["mse"]), abs=1e-3)
        # Another draw of the noise gives the same error, but for the chance of the draw.
        noisy = test + np.random.default_rng(9).normal(0, 0.25, test.shape)
        pca = PCA(32).fit(train)
        error = np.mean((pca.inverse_transform(pca.transform(noisy)) - test) ** 2)
        assert scores[name]["linear PCA"]["mse"] == pytest.approx(error, rel=0.05)


@pytest.mark.parametrize("point", ["clean", "noisy"])
def test_denoising_in_code_space_by_hand(runs, workshop, recipe, point):
    run = find(runs, "denoising", recipe, point=point)
    models = models_of(workshop, run)
    methods = {
        "clean": {"plain autoencoder + PCA": ("plain", 32), "dkAE + PCA": ("dkae", 32)},
        "noisy": {
            "denoising autoencoder + PCA": ("plain", 32),
            "denoising dkAE + PCA": ("dkae", 32),
            "denoising autoencoder": ("plain", None),
            "denoising dkAE": ("dkae", None),
        },
    }
    train, test = (p.X[np.isin(p.y, (5, 6))] for p in map(workshop.parts.get, ("train", "test")))
    noise = np.random.default_rng(run.seed).standard_normal(test.shape, dtype=np.float32)
    noisy = test + np.float32(0.25) * noise
    for method, (name, m) in methods[point].items():
        codes = models[name].transform(noisy)
        if m is not None:
            clean = models[name].transform(train).astype(np.float64)
            mean = clean.mean(axis=0)
            directions = np.linalg.svd(clean - mean, full_matrices=False)[2][:m]
            codes = mean + (codes - mean) @ directions.T @ directions
        decoded = models[name].inverse_transform(codes)
        mse = run.scores["5 and 6"][method]["mse"]
        assert mse == pytest.approx(np.mean((decoded - test) ** 2), rel=1e-3)


def test_pictures_of_the_tradeoff(runs, workshop, recipe):
    run = find(runs, "tradeoff", recipe)
    X, y = workshop.parts["test"]
    assert np.abs(unpack(run.pictures["original"]) - X[rows_by_class(y, 1)]).max() <= 1 / 509
    classes = unpack(run.pictures["gram classes"])
    assert np.array_equal(classes, np.sort(classes))
    prior = unpack(run.pictures["prior gram"])
    assert np.allclose(prior, prior.T, atol=0.005)
    rows = X[rows_by_class(y, 30)]
    assert np.allclose(prior, workshop.kernel(0).gram(rows), atol=0.005)
    models = models_of(workshop, run)
    for name in ("0", "0.1"):
        gram = models[name].gram(rows)
        level = np.ptp(gram) / 255
        assert np.allclose(unpack(run.pictures[f"code gram {name}"]), gram, atol=level)
    digits = X[rows_by_class(y, 1)]
    for name in ("0.1", "0.75"):
        decoded = models[name].inverse_transform(models[name].transform(digits))
        assert np.allclose(unpack(run.pictures[f"reconstruction {name}"]), decoded, atol=1 / 509)


def test_code_space_compares_four_representations(runs, workshop, recipe):
    scores = find(runs, "code-space", recipe).scores
    assert list(scores) == ["raw input", "kernel PCA", "plain autoencoder", "dkAE"]
    assert scores["raw input"]["linear classifier"] > 0.8
    train, test = workshop.parts["train"], workshop.parts["test"]
    for name, model in models_of(workshop, find(runs, "code-space", recipe)).items():
        scaler = StandardScaler().fit(model.transform(train.X))
        a, b = (scaler.transform(model.transform(part.X)) for part in (train, test))
        accuracy = LogisticRegression(C=0.01, max_iter=300).fit(a, train.y).score(b, test.y)
        assert scores[name]["linear classifier"] == pytest.approx(accuracy, abs=0.02)
        labels = KMeans(10, n_init=10, random_state=0).fit_predict(model.transform(test.X))
        nmi = normalized_mutual_info_score(test.y, labels)
        assert scores[name]["k-means"]["nmi"] == pytest.approx(nmi, abs=1e-6)
    for score in scores.values():
        assert 0 <= score["linear classifier"] <= 1
        for method in ("k-means", "spectral"):
            assert set(score[method]) == {"accuracy", "nmi", "ari"}
