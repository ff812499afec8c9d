"""A pipeline of a StandardScaler and a model is one safe file."""

import json

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from dkae import load, persistence, save
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


def test_versions_before_pipelines_refuse_the_file(path):
    """They know one format only, and would else leave the scaler out."""
    with safe_open(path, "pt") as file:
        assert file.metadata()["format"] == persistence.PIPELINE_FORMAT != persistence.FORMAT


@pytest.mark.parametrize(
    "steps",
    [
        (MinMaxScaler(),),
        (StandardScaler(), MinMaxScaler()),
        (type("Own", (StandardScaler,), {})(),),
    ],
    ids=str,
)
def test_other_pipelines_are_refused(steps, tmp_path):
    fitted = make_pipeline(*steps, make()).fit(ROWS)
    with pytest.raises(ValueError, match="alone or after a StandardScaler, has a model file"):
        save(fitted, tmp_path / "m.safetensors")


def test_a_scaler_that_is_not_fitted_is_refused(pipeline, tmp_path):
    unfitted = make_pipeline(StandardScaler(), pipeline[1])
    with pytest.raises(ValueError, match="StandardScaler is not fitted: call fit before save"):
        save(unfitted, tmp_path / "m.safetensors")


@pytest.mark.parametrize(
    "change",
    [
        {"attributes": {"__class__": 1}},
        {"steps": ["one"]},
        {"params": {"nonsense": 1}},
        {"attributes": {"n_features_in_": 4}},
    ],
    ids=str,
)
def test_a_damaged_scaler_is_refused(change, path):
    with safe_open(path, "pt") as file:
        described = json.loads(file.metadata()["pipeline"])
    rewrite(path, header={"pipeline": json.dumps(described | change)})
    with pytest.raises(ModelFileError, match="damaged or from another version"):
        load(path)
