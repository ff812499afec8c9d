"""A pipeline of scalers and a model is one safe file."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from dkae import load, save
from dkae.persistence import ModelFileError
from tests.persistence.helpers import X, make, rewrite

ROWS = (X * np.float32([1, 10, 100, 1e-3, 7]) + 5).astype(np.float32)


@pytest.fixture(scope="module")
def pipeline():
    return make_pipeline(StandardScaler(), make()).fit(ROWS)


@pytest.fixture
def path(pipeline, tmp_path):
    save(pipeline, tmp_path / "m.safetensors")
    return tmp_path / "m.safetensors"


def test_the_maps_are_the_same_to_the_bit(pipeline, path):
    loaded = load(path)
    assert isinstance(loaded, Pipeline)
    assert [name for name, _ in loaded.steps] == [name for name, _ in pipeline.steps]
    codes = pipeline.transform(ROWS)
    np.testing.assert_array_equal(loaded.transform(ROWS), codes)
    np.testing.assert_array_equal(
        loaded.inverse_transform(codes), pipeline.inverse_transform(codes)
    )
    assert loaded.score(ROWS) == pipeline.score(ROWS)


@pytest.mark.parametrize("params", [{}, {"with_mean": False}, {"with_std": False}], ids=str)
@pytest.mark.filterwarnings("ignore:feature .* of the squared distances")
def test_all_that_the_scaler_has_learnt_survives(params, tmp_path):
    fitted = make_pipeline(StandardScaler(**params), make()).fit(ROWS)
    save(fitted, tmp_path / "m.safetensors")
    scaler = load(tmp_path / "m.safetensors")[0]
    assert scaler.get_params() == fitted[0].get_params()
    for name, value in vars(fitted[0]).items():
        np.testing.assert_array_equal(getattr(scaler, name), value)


def test_feature_names_survive(tmp_path):
    frame = pd.DataFrame(ROWS, columns=list("abcde"))
    save(make_pipeline(StandardScaler(), make()).fit(frame), tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    assert list(loaded.feature_names_in_) == list("abcde")
    loaded.transform(frame)  # warns of other names, and warnings are errors here


@pytest.mark.parametrize(
    "steps",
    [
        (MinMaxScaler(),),
        (StandardScaler(), MinMaxScaler()),
        (RobustScaler(), MaxAbsScaler()),
        (Normalizer(),),
        (PCA(4, random_state=0),),
        (),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:feature .* of the squared distances")
def test_pipelines_of_more_scalers(steps, tmp_path):
    fitted = make_pipeline(*steps, make()).fit(ROWS)
    save(fitted, tmp_path / "m.safetensors")
    loaded = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.transform(ROWS), fitted.transform(ROWS))
    assert loaded.score(ROWS) == fitted.score(ROWS)


@pytest.mark.parametrize(
    "steps",
    [
        (FunctionTransformer(np.sqrt),),
        (PolynomialFeatures(2),),
        (type("Own", (StandardScaler,), {})(),),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:feature .* of the squared distances")
def test_other_pipelines_are_refused(steps, tmp_path):
    fitted = make_pipeline(*steps, make()).fit(ROWS)
    name = type(steps[0]).__name__
    with pytest.raises(ValueError, match=f"the pipeline cannot be written, because .* a {name}"):
        save(fitted, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("model", [StandardScaler(), make_pipeline(StandardScaler())], ids=str)
def test_a_pipeline_without_a_model_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="model is a StandardScaler, and only Deep"):
        save(model.fit(ROWS), tmp_path / "m.safetensors")


def test_a_scaler_that_is_not_fitted_is_refused(pipeline, tmp_path):
    unfitted = make_pipeline(StandardScaler(), pipeline[1])
    with pytest.raises(ValueError, match="StandardScaler is not fitted: call fit before save"):
        save(unfitted, tmp_path / "m.safetensors")


def set_learnt(described, **values):
    scaler = described["dict"]["model"]["object"][1]["steps"][0]["tuple"][1]["object"][1]
    scaler["learnt"]["dict"] |= values


@pytest.mark.parametrize(
    "values",
    [
        {"__class__": 1},
        {"fit": 1},
        {"nonsense": 1},
        {"n_features_in_": 4},
        {"n_features_in_": "5"},
        {"n_features_in_": 10**9},
        {"mean_": 1},
        {"mean_": None, "scale_": "x"},
        {"scale_": [0, 0, 0, 0, 0]},
    ],
    ids=str,
)
def test_a_damaged_scaler_is_refused(values, path):
    rewrite(path, change=lambda described: set_learnt(described, **values))
    with pytest.raises(ModelFileError, match="damaged or not from dkae"):
        load(path)


@pytest.mark.parametrize("steps", [[], ["one"], [{"tuple": ["a"]}], {"dict": {}}], ids=str)
def test_steps_that_are_none_are_refused(steps, path):
    def change(described):
        described["dict"]["model"]["object"][1]["steps"] = steps

    tensors = {}
    rewrite(path, change=change, tensors=tensors)
    with pytest.raises(ModelFileError, match="damaged or not from dkae"):
        load(path)
