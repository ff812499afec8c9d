"""A kernel that is fitted, and Grams of it: nothing is fitted again, nothing computed again."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from dkae.grams import Gram, MatrixGram
from dkae.kernels import Kernel, PairwiseKernel, Precomputed, ProbabilisticClusterKernel
from dkae.networks import ConvolutionalAutoencoder
from dkae.spectral import KernelPCA


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((90, 6), dtype=np.float32)


class Counting(Kernel):
    """Counts what is asked of it."""

    def __init__(self, gamma=0.5):
        self.gamma = gamma

    def fit(self, X, y=None):
        self.n_fits_ = getattr(self, "n_fits_", 0) + 1
        return self

    def evaluate(self, X, Y):
        return rbf_kernel(X.reshape(len(X), -1), Y if Y is None else Y.reshape(len(Y), -1),
                          gamma=self.gamma)  # fmt: skip


class Lazy(Gram):
    """Entries that are computed when they are asked for, and counted."""

    def __init__(self, X, kernel=None):
        self.X, self.kernel, self.n_entries = X, kernel, 0

    def __len__(self):
        return len(self.X)

    def block(self, rows, columns=None):
        columns = rows if columns is None else columns
        self.n_entries += len(rows) * len(columns)
        return rbf_kernel(self.X[rows], self.X[columns], gamma=0.5)


@pytest.fixture(params=["autoencoder", "kernel PCA"])
def model(request, tiny):
    return {"autoencoder": tiny(), "kernel PCA": KernelPCA(3)}[request.param]


class TestAsParameter:
    def test_a_fitted_kernel_is_taken_as_it_is(self, model, rows):
        kernel = Counting().fit(rows)
        model.set_params(kernel=kernel).fit(rows)
        assert model.kernel_ is kernel
        assert kernel.n_fits_ == 1

    def test_one_that_is_not_is_cloned_and_stays_as_it_was(self, model, rows):
        kernel = Counting()
        model.set_params(kernel=kernel).fit(rows)
        assert not hasattr(kernel, "n_fits_")
        assert model.kernel_.n_fits_ == 1
        assert model.fit(rows).kernel_.n_fits_ == 1

    def test_it_may_be_fitted_to_other_rows(self, model, rows):
        kernel = PairwiseKernel().fit(10 * rows)
        gamma = kernel.gamma_
        model.set_params(kernel=kernel).fit(rows)
        assert model.kernel_.gamma_ == gamma

    @pytest.mark.parametrize("params", [{"gamma": 0.3}, {"gamma": 0.3, "degree": 2}])
    def test_parameters_of_a_name_go_before_those_of_the_model(self, params, model, rows):
        model.set_params(kernel="poly", gamma=0.7, kernel_params=params).fit(rows)
        assert model.kernel_.gamma_ == 0.3
        assert model.kernel_.degree == params.get("degree", 3)

    def test_parameters_of_an_ensemble(self, model, rows):
        model.set_params(kernel="forest", kernel_params={"n_estimators": 3}).fit(rows)
        assert model.kernel_.n_estimators == 3

    def test_parameters_that_it_has_not(self, model, rows):
        message = "a name in kernel_params of kernel 'rbf'='gama' is not known.*mean 'gamma'"
        with pytest.raises(ValueError, match=message):
            model.set_params(kernel_params={"gama": 1}).fit(rows)


class TestGramOfAKernel:
    def test_it_brings_its_kernel(self, model, rows):
        kernel = Counting().fit(rows)
        model.fit(rows, gram=kernel.on(rows))
        assert model.kernel_ is kernel
        assert kernel.n_fits_ == 1
        assert model.transform(rows[:7]).shape[0] == 7

    def test_it_does_what_the_kernel_does(self, rows, tiny):
        kernel = PairwiseKernel().fit(rows)
        a, b = tiny().fit(rows, gram=kernel.on(rows)), tiny(kernel=kernel).fit(rows)
        np.testing.assert_array_equal(a.transform(rows), b.transform(rows))
        assert a.score(rows[:20]) == b.score(rows[:20])

    @pytest.mark.parametrize("solver", ["dense", "lanczos"])
    def test_it_does_what_the_kernel_does_in_kernel_pca(self, solver, rows):
        kernel = PairwiseKernel(gamma=0.5).fit(rows)
        given = KernelPCA(3, solver=solver, random_state=0).fit(rows, gram=kernel.on(rows))
        own = KernelPCA(3, solver=solver, random_state=0, kernel=kernel).fit(rows)
        new = rows[:9] + 0.1
        np.testing.assert_allclose(given.transform(new), own.transform(new), rtol=1e-3, atol=1e-4)

    def test_of_a_part_of_the_rows(self, model, rows):
        kernel = Counting().fit(rows)
        model.fit(rows[20:60], gram=kernel.on(rows)[20:60])
        assert model.kernel_ is kernel

    @pytest.mark.parametrize("order", ["backwards", "drawn"])
    def test_of_a_matrix_whose_rows_come_in_another_order(self, order, rows):
        kernel = Precomputed(rbf_kernel(rows), rows=rows).fit(rows)
        drawn = np.random.default_rng(0).permutation(len(rows))
        X = rows[::-1] if order == "backwards" else rows[drawn]
        given = KernelPCA(3).fit_transform(X, gram=kernel.on(X))
        own = KernelPCA(3, kernel=kernel).fit_transform(X)
        np.testing.assert_allclose(given, own, rtol=1e-3, atol=1e-4)

    def test_features_are_computed_once(self, model, rows, monkeypatch):
        kernel = ProbabilisticClusterKernel(3, 2, random_state=0).fit(rows)
        calls, original = [], ProbabilisticClusterKernel._reduce  # all ways to features go there

        def reduce(self, X):
            calls.append(len(X))
            return original(self, X)

        monkeypatch.setattr(ProbabilisticClusterKernel, "_reduce", reduce)
        monkeypatch.setattr(ProbabilisticClusterKernel, "fit", lambda *_: pytest.fail("fitted"))
        gram = kernel.on(rows)
        model.fit(rows, gram=gram)
        compared = 8  # rows on which the Gram is compared with its kernel
        assert calls == [len(rows), compared]
        model.transform(rows[:5])
        if hasattr(model, "score"):
            model.score(rows[:5])
        assert calls == [len(rows), compared, 5]

    def test_images_reach_a_kernel_of_the_user_s_as_they_are(self, rows, tiny):
        seen = set()

        class Spy(Counting):
            def evaluate(self, X, Y):
                seen.add(X.shape[1:])
                return super().evaluate(X, Y)

        images = rows.reshape(-1, 1, 2, 3)
        kernel = Spy().fit(images)
        model = tiny(network=ConvolutionalAutoencoder).fit(images, gram=kernel.on(images))
        model.score(images[:9])
        assert seen == {(1, 2, 3)}

    def test_parameters_that_change_after_fit_do_not_reach_the_kernel(self, rows, tiny):
        images = rows.reshape(-1, 1, 2, 3)
        model = tiny(network=ConvolutionalAutoencoder).fit(images)
        score = model.score(images)
        assert model.set_params(kernel=lambda A, B: 1 / 0).score(images) == score


class TestGramOfTheUser:
    def test_without_a_kernel_score_asks_for_a_gram(self, rows, tiny):
        model = tiny().fit(rows, gram=Lazy(rows))
        assert model.kernel_ is None
        with pytest.raises(ValueError, match="pass gram=, the Gram matrix of these rows"):
            model.score(rows[:9])
        assert 0 < model.score(rows[:9], gram=Lazy(rows[:9])) <= 1

    def test_with_a_kernel_score_needs_none(self, model, rows):
        kernel = PairwiseKernel(gamma=0.5).fit(rows)
        model.fit(rows, gram=Lazy(rows, kernel))
        assert model.kernel_ is kernel
        assert model.transform(rows[:9]).shape[0] == 9

    def test_only_what_is_needed_is_computed(self, tiny):
        X = np.random.default_rng(0).random((3000, 4), dtype=np.float32)
        gram = Lazy(X)
        tiny().fit(X, gram=gram)
        assert gram.n_entries == 512**2 + 10 * 50**2

    def test_sums_and_products(self, rows, tiny):
        gram = 0.5 * Lazy(rows) + Lazy(rows) * MatrixGram(rows @ rows.T)
        matrix = rbf_kernel(rows, gamma=0.5) * (0.5 + rows @ rows.T)
        a, b = tiny().fit(rows, gram=gram), tiny().fit(rows, gram=matrix)
        np.testing.assert_allclose(a.transform(rows), b.transform(rows), rtol=1e-2, atol=1e-3)

    @pytest.mark.parametrize(
        ("block", "message"),
        [
            (
                lambda n: np.ones((n, 3)),
                r"gram.block returned shape \(90, 3\), expected \(90, 90\): it",
            ),
            (np.ones, r"gram.block returned shape \(90,\), expected \(90, 90\)"),
            (lambda n: np.full((n, n), np.nan), "gram has NaN or infinite values"),
            (lambda n: np.tri(n), "gram is not symmetric"),
        ],
        ids=["narrow", "flat", "NaN", "lopsided"],
    )
    @pytest.mark.parametrize("solver", ["dense", "lanczos"])
    def test_blocks_that_are_none(self, block, message, solver, model, rows):
        class Bad(Lazy):
            def block(self, rows, columns=None):
                return block(len(rows))

        if isinstance(model, KernelPCA):
            model.set_params(solver=solver)
        before = dict(vars(model.fit(rows)))
        with pytest.raises(ValueError, match=message):
            model.fit(rows, gram=Bad(rows))
        assert vars(model).keys() == before.keys()
        assert model.kernel_ is before["kernel_"]

    def test_of_other_rows(self, model, rows):
        for gram in (Lazy(rows[:9]), PairwiseKernel().fit(rows).on(rows[:9])):
            with pytest.raises(ValueError, match="gram has 9 rows, but X has 90: pass the Gram of"):
                model.fit(rows, gram=gram)
