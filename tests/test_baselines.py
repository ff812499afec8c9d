"""What a model must beat, against scikit-learn's methods and dense formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeCV
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, metrics
from dkae.baselines import ALPHAS, compare_with_baselines, nystroem_map
from dkae.grams import sample_rows
from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel
from dkae.spectral import KernelPCA, PreImage
from tests.nets import Recurrent

NAMES = ["dkae", "constant kernel", "Nystroem + ridge", "PCA", "kernel PCA"]
GAMMA = 0.1
FLATTERED = "fitted to the rows that it is scored on, which flatters it"
NO_KERNEL = "needs a kernel that can be evaluated at new rows"


def make_model(n_components=3, **params):
    tiny = {"gamma": GAMMA, "hidden_layer_sizes": (8,), "max_iter": 2, "steps_per_epoch": 5}
    return DeepKernelizedAutoencoder(n_components, **(tiny | {"random_state": 0} | params))


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


def by_name(found):
    assert [row.name for row in found] == NAMES
    return {row.name: row for row in found}


@pytest.fixture(scope="module")
def train():
    return (np.random.default_rng(0).standard_normal((80, 6)) * [3, 2, 1, 1, 1, 0.3]).astype("f")


@pytest.fixture(scope="module")
def new():
    return (np.random.default_rng(1).standard_normal((30, 6)) * [3, 2, 1, 1, 1, 0.3]).astype("f")


@pytest.fixture(scope="module")
def model(train):
    return make_model().fit(train)


@pytest.fixture(scope="module")
def found(model, train, new):
    return by_name(compare_with_baselines(model, new, train))


# --- each row against its oracle -----------------------------------------------------------------


def oracle_model(model, train, new):
    codes = model.transform(new)
    return codes, model.inverse_transform(codes)


def oracle_nystroem(model, train, new):
    landmarks = train[sample_rows(len(train), 3)]
    # All rows are landmarks, so that scikit-learn has no choice.
    features = Nystroem(gamma=GAMMA, n_components=3).fit(landmarks)
    ridge = RidgeCV(ALPHAS).fit(features.transform(train), train)
    return features.transform(new), ridge.predict(features.transform(new))


def oracle_pca(model, train, new):
    pca = PCA(3).fit(train)
    return pca.transform(new), pca.inverse_transform(pca.transform(new))


def oracle_kernel_pca(model, train, new):
    eigenvalues, E = np.linalg.eigh(rbf_kernel(train.astype(float), gamma=GAMMA))
    W = E[:, -3:] / np.sqrt(eigenvalues[-3:])
    preimage = PreImage(random_state=0).fit(rbf_kernel(train, gamma=GAMMA) @ W, train)
    scores = rbf_kernel(new, train, gamma=GAMMA) @ W
    return scores, preimage.predict(scores)


ORACLES = {
    "dkae": oracle_model,
    "Nystroem + ridge": oracle_nystroem,
    "PCA": oracle_pca,
    "kernel PCA": oracle_kernel_pca,
}


@pytest.mark.parametrize(("name", "oracle"), list(ORACLES.items()), ids=list(ORACLES))
def test_row_is_that_of_its_oracle(name, oracle, found, model, train, new):
    codes, back = (np.asarray(part, float) for part in oracle(model, train, new))
    gram = rbf_kernel(new.astype(float), gamma=GAMMA)
    expected = numbers_of(new.astype(float), gram, codes, back)
    assert found[name][2:-1] == pytest.approx(expected, abs=2e-4)
    assert (found[name].n_components, found[name].note) == (3, "")


def test_constant_kernel_is_the_formula(found, train, new):
    gram = rbf_kernel(new.astype(float), gamma=GAMMA)
    floor = gram.sum() / (len(gram) * np.linalg.norm(gram))
    mse = ((new - train.mean(axis=0)) ** 2).mean()
    expected = [floor, np.sqrt(2 - 2 * floor), 0, mse, 1 - mse / new.var(axis=0).mean()]
    assert found["constant kernel"][2:-1] == pytest.approx(expected, abs=1e-6)
    assert found["constant kernel"].n_components == 1


def test_constant_alignment_of_a_comparison_is_the_floor(found, model, new):
    comparison = metrics.compare_grams(model.transform(new), model.prior_gram(new))
    expected = pytest.approx(found["constant kernel"].alignment, abs=1e-12)
    assert comparison.constant_alignment == expected


def test_alignment_of_the_model_is_its_score(found, model, new):
    assert found["dkae"].alignment == model.score(new)
    assert found["dkae"].centered_alignment == metrics.centered_alignment_score(model, new)
    assert found["dkae"].r2 == metrics.reconstruction_r2_score(model, new)


def test_all_landmarks_give_the_kernel_itself(train):
    kernel = PairwiseKernel("rbf", gamma=GAMMA).fit(train)
    rows = train.astype(float)
    Z = nystroem_map(kernel, rows)(rows)
    np.testing.assert_allclose(Z @ Z.T, rbf_kernel(rows, gamma=GAMMA), atol=1e-6)


def test_round_off_is_left_out_neither_too_early_nor_too_late():
    """Most eigenvalues of a smooth kernel in float32 are noise, but not all that are small."""
    landmarks, others = np.split((load_digits().data[:800] / 16).astype(np.float32), 2)
    kernel = PairwiseKernel("rbf", gamma=1e-4).fit(landmarks)
    Z = nystroem_map(kernel, landmarks)(others)
    expected = rbf_kernel(others.astype(float), gamma=1e-4)
    np.testing.assert_allclose(Z @ Z.T, expected, atol=3e-5)


# --- what the notes say --------------------------------------------------------------------------


def test_without_train_the_rivals_are_flattered(model, new, found):
    flattered = by_name(compare_with_baselines(model, new))
    assert flattered["dkae"] == found["dkae"]
    assert {flattered[name].note for name in NAMES[1:]} == {FLATTERED}
    assert flattered["PCA"].r2 > found["PCA"].r2


def test_methods_have_no_more_components_than_they_can(train, new):
    model = make_model(100).fit(train)
    rows = by_name(compare_with_baselines(model, new, train))
    assert (rows["PCA"].n_components, rows["PCA"].note) == (6, "has no more than 6 components")
    assert rows["PCA"].r2 == pytest.approx(1, abs=1e-6)
    for name in ("Nystroem + ridge", "kernel PCA"):
        assert 6 < rows[name].n_components <= 80
        assert rows[name].note == f"has no more than {rows[name].n_components} components"
    assert rows["dkae"].n_components == 100


def test_rivals_with_a_kernel_learn_from_a_sample(model, train, new, found):
    rows = by_name(compare_with_baselines(model, new, train, max_rows=20))
    for name in ("Nystroem + ridge", "kernel PCA"):
        assert rows[name].note == "learns from 20 of 80 rows"
        assert rows[name] != found[name]
    assert rows["PCA"] == found["PCA"]
    part = train[sample_rows(80, 20)]
    kernel_pca = KernelPCA(3, gamma=GAMMA, center=False).fit(part)
    expected = metrics.alignment(
        metrics.code_gram(kernel_pca.transform(new)), model.prior_gram(new)
    )
    assert rows["kernel PCA"].alignment == pytest.approx(expected, abs=1e-6)


def test_rows_are_ready_for_json(found):
    rows = [row._asdict() for row in found.values()]
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert list(rows[0]) == [
        *("name", "n_components", "alignment", "alignment_loss", "centered_alignment"),
        *("reconstruction_mse", "r2", "note"),
    ]


# --- any model, any kernel -----------------------------------------------------------------------


def test_model_of_a_matrix_has_the_floor_and_pca(train, new):
    model = make_model().fit(train, gram=train @ train.T)
    rows = by_name(compare_with_baselines(model, new, train, gram=new @ new.T))
    for name in ("Nystroem + ridge", "kernel PCA"):
        assert rows[name] == (name, *[None] * 6, NO_KERNEL)
    assert rows["dkae"].alignment == model.score(new, gram=new @ new.T)
    floor = (new @ new.T).sum() / (len(new) * np.linalg.norm(new @ new.T))
    assert rows["constant kernel"].alignment == pytest.approx(floor, abs=1e-6)
    assert rows["PCA"].alignment > 0.9


def test_model_of_a_matrix_needs_a_gram(train, new):
    model = make_model().fit(train, gram=train @ train.T)
    with pytest.raises(
        ValueError, match=r"^the model has no kernel .* pass gram=, the Gram matrix"
    ):
        compare_with_baselines(model, new, train)


def test_a_gram_that_knows_its_kernel_brings_it(train, new):
    model = make_model().fit(train, gram=train @ train.T)
    linear = PairwiseKernel("linear").fit(train)
    rows = by_name(compare_with_baselines(model, new, train, gram=linear.on(new)))
    # Uncentred PCA is linear kernel PCA: the best approximation of rank 3 has this alignment.
    assert rows["kernel PCA"].alignment > max(0.97, rows["Nystroem + ridge"].alignment)


@pytest.mark.parametrize(
    "kernel",
    [lambda X: Precomputed(X @ X.T), lambda X: ideal_kernel(np.arange(len(X)) % 3)],
    ids=["precomputed", "labels"],
)
def test_kernel_of_positions_cannot_be_evaluated(kernel, train):
    model = make_model(kernel=kernel(train)).fit(train)
    rows = by_name(compare_with_baselines(model, train))
    assert rows["kernel PCA"].note == rows["Nystroem + ridge"].note == NO_KERNEL
    assert rows["PCA"].note == FLATTERED


def test_kernel_of_known_rows_can_be_evaluated_there(train):
    known = Precomputed(rbf_kernel(train, gamma=GAMMA), rows=train)
    found = by_name(compare_with_baselines(make_model(kernel=known).fit(train), train))
    expected = by_name(compare_with_baselines(make_model().fit(train), train))
    for name in ("Nystroem + ridge", "kernel PCA"):
        assert found[name][1:-1] == pytest.approx(expected[name][1:-1], abs=1e-3)


def of_sequences(X, Y):
    """Look at the last step of sequences, which a matrix of flat rows does not have."""
    return rbf_kernel(X[:, -1, :], Y[:, -1, :])


@pytest.mark.parametrize("kernel", ["rbf", of_sequences], ids=["by name", "of sequences"])
def test_rows_of_any_shape(kernel):
    X, Y = np.random.default_rng(0).random((2, 40, 4, 3), dtype=np.float32)
    model = make_model(kernel=kernel, network=Recurrent).fit(X)
    rows = by_name(compare_with_baselines(model, Y, X))
    C = np.asarray(model.transform(Y), float)
    back = model.inverse_transform(C).reshape(40, -1)
    gram = model.kernel_.values(Y, Y)
    expected = numbers_of(Y.reshape(40, -1), gram, C, back)
    assert rows["dkae"][2:-1] == pytest.approx(expected, abs=1e-4)
    _, E = np.linalg.eigh(model.kernel_.values(X, X).astype(float))
    eigenvalues = np.linalg.eigvalsh(model.kernel_.values(X, X).astype(float))
    Z = model.kernel_.values(Y, X) @ E[:, -3:] / np.sqrt(eigenvalues[-3:])
    expected = metrics.alignment(metrics.code_gram(Z), gram)
    assert rows["kernel PCA"].alignment == pytest.approx(expected, abs=1e-5)


def test_pipeline_is_measured_in_the_units_of_its_rows(train, new):
    pipeline = make_pipeline(StandardScaler(), make_model()).fit(train)
    scaler, model = pipeline.named_steps.values()
    rows = by_name(compare_with_baselines(pipeline, new, train))
    inside = by_name(compare_with_baselines(model, scaler.transform(new), scaler.transform(train)))
    for name in NAMES:
        assert rows[name].alignment == inside[name].alignment
    pca = PCA(3).fit(scaler.transform(train))
    back = scaler.inverse_transform(pca.inverse_transform(pca.transform(scaler.transform(new))))
    assert rows["PCA"].reconstruction_mse == pytest.approx(((back - new) ** 2).mean(), rel=1e-4)
    assert rows["dkae"].r2 == metrics.reconstruction_r2_score(pipeline, new)


def test_max_rows_is_a_number_of_rows(model, new):
    with pytest.raises(ValueError, match=r"^max_rows=1 must be a whole number of at least 2$"):
        compare_with_baselines(model, new, max_rows=1)
