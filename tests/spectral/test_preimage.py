"""Pre-images against scikit-learn's kernel ridge regression, and on data that have a way back."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from dkae.spectral.preimage import ALPHAS
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae.spectral import KernelPCA, PreImage

RNG = np.random.default_rng(0)
Z = RNG.uniform(-1, 1, (90, 2))
#: A smooth surface in five dimensions, far from the origin.
Y = 10 + np.column_stack([Z, np.sin(2 * Z), Z.prod(axis=1)])
Z_NEW = RNG.uniform(-1, 1, (40, 2))


def ridge(alpha, gamma, rows=slice(None)):
    """Return the prediction of kernel ridge regression on targets less their mean."""
    model = KernelRidge(kernel="rbf", alpha=alpha, gamma=gamma).fit(Z[rows], Y[rows] - Y.mean(0))
    return lambda scores: model.predict(scores) + Y.mean(0)


class TestExact:
    @pytest.mark.parametrize("alpha", [1e-3, 0.5, 5])
    @pytest.mark.parametrize("gamma", [0.1, 2.0])
    def test_is_kernel_ridge_regression_around_the_mean(self, gamma, alpha):
        model = PreImage(gamma=gamma, alpha=alpha).fit(Z, Y)
        assert (model.gamma_, model.alpha_) == (gamma, alpha)
        np.testing.assert_allclose(model.predict(Z_NEW), ridge(alpha, gamma)(Z_NEW))

    def test_formula(self):
        A = np.linalg.solve(rbf_kernel(Z, gamma=0.7) + 0.1 * np.eye(90), Y - Y.mean(0))
        expected = Y.mean(0) + rbf_kernel(Z_NEW, Z, gamma=0.7) @ A
        model = PreImage(gamma=0.7, alpha=0.1).fit(Z, Y)
        np.testing.assert_allclose(model.predict(Z_NEW), expected)

    def test_median_sets_sigma_to_the_median_distance(self):
        distances = euclidean_distances(Z)[np.triu_indices(90, k=1)]
        expected = 1 / (2 * np.median(distances) ** 2)
        assert PreImage().fit(Z, Y).gamma_ == pytest.approx(expected, rel=1e-3)

    @pytest.mark.parametrize(
        ("kernel", "params"),
        [("linear", {}), ("poly", {"degree": 2, "coef0": 0.5, "gamma": 0.3}), ("laplacian", {})],
    )
    def test_other_kernels(self, kernel, params):
        model = PreImage(kernel=kernel, alpha=0.1, **params).fit(Z, Y)
        theirs = KernelRidge(kernel=kernel, alpha=0.1, **(params | {"gamma": model.gamma_}))
        expected = theirs.fit(Z, Y - Y.mean(0)).predict(Z_NEW) + Y.mean(0)
        np.testing.assert_allclose(model.predict(Z_NEW), expected)
        assert (model.gamma_ is None) == (kernel == "linear")

    def test_linear_map_is_recovered_to_the_last_digits(self):
        W = RNG.standard_normal((2, 7))
        scores = Z - Z.mean(0)
        model = PreImage(kernel="linear", alpha=1e-6).fit(scores, scores @ W + 3)
        np.testing.assert_allclose(model.predict(Z_NEW), Z_NEW @ W + 3, atol=1e-6)

    def test_a_score_far_from_all_others_goes_back_to_the_mean(self):
        np.testing.assert_allclose(PreImage().fit(Z, Y).predict([[99.0, 99.0]]), [Y.mean(0)])

    def test_one_target(self):
        model = PreImage(alpha=0.1, gamma=1.0).fit(Z, Y[:, 0])
        assert model.predict(Z_NEW).shape == (40,)
        np.testing.assert_allclose(model.predict(Z_NEW), ridge(0.1, 1.0)(Z_NEW)[:, 0])
        column = PreImage(alpha=0.1, gamma=1.0).fit(Z, Y[:, :1])
        np.testing.assert_allclose(column.predict(Z_NEW)[:, 0], model.predict(Z_NEW))

    def test_whole_numbers_as_targets(self):
        labels = np.arange(90) % 7
        assert PreImage().fit(Z, labels).mean_ == pytest.approx(labels.mean())

    def test_single_precision_stays(self):
        model = PreImage(random_state=0).fit(Z.astype(np.float32), Y.astype(np.float32))
        rows = model.predict(Z_NEW.astype(np.float32))
        assert rows.dtype == model.mean_.dtype == np.float32
        exact = PreImage(random_state=0, alpha=model.alpha_).fit(Z, Y)
        np.testing.assert_allclose(rows, exact.predict(Z_NEW), atol=0.02)

    @pytest.mark.filterwarnings("ignore:200000 rows are more")
    def test_mean_of_many_rows_is_accurate_in_single_precision(self):
        rows = np.full((200_000, 2), 0.1, dtype=np.float32)
        model = PreImage(alpha=1, max_samples=5, approximation="subsample").fit(rows, rows)
        np.testing.assert_allclose(model.mean_, rows[0], rtol=1e-7)


class TestGrid:
    def errors(self, alphas, fraction, seed):
        """Return the validation error of each α, computed by hand."""
        seed = np.random.RandomState(seed).randint(np.iinfo(np.int32).max)
        split = ShuffleSplit(1, test_size=fraction, random_state=seed)
        train, test = next(split.split(Z))
        gamma = PreImage(alpha=1).fit(Z, Y).gamma_
        predictions = [ridge(alpha, gamma, train)(Z[test]) for alpha in alphas]
        return [np.mean((rows - Y[test]) ** 2) for rows in predictions]

    @pytest.mark.parametrize("seed", [0, 1])
    @pytest.mark.parametrize("fraction", [0.1, 0.5])
    @pytest.mark.parametrize("alphas", [ALPHAS, (5, 0.5, 1.0), [0.3]], ids=len)
    def test_takes_what_is_best_on_rows_left_out(self, alphas, fraction, seed):
        model = PreImage(alphas=alphas, validation_fraction=fraction, random_state=seed).fit(Z, Y)
        assert model.alpha_ == alphas[np.argmin(self.errors(alphas, fraction, seed))]

    def test_then_fits_on_all_rows(self):
        model = PreImage(random_state=0).fit(Z, Y)
        expected = ridge(model.alpha_, model.gamma_)(Z_NEW)
        np.testing.assert_allclose(model.predict(Z_NEW), expected)

    def test_noise_asks_for_more_regularisation(self):
        noisy = Y + 3 * RNG.standard_normal(Y.shape)
        alphas = [PreImage(random_state=0).fit(Z, rows).alpha_ for rows in (Y, noisy)]
        assert alphas[0] < 0.01 < 0.5 <= alphas[1]


class TestApproximation:
    def error(self, **params):
        exact = PreImage(gamma=0.5, alpha=1e-3, random_state=0).fit(Z, Y)
        with pytest.warns(UserWarning, match="90 rows are more than max_samples"):
            model = clone(exact).set_params(**params).fit(Z, Y)
        return np.abs(model.predict(Z_NEW) - exact.predict(Z_NEW)).max()

    @pytest.mark.parametrize(
        ("approximation", "how"),
        [("nystroem", "by the Nyström features of 30 rows"), ("subsample", "on 30 rows alone")],
    )
    def test_warns_of_what_it_does(self, approximation, how):
        message = rf"90 rows are more than max_samples=30: .*{how}.*='{approximation}'.*Raise max"
        model = PreImage(max_samples=30, approximation=approximation)
        line = inspect.currentframe().f_lineno
        with pytest.warns(UserWarning, match=message) as caught:
            model.fit(Z, Y)
        assert (caught[0].filename, caught[0].lineno) == (__file__, line + 2)

    @pytest.mark.parametrize("alpha", ["grid", 0.1])
    @pytest.mark.parametrize("approximation", ["nystroem", "subsample"])
    def test_one_warning_is_all(self, approximation, alpha):
        # With a fifth of the rows left out there are fewer than max_samples.
        with pytest.warns(UserWarning, match="90 rows are more") as caught:
            PreImage(max_samples=85, approximation=approximation, alpha=alpha).fit(Z, Y)
        assert len(caught) == 1

    def test_comes_near_the_exact_one(self):
        assert self.error(max_samples=89) < 1e-6
        assert self.error(max_samples=40) < 0.01
        assert self.error(max_samples=60, approximation="subsample") < 0.1

    def test_nystroem_uses_all_rows_and_is_nearer(self):
        subsample = self.error(max_samples=20, approximation="subsample")
        assert self.error(max_samples=20) < 0.3 * subsample

    @pytest.mark.filterwarnings("ignore:90 rows are more")
    @pytest.mark.parametrize("approximation", ["nystroem", "subsample"])
    def test_same_seed_same_result(self, approximation):
        model = PreImage(max_samples=20, approximation=approximation, random_state=3)
        a, b = (clone(model).fit(Z, Y).predict(Z_NEW) for _ in range(2))
        np.testing.assert_array_equal(a, b)

    @pytest.mark.filterwarnings("error")
    def test_as_many_rows_as_max_samples_are_exact(self):
        assert isinstance(PreImage(max_samples=90).fit(Z, Y).regression_, KernelRidge)


class TestOfKernelPCA:
    @pytest.mark.parametrize("center", [True, False])
    def test_rows_come_back(self, center, digits):
        model = KernelPCA(40, center=center, preimage=PreImage(random_state=0))
        back = model.fit(digits[:200]).inverse_transform(model.transform(digits))
        mean_error = np.mean((digits - digits[:200].mean(0)) ** 2)
        assert back.dtype == np.float32
        assert np.mean((back - digits)[:200] ** 2) < 0.1 * mean_error
        assert np.mean((back - digits)[200:] ** 2) < 0.35 * mean_error

    def test_is_fitted_from_scores_to_rows(self):
        preimage = PreImage(alpha=0.1)
        model = KernelPCA(3, preimage=preimage).fit(Y)
        assert not hasattr(preimage, "alpha_")
        scores = model.transform(Y)
        expected = clone(preimage).fit(scores, Y).predict(scores)
        np.testing.assert_allclose(model.inverse_transform(scores), expected, atol=1e-5)

    def test_gram_matrix_of_anything_has_a_way_back(self):
        P = rbf_kernel(Z)
        model = KernelPCA(20, preimage=PreImage(alpha=1e-6)).fit(Y, gram=P)
        back = model.inverse_transform(model.transform(Y, gram=P))
        np.testing.assert_allclose(back, Y, atol=0.01)

    def test_any_regressor_will_do(self):
        # Unlike others, ensembles have a length, and none before they are fitted.
        forest = RandomForestRegressor(5, random_state=0)
        for regressor in (forest, make_pipeline(StandardScaler(), KernelRidge())):
            model = KernelPCA(3, preimage=regressor).fit(Y)
            assert model.inverse_transform(model.transform(Y)).shape == Y.shape

    def test_its_parameters_can_be_searched(self):
        def error(model, X):
            return -np.mean((model.inverse_transform(model.transform(X)) - X) ** 2)

        grid = {"preimage__alpha": [1e-4, 1e4], "n_components": [1, 4]}
        search = GridSearchCV(KernelPCA(preimage=PreImage()), grid, cv=3, scoring=error).fit(Y)
        assert search.best_params_ == {"preimage__alpha": 1e-4, "n_components": 4}

    def test_warning_points_at_the_line_that_called_fit(self):
        model = KernelPCA(3, preimage=PreImage(max_samples=50))
        for call in (lambda: model.fit(Y), lambda: model.fit_transform(Y)):
            with pytest.warns(UserWarning, match="rows are more than max_samples=50") as caught:
                call()
            assert caught[0].filename == __file__


class TestBadInput:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"kernel": "rfb"}, "kernel='rfb' is not known.*did you mean 'rbf'"),
            ({"kernel": "pck"}, "kernel='pck' is not known"),
            ({"gamma": 0}, r"gamma=0 must be a number in \(0, inf\)"),
            ({"gamma": "medium"}, "gamma='medium' is not known.*did you mean 'median'"),
            ({"degree": -1}, r"degree=-1 must be a number in \[0, inf\)"),
            ({"coef0": "a"}, "coef0='a' must be a number"),
            ({"alpha": "gird"}, "alpha='gird' is not known: expected one of 'grid'"),
            ({"alpha": -1}, r"alpha=-1 must be a number in \[0, inf\)"),
            ({"alpha": None}, "alpha=None must be a number"),
            ({"alphas": ()}, "alphas is empty: pass at least one number"),
            ({"alphas": (1, -1)}, "each of alphas=-1 must be a number"),
            ({"validation_fraction": 0}, r"validation_fraction=0 must be a number in \(0, 1\)"),
            ({"validation_fraction": 1}, r"validation_fraction=1 must be a number in \(0, 1\)"),
            ({"max_samples": 1}, "max_samples=1 must be a whole number of at least 2"),
            ({"max_samples": 0.5}, "max_samples=0.5 must be a whole number"),
            ({"approximation": "subsampel"}, "approximation=.*did you mean 'subsample'"),
        ],
        ids=lambda value: str(value) if isinstance(value, dict) else "",
    )
    def test_parameters(self, params, message):
        with pytest.raises(ValueError, match=message):
            PreImage(**params).fit(Z, Y)

    def test_failure_leaves_the_former_fit(self):
        model = PreImage(random_state=0).fit(Z, Y)
        expected, state = model.predict(Z_NEW), pickle.dumps(model)
        with pytest.raises(ValueError, match=r"test_size=0\.99"):
            model.set_params(validation_fraction=0.99).fit(Z[:3, :1], Y[:3] + 1)
        model.set_params(validation_fraction=0.2)
        assert pickle.dumps(model) == state
        np.testing.assert_array_equal(model.predict(Z_NEW), expected)
