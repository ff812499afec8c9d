"""The estimator as its users meet it."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, recipes
from dkae.alignment import alignment
from dkae.kernels import Precomputed
from dkae.kernels.pairwise import pairwise_names

BUDGET = {"max_iter": 10, "steps_per_epoch": 60, "learning_rate_init": 0.005}


@pytest.fixture(scope="module")
def trained():
    """Return a model that has learnt something, and its rows."""
    from sklearn.datasets import load_digits

    X = (load_digits().data[:400] / 16).astype(np.float32)
    model = DeepKernelizedAutoencoder(
        32, network="stacked", hidden_layer_sizes=(64,), batch_size=100, random_state=0, **BUDGET
    )
    return model.fit(X), X


def test_codes_represent_the_kernel_and_decode(trained):
    model, X = trained
    assert model.score(X) > 0.99
    back = model.inverse_transform(model.transform(X))
    assert np.mean((back - X) ** 2) < 0.25 * X.var(axis=0).mean()


def test_gram_approximates_the_kernel_itself(trained):
    model, X = trained
    gram, kernel = model.gram(X), rbf_kernel(X, gamma=model.kernel_.gamma_)
    assert np.abs(gram - kernel).mean() < 0.05
    # The best possible factor is 1: the scale is already in it.
    assert (gram * kernel).sum() / (gram**2).sum() == pytest.approx(1, abs=1e-3)
    np.testing.assert_allclose(model.gram(X[:9], X), gram[:9], rtol=1e-4, atol=1e-5)


def test_score_is_the_alignment_on_all_pairs(trained):
    model, X = trained
    codes = torch.from_numpy(model.transform(X)).double()
    P = torch.from_numpy(rbf_kernel(X.astype(np.float64), gamma=model.kernel_.gamma_))
    assert model.score(X) == pytest.approx(alignment(codes @ codes.T, P).item(), abs=1e-5)


def test_training_beats_no_training(trained, digits):
    untrained = DeepKernelizedAutoencoder(
        32,
        network="stacked",
        hidden_layer_sizes=(64,),
        max_iter=1,
        steps_per_epoch=1,
        random_state=0,
    ).fit(digits)
    assert trained[0].score(digits) > untrained.score(digits)


def test_output_is_float32_whatever_the_input(trained):
    model, X = trained
    for dtype in (np.float32, np.float64):
        assert model.transform(X.astype(dtype)).dtype == np.float32
        assert model.inverse_transform(model.transform(X).astype(dtype)).dtype == np.float32


def test_uint8_images_are_accepted(tiny):
    X = np.random.default_rng(0).integers(0, 255, (30, 6), dtype=np.uint8)
    assert tiny().fit(X).transform(X).shape == (30, 5)


def test_chunks_make_no_difference(trained, monkeypatch):
    model, X = trained
    whole = model.transform(X)
    monkeypatch.setattr("dkae.networks.rows.N_CHUNK_ROWS", 7)
    np.testing.assert_allclose(model.transform(X), whole, rtol=1e-4, atol=1e-5)


def test_fixed_seed_is_bit_identical_and_other_seeds_differ(digits, tiny):
    params = {"validation_fraction": 0.1, "input_noise": 0.1, "pretrain_max_iter": 1}
    a, b, c = (tiny(random_state=s, **params).fit(digits).transform(digits) for s in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


def test_random_state_may_be_a_generator(digits, tiny):
    a = tiny(random_state=np.random.RandomState(3)).fit(digits).transform(digits)
    b = tiny(random_state=3).fit(digits).transform(digits)
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kernel", pairwise_names())
@pytest.mark.filterwarnings("ignore:.*not positive semi-definite")
def test_every_named_kernel_trains(kernel, digits, tiny):
    model = tiny(kernel=kernel).fit(digits)
    assert 0 <= model.score(digits) <= 1
    assert np.isfinite(model.gram(digits)).all()


@pytest.mark.parametrize(
    "kernel",
    [rbf_kernel, lambda A, B: A @ B.T, gp.Matern(nu=1.5), gp.RBF() + gp.ConstantKernel(0.1)],
    ids=["function", "lambda", "Matern", "sum"],
)
def test_callables_and_gaussian_process_kernels_train(kernel, digits, tiny):
    assert 0 < tiny(kernel=kernel).fit(digits).score(digits) <= 1


def test_kernel_params_reach_a_callable(digits, tiny):
    a = tiny(kernel=rbf_kernel, kernel_params={"gamma": 0.2}).fit(digits)
    b = tiny(kernel="rbf", gamma=0.2).fit(digits)
    np.testing.assert_array_equal(a.transform(digits), b.transform(digits))


class TestGram:
    def test_gram_does_what_its_kernel_does(self, digits, tiny):
        P = rbf_kernel(digits, gamma=0.2)
        a = tiny().fit(digits, gram=P)
        b = tiny(kernel="rbf", gamma=0.2).fit(digits)
        np.testing.assert_array_equal(a.transform(digits), b.transform(digits))
        assert a.score(digits, gram=P) == pytest.approx(b.score(digits), abs=1e-6)

    def test_memmap(self, digits, tiny, tmp_path):
        P = rbf_kernel(digits, gamma=0.2)
        np.save(tmp_path / "gram.npy", P)
        on_disk = tiny().fit(digits, gram=np.load(tmp_path / "gram.npy", mmap_mode="r"))
        in_memory = tiny().fit(digits, gram=P)
        np.testing.assert_array_equal(on_disk.transform(digits), in_memory.transform(digits))

    def test_fit_transform_takes_it(self, digits, tiny):
        P = rbf_kernel(digits)
        codes = tiny().fit_transform(digits, gram=P)
        np.testing.assert_array_equal(codes, tiny().fit(digits, gram=P).transform(digits))

    def test_score_asks_for_it(self, digits, tiny):
        model = tiny().fit(digits, gram=rbf_kernel(digits))
        with pytest.raises(ValueError, match="pass gram=, the Gram matrix of these rows"):
            model.score(digits)

    def test_model_does_not_keep_it(self, digits, tiny):
        model = tiny().fit(digits, gram=rbf_kernel(digits))
        assert len(pickle.dumps(model)) < rbf_kernel(digits).nbytes / 4

    def test_grid_search_over_a_precomputed_kernel(self, digits, tiny):
        P = rbf_kernel(digits, gamma=0.2)
        search = GridSearchCV(
            tiny(kernel=Precomputed(P, rows=digits)), {"n_components": [1, 8]}, cv=2
        ).fit(digits)
        plain = GridSearchCV(tiny(kernel="rbf", gamma=0.2), {"n_components": [1, 8]}, cv=2).fit(
            digits
        )
        np.testing.assert_allclose(
            search.cv_results_["mean_test_score"],
            plain.cv_results_["mean_test_score"],
            rtol=1e-5,
        )

    def test_gram_through_cross_validation_is_refused_with_the_remedy(self, digits, tiny):
        search = GridSearchCV(tiny(), {"n_components": [2]}, cv=2, error_score="raise")
        with pytest.raises(ValueError, match=r"kernel=Precomputed\(gram, rows=X\)"):
            search.fit(digits, gram=rbf_kernel(digits))


class TestInScikitLearn:
    def test_pipeline_with_pca_maps_there_and_back(self, trained):
        model, X = trained
        pipeline = make_pipeline(clone(model), PCA(16)).fit(X)
        scores = pipeline.transform(X)
        back = pipeline.inverse_transform(scores)
        assert scores.shape == (400, 16)
        assert back.shape == X.shape
        assert np.mean((back - X) ** 2) < X.var(axis=0).mean() / 2

    def test_pipeline_after_a_scaler(self, digits, tiny):
        pipeline = make_pipeline(StandardScaler(), tiny()).fit(digits)
        assert pipeline.inverse_transform(pipeline.transform(digits)).shape == digits.shape
        # Scaled data leave [0, 1], so the output is linear.
        assert pipeline[-1].network_.layers[0].output_activation == "identity"

    def test_grid_search_in_parallel(self, digits, tiny):
        search = GridSearchCV(tiny(), {"alignment_weight": [0.0, 0.9]}, cv=2, n_jobs=2)
        search.fit(digits)
        assert search.best_params_ == {"alignment_weight": 0.9}

    def test_clone_has_the_parameters_and_nothing_else(self, trained):
        copy = clone(trained[0])
        assert copy.get_params() == trained[0].get_params()
        assert not hasattr(copy, "network_")

    def test_pickle(self, trained):
        model, X = trained
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.transform(X), model.transform(X))
        assert copy.score(X) == model.score(X)

    def test_pandas_output_with_feature_names(self, digits, tiny):
        frame = pd.DataFrame(digits).add_prefix("pixel")
        model = tiny().set_output(transform="pandas").fit(frame)
        codes = model.transform(frame)
        names = [f"deepkernelizedautoencoder{i}" for i in range(5)]
        assert list(codes.columns) == names == list(model.get_feature_names_out())
        assert list(model.feature_names_in_) == list(frame.columns)
        assert model.inverse_transform(codes).shape == digits.shape
        assert model.gram(frame).shape == (300, 300)

    def test_fitted_model_holds_no_training_data(self, digits, tiny):
        small, large = (len(pickle.dumps(tiny().fit(digits[:n]))) for n in (60, 300))
        assert abs(large - small) < 200


@pytest.mark.parametrize("hidden", [(), (7,), [7, 6], 9])
def test_any_list_of_hidden_sizes(hidden, digits, tiny):
    model = tiny(hidden_layer_sizes=hidden).fit(digits)
    assert model.inverse_transform(model.transform(digits)).shape == digits.shape


def test_fewer_rows_than_a_batch(digits, tiny):
    model = tiny(batch_size=200, steps_per_epoch="pairs").fit(digits[:7])
    assert model.transform(digits).shape == (300, 5)


def test_two_rows_are_enough(digits, tiny):
    assert np.isfinite(tiny().fit(digits[:2]).transform(digits)).all()


def test_constant_columns_and_equal_rows(digits, tiny):
    constant = digits.copy()
    constant[:, ::2] = 0.5
    assert np.isfinite(tiny().fit(constant).transform(constant)).all()
    equal = np.ones((20, 4))
    assert np.isfinite(tiny().fit(equal).transform(equal)).all()


class TestOutputActivation:
    def test_auto_is_a_sigmoid_for_data_in_the_unit_interval(self, digits, tiny):
        model = tiny().fit(digits)
        assert model.network_.layers[0].output_activation == "sigmoid"

    def test_auto_is_linear_for_other_data(self, digits, tiny):
        model = tiny().fit(2 * digits - 1)
        assert model.network_.layers[0].output_activation == "identity"

    def test_impossible_range_is_a_warning(self, digits, tiny):
        with pytest.warns(UserWarning, match=r"X ranges over \[0, 255\].*scale X to \[0, 1\]"):
            tiny(output_activation="sigmoid").fit(255 * digits)


class TestRecipes:
    def test_paper_is_the_paper(self):
        model = recipes.paper()
        expected = {
            "n_components": 2000,
            "kernel": "pck",
            "hidden_layer_sizes": (500, 500, 2000),
            "activation": "sigmoid",
            "code_activation": "sigmoid",
            "output_activation": "sigmoid",
            "tied_weights": True,
            "alignment_weight": 0.1,
            "batch_size": 200,
            "pretrain_max_iter": 30,
            "max_iter": 100,
            "steps_per_epoch": "pairs",
        }
        assert expected.items() <= model.get_params().items()

    def test_default_is_the_constructor(self):
        assert recipes.default().get_params() == DeepKernelizedAutoencoder().get_params()

    @pytest.mark.parametrize("recipe", recipes.RECIPES.values())
    def test_overrides(self, recipe):
        assert recipe(n_components=7, steps_per_epoch=3).get_params()["n_components"] == 7

    def test_paper_recipe_trains(self, digits):
        model = recipes.paper(
            n_components=6, hidden_layer_sizes=(8, 8, 12), pretrain_max_iter=1, max_iter=1,
            batch_size=100, random_state=0,
        ).fit(digits)  # fmt: skip
        assert [r["phase"] for r in model.history_][-1] == "fine-tuning"
        codes = model.transform(digits)
        assert codes.min() > 0
        assert codes.max() < 1
