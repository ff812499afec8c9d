"""What users bring: networks, measures, kernels and Grams of their own, and rows of any shape."""

from __future__ import annotations

import copy
import pickle
from functools import partial

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dkae import KernelPCA, load, save
from dkae.grams import Gram, MatrixGram
from dkae.kernels import Kernel, PairwiseKernel, Precomputed, ProbabilisticClusterKernel
from dkae.networks import ConvolutionalAutoencoder, Stack, decode_rows
from dkae.persistence import ModelFileError
from dkae.training.phases import Settings, plan_phases
from dkae.training.trainer import train
from tests.laws.maps import make
from tests.nets import Affine, Linear, Noisy, Recurrent, Residual, spread, wave_kernel

IMAGES = (load_digits().data[:80] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
VECTORS = IMAGES.reshape(-1, 64)

small_conv = partial(ConvolutionalAutoencoder, channels=(4,))
#: A network, and its rows.
NETWORKS = {
    "convolutional": (small_conv, IMAGES),
    "residual": (Residual, IMAGES),
    "residual of vectors": (Residual, VECTORS),
    "stack": (Stack((16,)), VECTORS),
    "recurrent": (Recurrent, IMAGES[:, 0]),
    "module": (Noisy(), VECTORS),
}
every_network = pytest.mark.parametrize("name", NETWORKS)


# --- networks -------------------------------------------------------------------------------------


@every_network
def test_every_network_is_a_map(name, tiny):
    network, X = NETWORKS[name]
    model = tiny(network=network, decoder_max_iter=1).fit(X)
    codes = model.transform(X)
    assert codes.shape == (80, 5)
    assert model.inverse_transform(codes).shape == X.shape
    assert model.row_shape_ == X.shape[1:]
    assert 0 < model.score(X) <= 1
    assert model.gram(X[:3], X).shape == (3, 80)
    for other in (clone(model).fit(X), pickle.loads(pickle.dumps(model)), model.fit(X)):
        np.testing.assert_array_equal(other.transform(X), codes)
    frame = model.set_output(transform="pandas").transform(X)
    assert list(frame.columns) == [f"deepkernelizedautoencoder{i}" for i in range(5)]
    assert model.inverse_transform(frame).shape == X.shape


@every_network
def test_rows_of_another_shape_are_refused(name, tiny):
    network, X = NETWORKS[name]
    model = tiny(network=network).fit(X)
    message = r"rows of X have the shape \(.*\), but the model was|X has 63 features|dim 3"
    for other in (X[..., :-1], X[:, None]):
        for method in (model.transform, model.score, model.gram):
            with pytest.raises(ValueError, match=message):
                method(other)


def test_a_module_is_copied_and_never_changed(tiny):
    network = Noisy().train()
    before = copy.deepcopy(network.state_dict())
    model = tiny(network=network, decoder_max_iter=1).fit(VECTORS)
    assert all(torch.equal(before[name], t) for name, t in network.state_dict().items())
    assert network.training
    assert all(p.grad is None for p in network.parameters())
    assert model.network is network
    own = {t.data_ptr() for t in network.state_dict().values()}
    assert not own & {t.data_ptr() for t in model.network_.state_dict().values()}


def test_training_starts_from_the_weights_of_a_module(tiny):
    network = Linear()
    model = tiny(network=network, optimization__learning_rate_init=1e-12).fit(VECTORS)
    with torch.no_grad():
        codes = network.encode(torch.from_numpy(VECTORS)).numpy()
    np.testing.assert_allclose(model.transform(VECTORS), codes, atol=1e-5)
    first = tiny(network=small_conv).fit(IMAGES)
    second = tiny(network=first.network_).fit(IMAGES)
    assert second.history_[0]["loss"] < first.history_[0]["loss"]


def test_searches_and_pipelines(tiny):
    factories = [small_conv, partial(Residual, width=8)]
    search = GridSearchCV(tiny(), {"network": factories}, cv=2, error_score="raise").fit(IMAGES)
    assert search.best_params_["network"] in factories
    measures = ["frobenius", "centered", spread]
    search = GridSearchCV(tiny(), {"alignment": measures}, cv=2, error_score="raise").fit(VECTORS)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    make_images = FunctionTransformer(lambda X: X.reshape(-1, 1, 8, 8), lambda X: X.reshape(-1, 64))
    pipeline = make_pipeline(StandardScaler(), make_images, tiny(network=small_conv))
    assert pipeline.inverse_transform(pipeline.fit(VECTORS).transform(VECTORS)).shape == (80, 64)


def test_without_a_network_for_them_images_are_refused(tiny):
    with pytest.raises(ValueError, match="Found array with dim 4"):
        tiny().fit(IMAGES)


@pytest.mark.parametrize("shape", [(64,), (8, 8), (1, 8, 8), (2, 2, 4, 4)])
def test_kernels_with_a_name_see_vectors_and_functions_see_rows_as_they_are(shape, tiny):
    seen, X = set(), IMAGES.reshape(-1, *shape)

    def spy(A, B):
        seen.add(A.shape[1:])
        return wave_kernel(A.reshape(len(A), -1, 1), B.reshape(len(B), -1, 1))

    tiny(network=Residual, kernel=spy).fit(X).score(X)
    assert seen == {shape}
    for kernel in ("rbf", PairwiseKernel("poly"), "forest"):
        a = tiny(kernel=kernel, network=Residual, input_noise=0.2).fit(X)
        b = tiny(kernel=kernel, network=Residual, input_noise=0.2).fit(VECTORS)
        np.testing.assert_array_equal(a.transform(X), b.transform(VECTORS))
        assert a.score(X) == b.score(VECTORS)


@pytest.mark.parametrize("name", ["convolutional", "stack"])
def test_models_of_our_networks_are_saved(name, tiny, tmp_path):
    network, X = NETWORKS[name]
    model = tiny(network=network, decoder_max_iter=1).fit(X)
    save(model, tmp_path / "model")
    loaded = load(tmp_path / "model")
    codes = model.transform(X)
    np.testing.assert_array_equal(loaded.transform(X), codes)
    np.testing.assert_array_equal(loaded.inverse_transform(codes), model.inverse_transform(codes))
    np.testing.assert_array_equal(clone(loaded).fit(X).transform(X), codes)


def test_files_hold_no_code(tiny, tmp_path):
    X = IMAGES[:, 0]
    model = tiny(network=Recurrent).fit(X)
    save(model, tmp_path / "model")
    with pytest.raises(ModelFileError, match=r"'Recurrent'.*pass load"):
        load(tmp_path / "model")
    loaded = load(tmp_path / "model", network=Recurrent)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    with pytest.warns(UserWarning, match="does not hold alignment"):
        save(tiny(alignment=spread).fit(VECTORS), tmp_path / "b")
    with pytest.raises(ValueError, match="alignment='your alignment' is not known"):
        load(tmp_path / "b").fit(VECTORS)


# --- measures -------------------------------------------------------------------------------------


def test_a_custom_measure_is_learned(tiny):
    model = tiny(alignment=spread, alignment_weight=1.0, max_iter=10).fit(VECTORS)
    assert model.history_[-1]["alignment_loss"] < model.history_[0]["alignment_loss"]


@pytest.mark.parametrize(
    ("measure", "message"),
    [
        (lambda C, P: (C - P).sum(dim=1), r"alignment=<lambda> .* shape \(50,\).*: sum it"),
        (lambda C, P: (C / 0 * 0).sum(), "alignment=<lambda> returned nan at its first call"),
        (lambda C, P: (C - P).norm().item(), r"alignment=<lambda> returned .*expected a tensor"),
        (lambda C, P: (C.detach() - P).norm(), "alignment=<lambda> has no gradient: compute"),
    ],
)
def test_what_is_no_measure_leaves_the_former_fit(measure, message, tiny):
    model = tiny().fit(VECTORS)
    network = model.network_
    with pytest.raises(ValueError, match=message):
        model.set_params(alignment=measure).fit(VECTORS)
    assert model.network_ is network


# --- decoders -------------------------------------------------------------------------------------


class AffineDecoder(BaseEstimator):
    """The least that a trained decoder needs: two methods of a regressor, and three."""

    def fit(self, codes, rows):
        raise NotImplementedError("a map trains it")

    def predict(self, codes):
        return decode_rows(self.network_, codes)

    def settings(self, n_rows, device):
        return Settings(decoder_max_iter=3, batch_size=30, validation_fraction=0.2, device=device)

    def start(self, codes, rows, known):
        self.network_ = Affine(codes.shape[1], rows.shape[1])

    def learn(self, source, settings, callbacks):
        return train(
            self.network_, plan_phases(self.network_, settings), source, settings, callbacks
        )


def test_a_custom_decoder_is_trained(tmp_path):
    model = make("nystroem, ridge", decoder=AffineDecoder(), warm_start=True).fit(ROWS)
    codes = model.transform(ROWS)
    assert [record["phase"] for record in model.history_] == 3 * ["decoder"]
    assert model.history_[-1]["validation_loss"] < model.history_[0]["validation_loss"]
    assert "Affine of 24 weights" in repr(model)
    network = model.decoder_.network_
    before = network.linear.weight.clone()
    for go_on in (model.fit, model.partial_fit):
        go_on(ROWS)
        assert not torch.equal(model.decoder_.network_.linear.weight, before)
        np.testing.assert_array_equal(model.transform(ROWS), codes)
    assert torch.equal(network.linear.weight, before)
    model.set_params(warm_start=False).fit(ROWS, checkpoint=tmp_path / "state")
    assert (tmp_path / "state").exists()


# --- kernels and Grams ----------------------------------------------------------------------------

ROWS = np.random.default_rng(0).random((90, 6), dtype=np.float32)


class Counting(Kernel):
    """Counts how often it is fitted."""

    def fit(self, X, y=None):
        self.n_fits_ = getattr(self, "n_fits_", 0) + 1
        return self

    def evaluate(self, X, Y):
        return rbf_kernel(X, Y, gamma=0.5)


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


every_kind = pytest.mark.parametrize("name", ["autoencoder", "nystroem, ridge", "kernel PCA"])


@every_kind
def test_a_custom_kernel_is_fitted_once(name):
    kernel = Counting()
    model = make(name, kernel=kernel).fit(ROWS)
    assert not hasattr(kernel, "n_fits_")
    assert model.kernel_.n_fits_ == model.fit(ROWS).kernel_.n_fits_ == 1
    kernel.fit(ROWS)
    for part in (slice(None), slice(20, 60)):
        given = make(name).fit(ROWS[part], gram=kernel.on(ROWS)[part])
        assert given.kernel_ is kernel
    assert kernel.n_fits_ == 1


@every_kind
def test_features_of_a_gram_are_computed_once(name, monkeypatch):
    kernel = ProbabilisticClusterKernel(3, 2, random_state=0).fit(ROWS)
    calls, original = [], ProbabilisticClusterKernel._reduce  # all ways to features go there

    def reduce(self, X):
        calls.append(len(X))
        return original(self, X)

    monkeypatch.setattr(ProbabilisticClusterKernel, "_reduce", reduce)
    monkeypatch.setattr(ProbabilisticClusterKernel, "fit", lambda *_: pytest.fail("fitted"))
    gram = kernel.on(ROWS)
    assert calls == [len(ROWS)]
    make(name).fit(ROWS, gram=gram)
    if name != "nystroem, ridge":  # which needs κ(X, L)
        assert sum(calls[1:]) <= 8  # rows on which the Gram is compared with its kernel


def test_only_what_is_needed_of_a_gram_is_computed(tiny):
    X = np.random.default_rng(0).random((3000, 4), dtype=np.float32)
    gram = Lazy(X)
    tiny().fit(X, gram=gram)
    # A sample that is checked before the fit and measured after it, and the batches.
    assert gram.n_entries == 2 * 512**2 + 10 * 50**2


def test_a_custom_gram_with_and_without_a_kernel(tiny):
    kernel = PairwiseKernel(gamma=0.5).fit(ROWS)
    for make_model in (tiny, partial(KernelPCA, 3)):
        assert make_model().fit(ROWS, gram=Lazy(ROWS, kernel)).kernel_ is kernel
    model = tiny().fit(ROWS, gram=Lazy(ROWS))
    assert model.kernel_ is None
    with pytest.raises(ValueError, match="pass gram=, the Gram matrix of these rows"):
        model.score(ROWS[:9])
    assert 0 < model.score(ROWS[:9], gram=Lazy(ROWS[:9])) <= 1
    gram = 0.5 * Lazy(ROWS) + Lazy(ROWS) * MatrixGram(ROWS @ ROWS.T)
    matrix = rbf_kernel(ROWS, gamma=0.5) * (0.5 + ROWS @ ROWS.T)
    a, b = tiny().fit(ROWS, gram=gram), tiny().fit(ROWS, gram=matrix)
    np.testing.assert_allclose(a.transform(ROWS), b.transform(ROWS), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("order", ["backwards", "drawn"])
def test_a_matrix_knows_its_rows_in_any_order(order):
    kernel = Precomputed(rbf_kernel(ROWS), rows=ROWS).fit(ROWS)
    drawn = np.random.default_rng(0).permutation(len(ROWS))
    X = ROWS[::-1] if order == "backwards" else ROWS[drawn]
    given = KernelPCA(3).fit_transform(X, gram=kernel.on(X))
    own = KernelPCA(3, kernel=kernel).fit_transform(X)
    np.testing.assert_allclose(given, own, rtol=1e-3, atol=1e-4)


def test_cross_validation_takes_a_matrix_with_its_rows(tiny):
    P = rbf_kernel(ROWS, gamma=0.5)
    grid = {"n_components": [1, 8]}
    known = GridSearchCV(tiny(kernel=Precomputed(P, rows=ROWS)), grid, cv=2).fit(ROWS)
    plain = GridSearchCV(tiny(gamma=0.5), grid, cv=2).fit(ROWS)
    scores = [search.cv_results_["mean_test_score"] for search in (known, plain)]
    np.testing.assert_allclose(*scores, rtol=1e-4)
    search = GridSearchCV(tiny(), grid, cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"kernel=Precomputed\(gram, rows=X\)"):
        search.fit(ROWS, gram=P)
