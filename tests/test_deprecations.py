"""Former names still work, with a warning that says the new one; warnings point at the user."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import dkae
from dkae import DeepKernelizedAutoencoder, recipes
from dkae.networks import Autoencoder
from dkae.spectral import KernelPCA


def caught_by(function):
    """Return what a call returns and the one warning that it gives, which points at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")  # each line warns once, as for users
        warnings.simplefilter("ignore", ConvergenceWarning)  # of a few steps
        result = function()
    (warning,) = caught
    assert warning.category is FutureWarning
    assert warning.filename == __file__
    return result, str(warning.message)


def test_epoch_is_steps_per_epoch(digits, tiny):
    model, message = caught_by(lambda: tiny(epoch=7).fit(digits))
    assert message == "the parameter epoch is now called steps_per_epoch"
    np.testing.assert_array_equal(
        model.transform(digits), tiny(steps_per_epoch=7).fit(digits).transform(digits)
    )


def test_epoch_of_the_paper_s_recipe(digits):
    small = {"n_components": 3, "hidden_layer_sizes": (6,), "max_iter": 1, "pretrain_max_iter": 1}
    small |= {"kernel": "rbf", "random_state": 0}
    model = recipes.paper(epoch=3, **small)
    _, message = caught_by(lambda: model.fit(digits))
    assert "steps_per_epoch" in message
    same = recipes.paper(steps_per_epoch=3, **small).fit(digits)
    assert model.history_ == same.history_


def test_pretrained_is_network(digits, tiny):
    lower = Autoencoder(tiny().fit(digits).network_.layers[:1])
    model, message = caught_by(lambda: tiny().fit(digits, pretrained=lower))
    assert message == "fit(pretrained=...) is now the parameter network"
    assert model.network_.n_pretrained == 1


def test_pretrained_beside_network_is_refused(digits, tiny):
    network = tiny().fit(digits).network_
    with (
        pytest.warns(FutureWarning, match="network"),
        pytest.raises(ValueError, match="pretrained came beside network: pass all layers as netw"),
    ):
        tiny(network=network).fit(digits, pretrained=network)


def test_ideal_gram_is_ideal_kernel():
    kernel, message = caught_by(lambda: dkae.kernels.ideal_gram([0, 1, 0]))
    assert message == "ideal_gram returns a kernel and is now called ideal_kernel"
    expected = dkae.kernels.ideal_kernel([0, 1, 0])
    assert repr(kernel) == repr(expected)


def test_prior_is_gram():
    prior, message = caught_by(lambda: dkae.kernels.Prior)
    assert message == "dkae.kernels.Prior is now dkae.grams.Gram"
    assert prior is dkae.grams.Gram

    def by_import():
        from dkae.kernels import Prior

        return Prior

    assert caught_by(by_import)[0] is prior


class TestClustering:
    """The module warns when it is imported, however that is written."""

    @pytest.fixture(autouse=True)
    def forgotten(self, monkeypatch):
        monkeypatch.delitem(sys.modules, "dkae.clustering", raising=False)
        monkeypatch.delitem(vars(dkae), "clustering", raising=False)

    def import_it():
        import dkae.clustering

        return dkae.clustering

    def import_from_it():
        from dkae.clustering import spectral_clustering  # noqa: F401

        return sys.modules["dkae.clustering"]

    def import_from_the_package():
        from dkae import clustering

        return clustering

    @pytest.mark.parametrize(
        "how", [import_it, import_from_it, import_from_the_package, lambda: dkae.clustering]
    )
    def test_it_has_moved(self, how):
        module, message = caught_by(how)
        assert message == "dkae.clustering has moved: import spectral_clustering from dkae.spectral"
        assert module.spectral_clustering is dkae.spectral.spectral_clustering


def test_an_unknown_name_is_unknown():
    with pytest.raises(AttributeError, match=r"'dkae.kernels' has no attribute 'prior'"):
        dkae.kernels.prior  # noqa: B018


# --- where warnings point ------------------------------------------------------------------------


def indefinite(A, B):
    return A[:, ::2] @ B[:, ::2].T - A[:, 1::2] @ B[:, 1::2].T


def ways_to_fit(model):
    """Return functions of X that fit a model, as users do it."""
    return {
        "fit": model.fit,
        "fit_transform": model.fit_transform,
        "pipeline": make_pipeline(StandardScaler(), model).fit,
        "pipeline, fit_transform": make_pipeline(FunctionTransformer(), model).fit_transform,
        "search": GridSearchCV(model, {"n_components": [2]}, cv=2, refit=False).fit,
        "search over a pipeline": GridSearchCV(
            make_pipeline(FunctionTransformer(), model),
            {f"{type(model).__name__.lower()}__n_components": [2, 3]},
            cv=2,
            scoring=lambda *_: 0.0,
        ).fit,
    }


WAYS = list(ways_to_fit(DeepKernelizedAutoencoder()))


def assert_points_here(fit, X, message):
    with pytest.warns(Warning, match=message) as caught:
        fit(X)
    assert {warning.filename for warning in caught} == {__file__}
    assert {warning.lineno for warning in caught} == {caught[0].lineno}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kernel": indefinite}, "not positive semi-definite"),
        ({"output_activation": "sigmoid"}, "gives values in"),
        ({"alignment": "logdet"}, "needs Gram matrices of full rank"),
        ({"epoch": 2}, "steps_per_epoch"),
    ],
    ids=["kernel", "network", "measure", "deprecated"],
)
def test_of_the_autoencoder(way, params, message, digits, tiny):
    model = tiny(n_components=2, max_iter=1, **params)
    assert_points_here(ways_to_fit(model)[way], 2 * digits[:60] - 1, message)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "search"])
def test_of_kernel_pca(way, digits):
    model = KernelPCA(2, kernel=indefinite)
    fit = ways_to_fit(model)[way]
    assert_points_here(fit, 2 * digits[:60] - 1, "not positive semi-definite")


def test_where_the_user_is_a_script(tmp_path, digits):
    """One whose name begins as ours does."""
    script = tmp_path / "dkaeish.py"
    script.write_text("def call(fit, X):\n    return fit(X)\n")
    namespace = {"__name__": "dkaeish", "__file__": str(script)}
    exec(compile(script.read_text(), script, "exec"), namespace)
    model = DeepKernelizedAutoencoder(
        2, hidden_layer_sizes=(4,), max_iter=1, decoder_max_iter=0, epoch=2
    )
    with pytest.warns(FutureWarning, match="steps_per_epoch") as caught:
        namespace["call"](model.fit, digits)
    assert (caught[0].filename, caught[0].lineno) == (str(script), 2)
