"""Kernels made of kernels, and of transformers, against their formulas in scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel
from sklearn.svm import SVC

from dkae.kernels import (
    FunctionKernel,
    PairwiseKernel,
    Precomputed,
    ProbabilisticClusterKernel,
    TransformerKernel,
    ideal_kernel,
    normalize,
)
from dkae.kernels.compose import SumKernel
from dkae.kernels.posteriors import Screening

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (60, 5)).astype(np.float32)
Y = RNG.uniform(0, 1, (20, 5)).astype(np.float32)
RBF, LINEAR = PairwiseKernel("rbf", gamma=1.0), PairwiseKernel("linear")


def test_normalisation_is_the_cosine():
    linear = normalize(LINEAR).fit(X)
    np.testing.assert_allclose(linear.gram(X, Y), cosine_similarity(X, Y), rtol=1e-5)
    zeros = np.zeros((2, 5), np.float32)  # rows without a direction
    np.testing.assert_array_equal(linear.gram(zeros, X), 0)


def test_sums_and_products():
    K, L = rbf_kernel(X, gamma=1), X @ X.T
    for kernel, expected in (
        (0.5 * RBF + LINEAR, 0.5 * K + L),
        (RBF * LINEAR, K * L),
        (RBF * LINEAR + 2 * RBF, K * L + 2 * K),
    ):
        np.testing.assert_allclose(kernel.fit(X).gram(X), expected, rtol=1e-5)


def test_parts_of_a_sum_hold_what_they_need_of_the_rows(monkeypatch):
    made, old = [], Screening.compress
    monkeypatch.setattr(Screening, "compress", lambda s, x: made.append(len(x)) or old(s, x))
    kernel = (ProbabilisticClusterKernel(3, 2, random_state=0) + RBF).fit(X)
    towards = kernel.towards(X)
    for _ in range(3):
        towards(Y)
    assert made == [len(X)] + 3 * [len(Y)]
    towards = normalize(ProbabilisticClusterKernel(3, 2, random_state=0)).fit(X).towards(X)
    made.clear()
    np.testing.assert_array_equal(towards(Y), towards(Y))
    assert set(made) == {len(Y)}


def test_a_composed_kernel_takes_and_knows_what_all_its_parts_do():
    anything, named, known = FunctionKernel(np.dot), RBF, Precomputed(np.eye(3))
    assert (anything + anything).takes_missing
    assert normalize(anything).takes_missing
    for kernel in (anything + named, named * anything, normalize(named)):
        assert not kernel.takes_missing
        assert kernel.knows_new_rows
    for kernel in (known, ideal_kernel([0, 1]), known + named, normalize(known)):
        assert not kernel.knows_new_rows
    assert (anything + named).depends_on_units
    assert not normalize(anything).depends_on_units


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (-1 * RBF, r"each of weights=-1.0 must be a number"),
        (SumKernel([RBF, RBF], [1.0]), "weights has 1 entries for 2 kernels"),
        (SumKernel([]), "kernels is empty: pass at least one"),
    ],
    ids=["negative", "weights", "empty"],
)
def test_parameters(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel.fit(X)


def test_only_kernels_and_numbers_combine():
    with pytest.raises(TypeError, match="unsupported operand"):
        RBF + 1
    with pytest.raises(TypeError, match=r"can't multiply|unsupported operand"):
        RBF * "a"
    with pytest.raises(TypeError, match="kernel is a str: kernels are made of kernels, pass one"):
        SumKernel(["rbf"]).fit(X)


# --- transformers --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Nystroem, RBFSampler])
def test_a_transformer_is_the_inner_product_of_its_rows(kind):
    transformer = kind(n_components=20, random_state=0).fit(X)
    a, b = transformer.transform(X), transformer.transform(Y)
    kernel = TransformerKernel(transformer).fit(X)
    np.testing.assert_allclose(kernel.gram(X, Y), a @ b.T, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(kernel.on(X).diagonal(), (a**2).sum(axis=1), rtol=1e-5)


def test_a_vectoriser_works_on_strings():
    texts = ["a kernel is a function", "a function is a kernel", "no word in common"]
    kernel = TransformerKernel(CountVectorizer(token_pattern=r"\w+").fit(texts))
    np.testing.assert_array_equal(kernel.gram(texts)[0], [7, 7, 0])


def test_data_frames_are_read_by_blocks_too():
    kernel = TransformerKernel(PCA(2).set_output(transform="pandas").fit(X)).fit(X)
    ids = np.array([4, 1])
    expected = kernel.gram(X)[np.ix_(ids, ids)]
    np.testing.assert_allclose(kernel.on(X).block(ids), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (SVC(), r"transformer=SVC\(\) has no method transform"),
        (Nystroem(), r"transformer=Nystroem\(\) is not fitted: fit it on"),
    ],
    ids=str,
)
def test_objects_that_are_not_fitted_transformers(transformer, message):
    with pytest.raises(ValueError, match=message):
        TransformerKernel(transformer).fit(X)
