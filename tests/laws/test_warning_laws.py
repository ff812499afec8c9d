"""Warnings point at the line of the user who called, however the map is fitted."""

from __future__ import annotations

import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from tests.laws.maps import X, every_map, make

pytestmark = pytest.mark.filterwarnings("ignore:the (codes|reconstructions) are")


def indefinite(A, B):
    return A[:, ::2] @ B[:, ::2].T - A[:, 1::2] @ B[:, 1::2].T


def ways_to_fit(model):
    """Return functions of X that fit a model, as users do it."""
    pipeline = make_pipeline(FunctionTransformer(), model)
    grid = {f"{type(model).__name__.lower()}__n_components": [2, 3]}
    return {
        "fit": model.fit,
        "fit_transform": model.fit_transform,
        "pipeline": make_pipeline(StandardScaler(), model).fit,
        "pipeline, fit_transform": pipeline.fit_transform,
        "search": GridSearchCV(pipeline, grid, cv=2, scoring=lambda *_: 0.0).fit,
    }


WAYS = list(ways_to_fit(make("autoencoder")))


def assert_points_here(fit, message, file=__file__):
    with pytest.warns(Warning, match=message) as caught:
        fit(X)
    found = {(w.filename, w.lineno) for w in caught if "the codes are" not in str(w.message)}
    assert {filename for filename, _ in found} == {file}
    assert len(found) == 1


@pytest.mark.parametrize("way", WAYS)
@every_map
def test_of_a_kernel(name, way):
    fit = ways_to_fit(make(name, kernel=indefinite))[way]
    assert_points_here(fit, "not positive semi-definite")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"network__output_activation": "sigmoid"}, "gives values in"),
        ({"alignment": "logdet"}, "needs Gram matrices of full rank"),
    ],
)
def test_of_networks_and_measures(way, params, message):
    assert_points_here(ways_to_fit(make("autoencoder", **params))[way], message)


def test_where_the_user_is_a_script_whose_name_begins_as_ours(tmp_path):
    script = tmp_path / "dkaeish.py"
    script.write_text("def call(fit, X):\n    return fit(X)\n")
    namespace = {"__name__": "dkaeish", "__file__": str(script)}
    exec(compile(script.read_text(), script, "exec"), namespace)
    fit = make("autoencoder", kernel=indefinite).fit
    assert_points_here(lambda X: namespace["call"](fit, X), "not positive", str(script))
