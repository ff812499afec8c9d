"""The estimator with parts of the user's: networks, measures, rows of any shape."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dkae import load, save
from dkae.kernels import PairwiseKernel
from dkae.networks import ConvolutionalAutoencoder, ResidualAutoencoder, StackedNetwork
from dkae.persistence import ModelFileError
from tests.nets import Linear, Noisy, Recurrent, spread, wave_kernel


def as_images(X):
    return X.reshape(-1, 1, 8, 8)


@pytest.fixture(scope="module")
def images():
    from sklearn.datasets import load_digits

    return as_images((load_digits().data[:80] / 16).astype(np.float32))


small_conv = partial(ConvolutionalAutoencoder, channels=(4,))
#: A network, and what makes its rows of images.
NETWORKS = {
    "convolutional": (small_conv, lambda X: X),
    "residual": (partial(ResidualAutoencoder, width=16), lambda X: X),
    "residual of vectors": (partial(ResidualAutoencoder, width=16), lambda X: X.reshape(-1, 64)),
    "stacked": (StackedNetwork((16,)), lambda X: X.reshape(-1, 64)),
    "recurrent": (Recurrent, lambda X: X[:, 0]),
    "module": (Noisy(), lambda X: X.reshape(-1, 64)),
}


@pytest.mark.parametrize("name", NETWORKS)
class TestEveryNetwork:
    @pytest.fixture
    def model(self, name, tiny):
        return tiny(network=NETWORKS[name][0], decoder_max_iter=1)

    @pytest.fixture(name="X")
    def rows(self, name, images):
        return NETWORKS[name][1](images)

    def test_there_and_back(self, X, model):
        codes = model.fit(X).transform(X)
        assert codes.shape == (80, 5)
        assert model.inverse_transform(codes).shape == X.shape
        assert model.row_shape_ == X.shape[1:]
        assert 0 < model.score(X[:30]) <= 1
        assert model.gram(X[:3], X).shape == (3, 80)

    def test_same_seed_same_model_also_fitted_again(self, X, model):
        first = model.fit(X).transform(X)
        np.testing.assert_array_equal(model.fit(X).transform(X), first)
        np.testing.assert_array_equal(clone(model).fit(X).transform(X), first)

    def test_pickling(self, X, model):
        codes = model.fit(X).transform(X)
        copied = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copied.transform(X), codes)
        np.testing.assert_array_equal(copied.fit(X).transform(X), codes)
        assert copied.score(X) == model.score(X)

    def test_other_rows_are_refused(self, X, model):
        model.fit(X)
        message = r"rows of X have the shape \(.*\), but the model was fitted to rows of shape"
        for other in (X[:, :-1], X[..., :-1], X[:, None]):
            for method in (model.transform, model.score, model.gram):
                with pytest.raises(ValueError, match=message):
                    method(other)

    def test_names_of_the_codes_and_data_frames(self, X, model):
        frame = model.set_output(transform="pandas").fit(X).transform(X)
        assert list(frame.columns) == [f"deepkernelizedautoencoder{i}" for i in range(5)]
        assert model.inverse_transform(frame).shape == X.shape


class TestModules:
    def test_a_module_is_copied_and_never_changed(self, images, tiny):
        network = Noisy().train()
        before = copy.deepcopy(network.state_dict())
        model = tiny(network=network, decoder_max_iter=1).fit(images.reshape(-1, 64))
        assert all(torch.equal(before[name], t) for name, t in network.state_dict().items())
        assert network.training
        assert all(p.grad is None for p in network.parameters())
        assert model.network is network
        assert model.network_ is not network
        own = {t.data_ptr() for t in network.state_dict().values()}
        assert not own & {t.data_ptr() for t in model.network_.state_dict().values()}

    def test_training_starts_from_its_weights(self, images, tiny):
        network, X = Linear(), images.reshape(-1, 64)
        model = tiny(network=network, learning_rate_init=1e-12).fit(X)
        with torch.no_grad():
            codes = network.encode(torch.from_numpy(X)).numpy()
        np.testing.assert_allclose(model.transform(X), codes, atol=1e-5)

    def test_a_trained_network_goes_on(self, images, tiny):
        first = tiny(network=small_conv).fit(images)
        second = tiny(network=first.network_).fit(images)
        assert second.history_[0]["loss"] < first.history_[0]["loss"]


class TestInScikitLearn:
    def test_a_search_over_networks(self, images, tiny):
        factories = [small_conv, partial(ResidualAutoencoder, width=8)]
        search = GridSearchCV(tiny(), {"network": factories}, cv=2, error_score="raise")
        search.fit(images)
        assert search.best_params_["network"] in factories
        assert search.best_estimator_.transform(images).shape == (80, 5)

    def test_a_search_over_measures(self, images, tiny):
        measures = ["frobenius", "centered", spread]
        search = GridSearchCV(tiny(), {"alignment": measures}, cv=2, error_score="raise")
        search.fit(images.reshape(-1, 64))
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_a_pipeline_that_makes_images_of_scaled_rows(self, images, tiny):
        X = images.reshape(-1, 64)
        make_images = FunctionTransformer(as_images, lambda X: X.reshape(-1, 64))
        pipeline = make_pipeline(StandardScaler(), make_images, tiny(network=small_conv))
        codes = pipeline.fit(X).transform(X)
        assert codes.shape == (80, 5)
        assert pipeline.inverse_transform(codes).shape == X.shape
        search = GridSearchCV(
            pipeline, {"deepkernelizedautoencoder__alignment_weight": [0.1, 0.5]}, cv=2
        )
        assert 0 < search.fit(X).best_score_ <= 1

    def test_the_html_links_to_the_documentation(self, tiny):
        html = tiny(network=small_conv)._repr_html_()
        page = (
            "https://dkae.readthedocs.io/en/stable/api/dkae.autoencoder.DeepKernelizedAutoencoder"
        )
        assert f"{page}.html" in html

    @pytest.mark.parametrize("device", ["cpu:0", torch.device("cpu"), torch.device("cpu", 0)])
    def test_a_device_as_torch_spells_it(self, device, images, tiny):
        X = images.reshape(-1, 64)
        model = clone(tiny(device=device)).fit(X)
        np.testing.assert_array_equal(model.transform(X), tiny(device="cpu").fit(X).transform(X))


class TestRowsOfAnyShape:
    """Kernels that have a name see vectors, others see rows as they are."""

    @pytest.fixture
    def spy(self):
        seen = set()

        def kernel(A, B):
            seen.add(A.shape[1:])
            return wave_kernel(A.reshape(len(A), -1, 1), B.reshape(len(B), -1, 1))

        kernel.seen = seen
        return kernel

    @pytest.mark.parametrize("shape", [(64,), (8, 8), (1, 8, 8), (2, 2, 4, 4)])
    def test_a_function_sees_them_as_they_are(self, shape, images, tiny, spy):
        X = images.reshape(-1, *shape)
        tiny(network=partial(ResidualAutoencoder, width=8), kernel=spy).fit(X).score(X)
        assert spy.seen == {shape}

    @pytest.mark.parametrize("kernel", ["rbf", "poly", "forest", PairwiseKernel("rbf")])
    def test_a_kernel_with_a_name_sees_vectors(self, kernel, images, tiny):
        network = partial(ResidualAutoencoder, width=8)
        X = images.reshape(-1, 64)
        a = tiny(kernel=kernel, network=network).fit(images)
        b = tiny(kernel=kernel, network=network).fit(X)
        np.testing.assert_array_equal(a.transform(images), b.transform(X))
        assert a.score(images) == b.score(X)

    def test_with_noise_and_held_out_rows(self, images, tiny):
        model = tiny(network=small_conv, input_noise=0.2, early_stopping=True).fit(images)
        assert model.history_[0]["validation_loss"] > 0

    def test_without_a_network_they_are_scikit_learn_s_to_refuse(self, images, tiny):
        with pytest.raises(ValueError, match="Found array with dim 4"):
            tiny().fit(images)


class TestMeasures:
    def test_a_measure_of_the_user_s_is_learnt(self, images, tiny):
        X = images.reshape(-1, 64)
        model = tiny(alignment=spread, alignment_weight=1.0, max_iter=10).fit(X)
        assert model.history_[-1]["alignment_loss"] < model.history_[0]["alignment_loss"]

    @pytest.mark.parametrize(
        ("measure", "message"),
        [
            (lambda C, P: (C - P).sum(dim=1), r"alignment=<lambda> .* shape \(50,\).*: sum it"),
            (lambda C, P: (C / 0 * 0).sum(), "alignment=<lambda> returned nan at its first call"),
            (lambda C, P: (C - P).norm().item(), "alignment=<lambda> returned .*expected a tensor"),
            (lambda C, P: (C.detach() - P).norm(), "alignment=<lambda> has no gradient: compute"),
            ("centred", "alignment='centred' is not known.* did you mean 'centered'"),
        ],
    )
    def test_what_is_no_measure_leaves_the_former_fit(self, measure, message, images, tiny):
        X = images.reshape(-1, 64)
        model = tiny().fit(X)
        network = model.network_
        with pytest.raises(ValueError, match=message):
            model.set_params(alignment=measure).fit(X)
        assert model.network_ is network


class TestFiles:
    @pytest.mark.parametrize("name", ["convolutional", "residual", "residual of vectors"])
    @pytest.mark.parametrize("size", [int, np.int64])
    def test_models_of_our_networks_are_saved(self, name, size, images, tiny, tmp_path):
        network, rows_of = NETWORKS[name]
        widths = {k: size(v[0] if k == "channels" else v) for k, v in network.keywords.items()}
        widths = {k: (v,) if k == "channels" else v for k, v in widths.items()}
        X = rows_of(images)
        model = tiny(network=partial(network.func, **widths), decoder_max_iter=1).fit(X)
        save(model, tmp_path / "model")
        loaded = load(tmp_path / "model")
        codes = model.transform(X)
        np.testing.assert_array_equal(loaded.transform(X), codes)
        back = model.inverse_transform(codes)
        np.testing.assert_array_equal(loaded.inverse_transform(codes), back)
        assert loaded.score(X) == model.score(X)
        np.testing.assert_array_equal(clone(loaded).fit(X).transform(X), codes)

    def test_a_network_of_the_user_s_holds_code(self, images, tiny, tmp_path):
        model = tiny(network=Recurrent).fit(images[:, 0])
        save(model, tmp_path / "model")
        with pytest.raises(ModelFileError, match=r"network of yours, 'Recurrent'.*pass load"):
            load(tmp_path / "model")
        loaded = load(tmp_path / "model", network=Recurrent)
        np.testing.assert_array_equal(loaded.transform(images[:, 0]), model.transform(images[:, 0]))

    def test_functions_of_the_user_s_are_missed_when_fit_is_called_again(
        self, images, tiny, tmp_path
    ):
        X = images.reshape(-1, 64)
        with pytest.warns(UserWarning, match="a does not hold alignment, a function of yours: set"):
            save(tiny(alignment=spread).fit(X), tmp_path / "a")
        with pytest.raises(ValueError, match="alignment='your spread' is not known"):
            load(tmp_path / "a").fit(X)
        with pytest.warns(UserWarning, match="b does not hold optimizer, a function of yours: set"):
            save(tiny(optimizer=torch.optim.SGD).fit(X), tmp_path / "b")
        with pytest.raises(ValueError, match="optimizer='your SGD' is not known"):
            load(tmp_path / "b").fit(X)
