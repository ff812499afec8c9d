"""The rivals of a map, against scikit-learn's methods and dense formulas."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder
from dkae.baselines import ALPHAS, compare_with_baselines
from dkae.grams import sample_ids
from dkae.kernels import FunctionKernel, PairwiseKernel, Precomputed, ideal_kernel

NAMES = [
    "dkae",
    "constant kernel",
    "Nystroem + ridge",
    "Nystroem + PCA + KernelRidge",
    "PCA",
    "kernel PCA",
]
OF_KERNELS = [NAMES[2], NAMES[3], NAMES[5]]
GAMMA = 0.1
FLATTERED = "fitted to the rows that it is scored on, which flatters it"
NO_KERNEL = "needs a kernel that can be evaluated at new rows"
SPREAD = np.float32([3, 2, 1, 1, 1, 0.3])
TRAIN, NEW = (
    np.random.default_rng(seed).standard_normal((n, 6)).astype("f") * SPREAD
    for seed, n in ((0, 80), (1, 30))
)


class PCAMap(BaseEstimator):
    """The least map: codes are scores of PCA, rows may have any shape, gaps and scales."""

    def __init__(self, kernel=None, n_components=3, *, fill=None, center=None, scale=None):
        self.kernel_ = PairwiseKernel("rbf", gamma=GAMMA) if kernel is None else kernel
        self.n_components_ = n_components
        self.fill_, self.center_, self.scale_ = fill, center, scale

    def fit(self, X, y=None):
        self.shape_ = np.shape(X)[1:]
        rows = self.seen(X)
        self.pca_ = PCA(min(self.n_components_, rows.shape[1])).fit(rows.reshape(len(X), -1))
        self.kernel_ = self.kernel_ and self.kernel_.fit(rows)
        return self

    def seen(self, X):
        rows = np.asarray(X)
        rows = rows if self.scale_ is None else (rows - self.center_) / self.scale_
        return rows if self.fill_ is None else np.where(np.isnan(rows), self.fill_, rows)

    def prior_gram(self, X):
        if self.kernel_ is None:
            raise ValueError("the map has no kernel")
        return self.kernel_.on(self.seen(X))

    def transform(self, X):
        return self.pca_.transform(self.seen(X).reshape(len(X), -1))

    def inverse_transform(self, codes):
        rows = self.pca_.inverse_transform(codes).reshape(-1, *self.shape_)
        return rows if self.scale_ is None else rows * self.scale_ + self.center_


def by_name(found):
    assert [row.name for row in found] == NAMES
    return {row.name: row for row in found}


def numbers_of(X, gram, codes, back):
    """Return what a row must have, from dense n × n matrices."""
    C, H = codes @ codes.T, np.eye(len(X)) - 1 / len(X)
    alignments = [
        (a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b))
        for a, b in ((C, gram), (H @ C @ H, H @ gram @ H))
    ]
    loss, mse = np.sqrt(2 - 2 * alignments[0]), ((X - back) ** 2).mean()
    r2 = r2_score(X, back, multioutput="variance_weighted")
    return [alignments[0], loss, alignments[1], mse, r2]


@pytest.fixture(scope="module")
def model():
    params = {"gamma": GAMMA, "max_iter": 2, "steps_per_epoch": 5, "random_state": 0}
    return DeepKernelizedAutoencoder(3, **params).fit(TRAIN)


@pytest.fixture(scope="module")
def found(model):
    return by_name(compare_with_baselines(model, NEW, TRAIN))


# --- each row against its oracle -----------------------------------------------------------------


def kernel_ridge(codes, rows):
    distances = np.sqrt(((codes[:, None] - codes) ** 2).sum(axis=2))
    median = np.median(distances[np.triu_indices(len(codes), 1)])
    search = GridSearchCV(
        KernelRidge(kernel="rbf", gamma=0.5 / median**2),
        {"alpha": ALPHAS},
        cv=ShuffleSplit(1, test_size=0.2, random_state=0),
        scoring="neg_mean_squared_error",
    )
    mean = rows.mean(axis=0)
    search.fit(codes, rows - mean)
    return lambda codes: search.predict(codes) + mean


def oracle_model(model):
    codes = model.transform(NEW)
    return codes, model.inverse_transform(codes)


def oracle_nystroem(model):
    # All rows are landmarks, so that scikit-learn has no choice.
    features = Nystroem(gamma=GAMMA, n_components=3).fit(TRAIN[sample_ids(80, 3)])
    ridge = RidgeCV(ALPHAS).fit(features.transform(TRAIN), TRAIN)
    return features.transform(NEW), ridge.predict(features.transform(NEW))


def oracle_nystroem_pca(model):
    pipeline = make_pipeline(Nystroem(gamma=GAMMA, n_components=80), PCA(3)).fit(TRAIN.astype("d"))
    codes = pipeline.transform(NEW.astype("d"))
    return codes, kernel_ridge(pipeline.transform(TRAIN.astype("d")), TRAIN.astype("d"))(codes)


def oracle_pca(model):
    pca = PCA(3).fit(TRAIN)
    return pca.transform(NEW), pca.inverse_transform(pca.transform(NEW))


ORACLES = {
    "dkae": oracle_model,
    "Nystroem + ridge": oracle_nystroem,
    "Nystroem + PCA + KernelRidge": oracle_nystroem_pca,
    "PCA": oracle_pca,
}


@pytest.mark.parametrize("name", ORACLES)
def test_row_is_that_of_its_oracle(name, found, model):
    codes, back = (np.asarray(part, float) for part in ORACLES[name](model))
    gram = rbf_kernel(NEW.astype(float), gamma=GAMMA)
    expected = numbers_of(NEW.astype(float), gram, codes, back)
    tolerance = 2e-3 if "KernelRidge" in name else 2e-4  # γ is the median of a sample of pairs
    assert found[name][2:-1] == pytest.approx(expected, abs=tolerance)
    assert (found[name].n_components, found[name].note) == (3, "")


def test_kernel_pca_is_the_best_approximation_of_the_kernel(found):
    _, E = np.linalg.eigh(rbf_kernel(TRAIN.astype(float), gamma=GAMMA))
    eigenvalues = np.linalg.eigvalsh(rbf_kernel(TRAIN.astype(float), gamma=GAMMA))[-3:]
    scores = rbf_kernel(NEW, TRAIN, gamma=GAMMA) @ (E[:, -3:] / np.sqrt(eigenvalues))
    gram = rbf_kernel(NEW.astype(float), gamma=GAMMA)
    expected = numbers_of(NEW, gram, scores, NEW)[:3]
    assert found["kernel PCA"][2:5] == pytest.approx(expected, abs=2e-4)
    assert 0.3 < found["kernel PCA"].r2 < 1


def test_constant_kernel_is_the_formula(found):
    gram = rbf_kernel(NEW.astype(float), gamma=GAMMA)
    floor = gram.sum() / (len(gram) * np.linalg.norm(gram))
    mse = ((NEW - TRAIN.mean(axis=0)) ** 2).mean()
    expected = [floor, np.sqrt(2 - 2 * floor), 0, mse, 1 - mse / NEW.var(axis=0).mean()]
    assert found["constant kernel"][2:-1] == pytest.approx(expected, abs=1e-6)
    assert found["constant kernel"].n_components == 1


def test_the_centred_alignment_of_the_map_is_its_score(found, model):
    assert found["dkae"].centered_alignment == model.score(NEW)


@pytest.mark.filterwarnings("error")
def test_tables_keep_their_names(found):
    new, train = (pd.DataFrame(X).add_prefix("column") for X in (NEW, TRAIN))
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), PCAMap()).fit(train)
    expected = make_pipeline(StandardScaler(), PCAMap()).fit(TRAIN)
    rows = [
        compare_with_baselines(pipeline, new, train),
        compare_with_baselines(expected, NEW, TRAIN),
    ]
    for a, b in zip(*rows, strict=True):
        assert a[1:-1] == pytest.approx(b[1:-1], abs=1e-4)


def test_rows_are_ready_for_json(found):
    rows = [row._asdict() for row in found.values()]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


# --- notes ---------------------------------------------------------------------------------------


def test_without_train_the_rivals_are_flattered(model, found):
    flattered = by_name(compare_with_baselines(model, NEW))
    assert flattered["dkae"] == found["dkae"]
    assert {flattered[name].note for name in NAMES[1:]} == {FLATTERED}
    assert flattered["PCA"].r2 > found["PCA"].r2


def test_methods_have_no_more_components_than_they_can():
    wide = PCAMap(n_components=100).fit(TRAIN)
    rows = by_name(compare_with_baselines(wide, NEW, TRAIN))
    assert (rows["PCA"].n_components, rows["PCA"].note) == (6, "has no more than 6 components")
    assert rows["PCA"].r2 == pytest.approx(1, abs=1e-6)
    for name in OF_KERNELS:
        assert 6 < rows[name].n_components <= 80
        assert rows[name].note == f"has no more than {rows[name].n_components} components"


def test_rivals_with_a_kernel_learn_from_a_sample(model, found):
    rows = by_name(compare_with_baselines(model, NEW, TRAIN, max_rows=20))
    for name in OF_KERNELS:
        assert rows[name].note == "learns from 20 of 80 rows"
        assert rows[name] != found[name]
    assert rows["PCA"] == found["PCA"]


# --- any map, any kernel -------------------------------------------------------------------------


def test_a_map_of_a_matrix_has_the_floor_and_pca():
    model, gram = PCAMap().fit(TRAIN), NEW @ NEW.T
    rows = by_name(compare_with_baselines(model, NEW, TRAIN, gram=gram))
    for name in OF_KERNELS:
        assert rows[name] == (name, *[None] * 6, NO_KERNEL)
    floor = gram.sum() / (len(NEW) * np.linalg.norm(gram))
    assert rows["constant kernel"].alignment == pytest.approx(floor, abs=1e-6)
    assert rows["PCA"].alignment > 0.9
    # A Gram that knows its kernel brings it; uncentred linear kernel PCA is the best of rank 3.
    linear = PairwiseKernel("linear").fit(TRAIN)
    rows = by_name(compare_with_baselines(model, NEW, TRAIN, gram=linear.on(NEW)))
    assert rows["kernel PCA"].alignment > max(0.97, rows["Nystroem + ridge"].alignment)


@pytest.mark.parametrize(
    "kernel", [Precomputed(TRAIN @ TRAIN.T), ideal_kernel(np.arange(len(TRAIN)) % 3)]
)
def test_a_kernel_of_positions_cannot_be_evaluated(kernel):
    rows = by_name(compare_with_baselines(PCAMap(kernel).fit(TRAIN), TRAIN))
    assert {rows[name].note for name in OF_KERNELS} == {NO_KERNEL}
    assert rows["PCA"].note == FLATTERED


def test_a_kernel_of_known_rows_can_be_evaluated_there():
    known = Precomputed(rbf_kernel(TRAIN, gamma=GAMMA), rows=TRAIN)
    found = by_name(compare_with_baselines(PCAMap(known).fit(TRAIN), TRAIN))
    expected = by_name(compare_with_baselines(PCAMap().fit(TRAIN), TRAIN))
    for name in OF_KERNELS:
        assert found[name][1:-1] == pytest.approx(expected[name][1:-1], abs=2e-3)


def test_rows_of_any_shape():
    def of_last_steps(X, Y):
        return rbf_kernel(X[:, -1, :], Y[:, -1, :])

    X, Y = np.random.default_rng(0).random((2, 40, 4, 3), dtype=np.float32)
    rows = by_name(compare_with_baselines(PCAMap(FunctionKernel(of_last_steps)).fit(X), Y, X))
    for name in OF_KERNELS:
        assert rows[name].centered_alignment > 0.8
        assert rows[name].r2 > 0


def test_rivals_see_the_rows_that_the_kernel_sees():
    """Gaps filled and features standardised; errors are in the units of X."""
    mean, std = TRAIN.mean(axis=0), TRAIN.std(axis=0)
    scaled = PCAMap(center=mean, scale=std).fit(TRAIN)
    found = by_name(compare_with_baselines(scaled, NEW, TRAIN))
    plain = PCAMap().fit((TRAIN - mean) / std)
    expected = by_name(compare_with_baselines(plain, (NEW - mean) / std, (TRAIN - mean) / std))
    pipeline = make_pipeline(StandardScaler(), PCAMap()).fit(TRAIN)
    in_pipeline = by_name(compare_with_baselines(pipeline, NEW, TRAIN))
    for name in NAMES:
        close = pytest.approx(expected[name].alignment, abs=1e-4)
        assert found[name].alignment == close == in_pipeline[name].alignment
        assert found[name].r2 == pytest.approx(in_pipeline[name].r2, abs=1e-4)
    assert found["PCA"].r2 != pytest.approx(expected["PCA"].r2, abs=1e-3)
    gaps = NEW.copy()
    gaps[::3, 1] = np.nan
    mse = ((NEW - mean)[~np.isnan(gaps)] ** 2).mean()
    filling = PCAMap(fill=np.zeros(6, "f"), center=mean, scale=std).fit(TRAIN)
    for gram in (None, NEW @ NEW.T):
        filled = by_name(compare_with_baselines(filling, gaps, TRAIN, gram=gram))
        assert filled["constant kernel"].reconstruction_mse == pytest.approx(mse, rel=1e-5)
        assert filled["PCA"].r2 > 0.3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: compare_with_baselines(m, NEW, max_rows=1), "^max_rows=1 must be a whole num"),
        (lambda m: compare_with_baselines(m, NEW[:1]), "^X has one row: the rivals learn from at"),
        (
            lambda m: compare_with_baselines(m, NEW, TRAIN[:, :5]),
            r"^train has rows of shape \(5,\), but X of \(6,\): pass rows of the same features",
        ),
        (
            lambda m: compare_with_baselines(make_pipeline(PCA(2)).fit(NEW), NEW),
            "^model=PCA has no kernel to compare codes with: pass a map such as",
        ),
        (lambda m: compare_with_baselines(m, NEW, gram=np.eye(3)), "gram has .*3.*, but X has 30"),
    ],
)
def test_errors(call, message, model):
    with pytest.raises(ValueError, match=message):
        call(model)
