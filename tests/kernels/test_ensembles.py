"""Forests, transformers, labels, and kernels made of kernels, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from dkae.kernels.partitions import agreements
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomTreesEmbedding
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.metrics.pairwise import cosine_similarity, rbf_kernel
from sklearn.preprocessing import KernelCenterer
from sklearn.svm import SVC

from dkae import DeepKernelizedAutoencoder
from dkae.kernels import (
    ForestKernel,
    PairwiseKernel,
    ProbabilisticClusterKernel,
    TransformerKernel,
    center,
    ideal_kernel,
    make_kernel,
    normalize,
)
from dkae.kernels.compose import SumKernel

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 1, (60, 5)).astype(np.float32)
Y = RNG.uniform(0, 1, (20, 5)).astype(np.float32)
LABELS = np.arange(60) % 3
RBF = PairwiseKernel("rbf", gamma=1.0)


def test_agreements_are_counted_column_by_column():
    a, b = RNG.integers(0, 4, (7, 30)), RNG.integers(0, 4, (5, 30))
    np.testing.assert_array_equal(agreements(a, b), (a[:, None] == b).sum(axis=2))


@pytest.mark.parametrize(
    "kernel",
    [
        ForestKernel(n_estimators=12, random_state=0),
        TransformerKernel(Nystroem(n_components=20, random_state=0).fit(X)),
        TransformerKernel(RandomTreesEmbedding(9, random_state=0).fit(X)),
        ProbabilisticClusterKernel(4, 3, random_state=0, tolerance=0),
        ProbabilisticClusterKernel(4, 3, random_state=0, tolerance=0, normalize="cosine"),
    ],
    ids=repr,
)
class TestFeatures:
    def test_gram_is_their_inner_product(self, kernel):
        kernel = clone(kernel).fit(X)
        a, b = kernel.features(X), kernel.features(Y)
        product = a @ b.T
        product = product.toarray() if scipy.sparse.issparse(product) else product
        np.testing.assert_allclose(kernel.gram(X, Y), product, rtol=1e-4, atol=1e-5)


class TestForest:
    def test_it_is_the_share_of_common_leaves(self):
        forest = RandomForestClassifier(15, random_state=0).fit(X, LABELS)
        leaves = forest.apply(Y)
        expected = (leaves[:, None] == leaves).mean(axis=2)
        np.testing.assert_allclose(ForestKernel(forest).fit(X).gram(Y), expected, rtol=1e-6)

    def test_without_a_forest_it_is_the_random_trees_embedding(self):
        kernel = ForestKernel(n_estimators=12, max_depth=4, random_state=3).fit(X)
        embedding = RandomTreesEmbedding(12, max_depth=4, random_state=3).fit(X)
        phi = embedding.transform(X)
        np.testing.assert_allclose(kernel.gram(X), (phi @ phi.T).toarray() / 12, rtol=1e-6)

    def test_the_given_forest_is_neither_fitted_nor_copied(self):
        forest = RandomForestClassifier(3, random_state=0).fit(X, LABELS)
        assert clone(ForestKernel(forest)).fit(X).forest_ is forest

    def test_forest_that_is_not_fitted(self):
        with pytest.raises(ValueError, match=r"forest=RandomForestClassifier\(\) is not fitted"):
            ForestKernel(RandomForestClassifier()).fit(X)


class TestTransformer:
    @pytest.mark.parametrize("transformer", [Nystroem(random_state=0), RBFSampler(random_state=0)])
    def test_it_is_the_inner_product_of_what_it_gives(self, transformer):
        transformer = clone(transformer).set_params(n_components=20).fit(X)
        a, b = transformer.transform(X), transformer.transform(Y)
        kernel = TransformerKernel(transformer).fit(X)
        np.testing.assert_allclose(kernel.gram(X, Y), a @ b.T, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(kernel.diag(X), (a**2).sum(axis=1), rtol=1e-5)

    def test_a_vectoriser_works_on_strings(self):
        texts = ["a kernel is a function", "a function is a kernel", "no word in common"]
        kernel = TransformerKernel(CountVectorizer(token_pattern=r"\w+").fit(texts))
        np.testing.assert_array_equal(kernel.gram(texts)[0], [7, 7, 0])

    def test_data_frames_are_read_by_blocks_too(self):
        pca = PCA(2).set_output(transform="pandas").fit(X)
        kernel = TransformerKernel(pca).fit(X)
        rows = np.array([4, 1])
        np.testing.assert_allclose(
            kernel.on(X).block(rows), kernel.gram(X)[np.ix_(rows, rows)], rtol=1e-5
        )

    def test_what_is_no_transformer(self):
        with pytest.raises(ValueError, match=r"transformer=SVC\(\) has no method transform"):
            TransformerKernel(SVC()).fit(X)
        with pytest.raises(ValueError, match=r"forest=PCA\(n_components=2\) has no method apply"):
            ForestKernel(PCA(2).fit(X)).fit(X)

    def test_transformer_that_is_not_fitted(self):
        with pytest.raises(ValueError, match=r"transformer=Nystroem\(\) is not fitted: fit it on"):
            TransformerKernel(Nystroem()).fit(X)


class TestAlgebra:
    def test_centring_is_that_of_scikit_learn(self):
        kernel = center(RBF, max_reference=None).fit(X)
        K = rbf_kernel(X.astype(np.float64), gamma=1)
        centerer = KernelCenterer().fit(K)
        np.testing.assert_allclose(kernel.gram(X), centerer.transform(K), atol=1e-5)
        new = centerer.transform(rbf_kernel(Y.astype(np.float64), X, gamma=1))
        np.testing.assert_allclose(kernel.gram(Y, X), new, atol=1e-5)

    def test_centring_on_a_sample_is_close(self):
        many = RNG.uniform(0, 1, (3000, 5)).astype(np.float32)
        exact, fast = (center(RBF, max_reference=n).fit(many).gram(X) for n in (None, 1000))
        assert np.abs(exact - fast).max() < 0.02

    def test_normalisation_is_the_cosine(self):
        linear = normalize(PairwiseKernel("linear")).fit(X)
        np.testing.assert_allclose(linear.gram(X, Y), cosine_similarity(X, Y), rtol=1e-5)

    def test_rows_without_direction_have_no_cosine(self):
        kernel = normalize(PairwiseKernel("linear")).fit(X)
        zeros = np.zeros((2, 5), np.float32)
        np.testing.assert_array_equal(kernel.gram(zeros, X), 0)

    def test_sums_and_products(self):
        K, L = rbf_kernel(X, gamma=1), X @ X.T
        linear = PairwiseKernel("linear")
        np.testing.assert_allclose((0.5 * RBF + linear).fit(X).gram(X), 0.5 * K + L, rtol=1e-5)
        np.testing.assert_allclose((RBF * linear).fit(X).gram(X), K * L, rtol=1e-5)
        np.testing.assert_allclose(
            (RBF * linear + 2 * RBF).fit(X).gram(X), K * L + 2 * K, rtol=1e-5
        )

    def test_only_kernels_and_numbers_combine(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            RBF + 1
        with pytest.raises(TypeError, match=r"can't multiply|unsupported operand"):
            RBF * "a"

    def test_centring_needs_reference_rows(self):
        with pytest.raises(ValueError, match="max_reference=0 must be a whole number"):
            center(RBF, max_reference=0).fit(X)

    def test_negative_weights_are_refused(self):
        with pytest.raises(ValueError, match=r"each of weights=-1.0 must be a number"):
            (-1 * RBF).fit(X)

    def test_one_weight_for_each_kernel(self):
        with pytest.raises(ValueError, match="weights has 1 entries for 2 kernels"):
            SumKernel([RBF, RBF], [1.0]).fit(X)


class TestLabels:
    def test_ideal_gram(self):
        gram = ideal_kernel(LABELS).fit(X).gram(X)
        np.testing.assert_array_equal(gram, LABELS[:, None] == LABELS)

    def test_labels_may_be_strings(self):
        kernel = ideal_kernel(np.array(["b", "a", "b"])).fit(X[:3])
        np.testing.assert_array_equal(kernel.gram(X[:3])[0], [1, 0, 1])

    def test_rows_without_label_are_left_to_the_other_kernel(self):
        labels = np.where(np.arange(60) < 30, LABELS, -1)
        gram = (ideal_kernel(labels) + RBF).fit(X).gram(X)
        expected = rbf_kernel(X, gamma=1)
        expected[:30, :30] += LABELS[:30, None] == LABELS[:30]
        np.testing.assert_allclose(gram, expected, rtol=1e-5)

    def test_supervised_and_semi_supervised_priors_train(self, digits, tiny):
        y = np.arange(300) % 4
        partly = np.where(np.arange(300) < 100, y, -1)
        for kernel in (ideal_kernel(y), ideal_kernel(partly) + PairwiseKernel("rbf")):
            assert tiny(kernel=kernel).fit(digits).score(digits) > 0

    @pytest.mark.parametrize(
        "labels",
        [
            ["a", "b", "a", -1, -1],
            np.array([0, 1, 0, -1, -1], dtype=object),
            [0.0, 1.0, 0.0, np.nan, np.nan],
            ["a", "b", "a", None, None],
        ],
        ids=repr,
    )
    def test_missing_labels_are_no_class(self, labels):
        gram = ideal_kernel(labels).fit(X[:5]).gram(X[:5])
        expected = np.zeros((5, 5))
        expected[:3, :3] = [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
        np.testing.assert_array_equal(gram, expected)

    def test_equal_rows_with_different_labels_are_refused(self):
        with pytest.raises(ValueError, match="rows 0 and 1 are equal vectors"):
            ideal_kernel([0, 1], rows=X[[0, 0]]).fit(X[:1])

    def test_labels_of_other_rows(self):
        with pytest.raises(ValueError, match="labels has 60 entries, but X has 20 rows"):
            ideal_kernel(LABELS).fit(X).gram(Y)

    def test_no_labels_at_all(self):
        with pytest.raises(ValueError, match="no label but -1"):
            ideal_kernel(np.full(60, -1)).fit(X)

    def test_labels_of_the_wrong_shape(self):
        with pytest.raises(ValueError, match=r"labels has shape \(60, 1\)"):
            ideal_kernel(LABELS[:, None]).fit(X)


class TestInTheEstimator:
    @pytest.mark.parametrize("name", ["pck", "forest"])
    def test_by_name(self, name, digits, tiny):
        params = {"max_components": 5, "n_initializations": 3} if name == "pck" else None
        model = tiny(kernel=name, kernel_params=params, max_iter=10, steps_per_epoch=30).fit(digits)
        assert model.score(digits) > 0.8
        same = tiny(kernel=name, kernel_params=params, max_iter=10, steps_per_epoch=30).fit(digits)
        np.testing.assert_array_equal(model.transform(digits), same.transform(digits))

    def test_unknown_ensemble_suggests_the_nearest(self):
        with pytest.raises(ValueError, match=r"kernel='forrest'.*did you mean 'forest'\?"):
            make_kernel("forrest")

    def test_the_cluster_kernel_on_real_digits_end_to_end(self):
        from dkae.datasets import load_mnist20k

        mnist = load_mnist20k(scaled=True)
        train, test = mnist.data[mnist.train[:2000]], mnist.data[mnist.test[:500]]
        model = DeepKernelizedAutoencoder(
            64, kernel="pck", hidden_layer_sizes=(128,), max_iter=4, steps_per_epoch=50,
            random_state=0, kernel_params={"n_initializations": 5},
        ).fit(train)  # fmt: skip
        assert model.score(test) > 0.9
        assert model.kernel_.n_mixtures_ == 5 * 29
