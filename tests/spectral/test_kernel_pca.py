"""Kernel PCA against scikit-learn's, Eckart and Young, and the Nyström formula."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn import decomposition
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import pairwise_kernels, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from dkae.kernels import PairwiseKernel, Precomputed, ideal_kernel
from dkae.kernels.pairwise import pairwise_names
from dkae.spectral import KernelPCA, PreImage, kernel_pca
from tests.spectral.helpers import assert_same_up_to_sign, centered

RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 1, (150, 5))
NEW = RNG.uniform(0.1, 1, (30, 5))
#: Largest entries of scores are about 1 (and 10 for the polynomial kernels).
PARAMS = {"gamma": 0.5, "degree": 2, "coef0": 1}
#: tanh is nearly positive semi-definite only where it is nearly linear.
SIGMOID = {"gamma": 1e-3, "degree": 2, "coef0": 0}

every_name = pytest.mark.parametrize("name", pairwise_names())
both_solvers = pytest.mark.parametrize("solver", ["dense", "lanczos"])
centering = pytest.mark.parametrize("center", [True, False])


def gram_matrices(name):
    params = SIGMOID if name == "sigmoid" else PARAMS
    options = {"metric": name, "filter_params": True, **params}
    return params, pairwise_kernels(X, **options), pairwise_kernels(NEW, X, **options)


def theirs(P, K, n_components=4):
    """Return scikit-learn's scores, in sample and out of sample."""
    model = decomposition.KernelPCA(n_components, kernel="precomputed", eigen_solver="dense").fit(P)
    return model.transform(P), model.transform(K)


class TestOracle:
    @every_name
    def test_scores_are_those_of_scikit_learn(self, name):
        params, P, K = gram_matrices(name)
        known, new = theirs(P, K)
        model = KernelPCA(4, kernel=name, **params)
        assert_same_up_to_sign(model.fit_transform(X), known, 1e-6)
        assert_same_up_to_sign(model.transform(X), known, 1e-6)
        assert_same_up_to_sign(model.transform(NEW), new, 1e-6)

    @every_name
    def test_lanczos_finds_the_same_in_single_precision(self, name):
        params, P, K = gram_matrices(name)
        known, new = theirs(P, K)
        model = KernelPCA(4, kernel=name, solver="lanczos", random_state=0, **params)
        scale = np.abs(known).max()
        assert_same_up_to_sign(model.fit_transform(X) / scale, known / scale, 1e-4)
        assert_same_up_to_sign(model.transform(NEW) / scale, new / scale, 1e-4)

    @every_name
    @both_solvers
    def test_gram_matrix_in_place_of_a_kernel(self, solver, name):
        _, P, K = gram_matrices(name)
        known, new = theirs(P, K)
        model = KernelPCA(4, solver=solver, random_state=0)
        assert_same_up_to_sign(model.fit_transform(X, gram=P), known, 1e-6)
        assert_same_up_to_sign(model.transform(X, gram=P), known, 1e-6)
        assert_same_up_to_sign(model.transform(NEW, gram=K), new, 1e-6)
        assert model.eigenvalues_ == pytest.approx(np.linalg.eigvalsh(centered(P))[:-5:-1])

    def test_linear_kernel_is_pca(self):
        pca = decomposition.PCA(3).fit(X)
        model = KernelPCA(3, kernel="linear").fit(X)
        assert_same_up_to_sign(model.transform(NEW), pca.transform(NEW), 1e-10)
        assert model.eigenvalues_ / 149 == pytest.approx(pca.explained_variance_)

    def test_auto_changes_the_solver_and_not_the_result(self):
        # 1100 rows are too many for the whole matrix, unless half of its components are wanted.
        rows = np.random.default_rng(1).uniform(size=(1100, 3)).astype(np.float32)
        P = rbf_kernel(rows, gamma=1.0)
        known = theirs(P, P, 5)[0]
        for solver in ("auto", "dense", "lanczos"):
            model = KernelPCA(5, gamma=1.0, solver=solver, random_state=0)
            assert_same_up_to_sign(model.fit_transform(rows), known, 1e-4)
            assert_same_up_to_sign(model.transform(rows), known, 1e-3)

    def test_lanczos_is_as_accurate_as_dense_for_small_eigenvalues(self):
        rows = np.random.default_rng(1).uniform(size=(400, 2))
        for params in ({"solver": "dense"}, {"solver": "lanczos", "random_state": 0}):
            model = KernelPCA(30, gamma=4.0, **params)
            known, again = model.fit_transform(rows), model.transform(rows)
            assert model.eigenvalues_[-1] < 1e-4 * model.eigenvalues_[0]
            error = np.linalg.norm(known - again, axis=0) / np.linalg.norm(known, axis=0)
            assert error.max() < 0.01

    @both_solvers
    def test_many_balanced_classes(self, solver):
        y = np.arange(200) % 50
        model = KernelPCA(49, kernel=ideal_kernel(y, rows=RNG.random((200, 2))), solver=solver)
        model.fit(model.kernel.rows)
        np.testing.assert_allclose(model.eigenvalues_, 4, rtol=1e-6)


class TestUncentred:
    P = rbf_kernel(X, gamma=2.0)
    VALUES, VECTORS = (a[..., ::-1] for a in np.linalg.eigh(P))

    @pytest.mark.parametrize("solver", ["dense", "lanczos"])
    def test_every_m_of_one_fit_is_the_best_approximation(self, solver):
        precomputed = Precomputed(self.P, rows=X) if solver == "dense" else "rbf"
        model = KernelPCA(
            40, kernel=precomputed, gamma=2.0, center=False, solver=solver, random_state=0
        ).fit(X)
        atol = 1e-6 if solver == "dense" else 1e-5
        for m in range(1, 41):
            K_m = model.reconstruct_gram(X, n_components=m)
            best = (self.VECTORS[:, :m] * self.VALUES[:m]) @ self.VECTORS[:, :m].T
            np.testing.assert_allclose(K_m, best, atol=atol)
            error = np.sqrt((self.VALUES[m:] ** 2).sum())
            assert np.linalg.norm(self.P - K_m) == pytest.approx(error, rel=1e-4)

    @pytest.mark.parametrize("n_components", [None, 150])
    def test_all_components_give_the_matrix_back(self, n_components):
        model = KernelPCA(n_components, gamma=2.0, center=False).fit(X)
        np.testing.assert_allclose(model.reconstruct_gram(X), self.P, atol=1e-6)
        K = rbf_kernel(X[:3], X[5:9], gamma=2.0)
        np.testing.assert_allclose(model.reconstruct_gram(X[:3], X[5:9]), K, atol=1e-6)

    def test_gram_matrix_of_a_gram_matrix(self):
        P = rbf_kernel(X, gamma=0.3)
        model = KernelPCA(center=False).fit(X, gram=P)
        np.testing.assert_allclose(model.reconstruct_gram(X, gram=P), P, atol=1e-6)
        with pytest.raises(ValueError, match="leave out Y"):
            model.reconstruct_gram(X, X, gram=P)

    def test_centred_components_give_the_centred_matrix_back(self):
        model = KernelPCA(gamma=2.0).fit(X)
        np.testing.assert_allclose(model.reconstruct_gram(X), centered(self.P), atol=1e-6)

    def test_nystroem_formula(self):
        model = KernelPCA(6, gamma=2.0, center=False).fit(X)
        A = self.VECTORS[:, :6] / np.sqrt(self.VALUES[:6])
        expected = rbf_kernel(NEW, X, gamma=2.0) @ A
        assert_same_up_to_sign(model.transform(NEW), expected, 1e-8)
        assert not model.offset_.any()

    def test_fewer_components_are_the_first_of_more(self):
        few, many = (KernelPCA(m, center=False).fit_transform(X) for m in (3, 8))
        np.testing.assert_allclose(few, many[:, :3], atol=1e-10)

    def test_one_row(self):
        model = KernelPCA(center=False).fit(X[:1])
        np.testing.assert_allclose(model.transform(X[:1]), [[1]])

    def test_equal_rows_have_one_component(self):
        model = KernelPCA(center=False, kernel="linear").fit(np.full((9, 2), 0.1))
        np.testing.assert_allclose(model.transform([[0.1, 0.1], [1, 1]])[:, 0] ** 2, [0.02, 2])


@centering
def test_chunks_of_rows_do_not_show(center, monkeypatch):
    model = KernelPCA(4, center=center).fit(X)
    expected = model.transform(NEW)
    for n_rows in (1, 29, 30, 31):
        monkeypatch.setattr(kernel_pca, "N_CHUNK_ROWS", n_rows)
        np.testing.assert_allclose(model.transform(NEW), expected, atol=1e-10)


class TestPrecision:
    @both_solvers
    @pytest.mark.parametrize("kernel", ["rbf", "forest"])
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_scores_have_the_type_of_the_rows(self, dtype, kernel, solver):
        model = KernelPCA(3, kernel=kernel, solver=solver, preimage=PreImage(), random_state=0)
        rows = X.astype(dtype)
        scores = model.fit_transform(rows)
        back = model.inverse_transform(model.transform(rows))
        assert scores.dtype == model.transform(rows).dtype == back.dtype == dtype

    @pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float16, np.float32])
    @both_solvers
    def test_gram_matrix_of_any_type(self, solver, dtype):
        P = (4 * (np.arange(150)[:, None] % 7 == np.arange(150) % 7)).astype(dtype)
        model = KernelPCA(5, solver=solver, center=False, random_state=0)
        scores = model.fit_transform(X, gram=P)
        exact = np.linalg.eigvalsh(P.astype(np.float64))[:-6:-1]
        assert model.eigenvalues_ == pytest.approx(exact)
        np.testing.assert_allclose(model.transform(X, gram=P), scores, atol=1e-4)

    @both_solvers
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("offset", [0, 10, 100])
    def test_mean_far_from_the_origin_makes_no_components(self, offset, dtype, solver):
        rows = (RNG.standard_normal((150, 4)) @ RNG.standard_normal((4, 9)) + offset).astype(dtype)
        model = KernelPCA(9, kernel="linear", solver=solver, random_state=0)
        with pytest.warns(UserWarning, match="kernel 'linear' has only 4 positive eigenvalues"):
            model.fit(rows)
        exact = np.linalg.svd(rows - rows.mean(0, dtype=np.float64))[1][:4] ** 2
        assert model.eigenvalues_ == pytest.approx(exact, rel=0.02)

    @pytest.mark.filterwarnings("error")
    @pytest.mark.parametrize("gamma", [1e-3, 1e-5])
    def test_nearly_constant_kernel_is_not_called_indefinite(self, gamma):
        assert KernelPCA(gamma=gamma).fit(X.astype(np.float32)).n_components_ < 20

    @pytest.mark.filterwarnings("error")
    @both_solvers
    def test_kernel_that_is_definite_once_it_is_centred(self, solver):
        KernelPCA(3, kernel="additive_chi2", solver=solver).fit(X)

    def test_gram_matrix_on_disk_stays_there(self, tmp_path):
        np.save(tmp_path / "gram.npy", rbf_kernel(X))
        P = np.load(tmp_path / "gram.npy", mmap_mode="r")
        for solver in ("dense", "lanczos"):
            scores = KernelPCA(3, solver=solver).fit_transform(X, gram=P)
            assert_same_up_to_sign(scores, theirs(P, P, 3)[0], 1e-6)


class TestScikitLearn:
    def test_names_of_the_components(self):
        model = KernelPCA(3).fit(X)
        assert list(model.get_feature_names_out()) == [f"kernelpca{i}" for i in range(3)]

    def test_data_frames(self):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, index=np.arange(150) + 7).add_prefix("x")
        model = KernelPCA(3, preimage=PreImage(random_state=0)).set_output(transform="pandas")
        scores = model.fit(frame).transform(frame)
        assert list(scores.columns) == ["kernelpca0", "kernelpca1", "kernelpca2"]
        assert list(scores.index) == list(frame.index)
        plain = clone(model).set_output(transform="default").fit(X)
        np.testing.assert_allclose(scores, plain.transform(X))
        np.testing.assert_allclose(model.reconstruct_gram(frame), plain.reconstruct_gram(X))
        back = plain.inverse_transform(plain.transform(X))
        np.testing.assert_allclose(model.inverse_transform(scores), back)

    @pytest.mark.parametrize(
        "params", [{}, {"kernel": "forest"}, {"solver": "lanczos"}, {"kernel": PairwiseKernel()}]
    )
    def test_clone_and_pickle(self, params):
        model = KernelPCA(3, random_state=0, **params).fit(X)
        expected = model.transform(NEW)
        for copy in (pickle.loads(pickle.dumps(model)), clone(model).fit(X)):
            np.testing.assert_array_equal(copy.transform(NEW), expected)

    def test_gram_matrix_is_not_kept(self):
        model = KernelPCA(3).fit(X, gram=rbf_kernel(X))
        assert model.kernel_ is model.X_fit_ is None
        assert len(pickle.dumps(model)) < 8 * 150 * 10

    def test_same_seed_same_result(self):
        P = rbf_kernel(X)
        models = [KernelPCA(3, solver="lanczos", random_state=s).fit(X, gram=P) for s in (1, 1, 2)]
        a, b, other = (model.coefficients_ for model in models)
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, other)
        assert_same_up_to_sign(a, other, 1e-8)

    def test_step_of_a_pipeline_in_a_search(self):
        y = np.linalg.norm(X - X.mean(0), axis=1) > 0.55  # a ball: nothing for a linear model
        pipeline = make_pipeline(KernelPCA(preimage=PreImage()), LogisticRegression(C=100))
        grid = {"kernelpca__n_components": [1, 15], "kernelpca__kernel": ["linear", "rbf"]}
        with pytest.warns(UserWarning, match="has only 5 positive eigenvalues"):
            search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
        assert search.best_params_ == {"kernelpca__n_components": 15, "kernelpca__kernel": "rbf"}
        assert search.best_score_ > 0.85

    def test_gram_matrix_in_cross_validation(self):
        kernel = Precomputed(rbf_kernel(X), rows=X)
        pipeline = make_pipeline(KernelPCA(5, kernel=kernel), LogisticRegression())
        search = GridSearchCV(pipeline, {"kernelpca__center": [True, False]}, cv=3)
        assert search.fit(X, X[:, 0] > 0.5).best_score_ > 0.8
