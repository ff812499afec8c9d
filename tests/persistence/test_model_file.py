"""A fitted model and its file: paths, formats, pipelines, and what `info` tells."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from dkae import load, save
from dkae._support import safe_file
from dkae.persistence import ModelFileError, info
from tests.persistence.helpers import X, assert_same_maps, make, rewrite, save_and_load


class Subclass(StandardScaler):
    """It may compute something else."""


@pytest.fixture(scope="module")
def model():
    return make().fit(X)


@pytest.fixture
def path(model, tmp_path):
    save(model, tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


def test_a_file_does_not_grow_with_the_rows(tmp_path):
    sizes = set()
    for n in (20, 30):
        save(make().fit(X[:n]), tmp_path / "m")
        sizes.add((tmp_path / "m").stat().st_size // 100)
    assert len(sizes) == 1


@pytest.mark.parametrize(
    "use", [save, lambda model, path: load(path), lambda model, path: info(path)]
)
@pytest.mark.parametrize("path", [None, 3, b"x"])
def test_a_path_that_is_none(use, path, model):
    """F13."""
    with pytest.raises(ValueError, match=r"path=.* must be the path of a file"):
        use(model, path)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make(), r"model is not fitted \(DeepKernel.*\): call fit"),
        (make_pipeline(StandardScaler(), make().fit(X)), r"model is not fitted \(StandardScaler\)"),
        (LinearRegression(), "model is a LinearRegression, and only DeepKernelizedAutoencoder"),
        (
            make_pipeline(FunctionTransformer(np.sqrt).fit(X), make().fit(X)),
            r"cannot be written \(.*FunctionTransformer.*\): use what dkae.persistence.schemas",
        ),
        (make_pipeline(Subclass().fit(X), make().fit(X)), "it is a Subclass"),
        (make_pipeline(StandardScaler().fit(X)), "model is a StandardScaler"),
    ],
)
def test_what_has_no_file_is_refused(model, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_paths_are_named(model, tmp_path):
    with pytest.raises(ValueError, match=r"path=.*nowhere.m lies in a folder that does not exist"):
        save(model, tmp_path / "nowhere" / "m")
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*nothing"):
        load(tmp_path / "nothing")


def test_an_unknown_device_is_refused(path):
    with pytest.raises(ValueError, match=r"device='cpuu'"):
        load(path, device="cpuu")


@pytest.mark.parametrize("read", [load, info])
@pytest.mark.parametrize("text", ["dkae model 2", None])
def test_another_format_is_refused(read, text, path):
    rewrite(path, lambda content: content.state.update(format=text))
    with pytest.raises(
        ModelFileError, match=r"has the format .* this dkae .* reads 'dkae model 1'"
    ):
        read(path)


def test_info_tells_what_a_file_is(model, path):
    found = info(path)
    assert found["kind"] == "DeepKernelizedAutoencoder"
    assert found["format"] == "dkae model 1"
    assert found["tensors"]["kernel_values"] == ("float64", (8, 8))
    assert found["state"]["object"][1]["max_iter"] == 1
    content = path.read_bytes().replace(found["checksum"].encode(), b"0" * 64)
    assert hashlib.sha256(content).hexdigest() == found["checksum"]


def test_info_prints_no_checksum_that_it_has_not_verified(path):
    """F4: an author may write any, but then no other byte of the file fits."""
    content = path.read_bytes().replace(info(path)["checksum"].encode(), b"a" * 64)
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="does not have the checksum that it states"):
        info(path)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_defaults_of_torch_make_no_difference(dtype, model, path):
    """F11: a good file was called damaged."""
    before = torch.get_rng_state()
    try:
        torch.set_default_dtype(dtype)
        with torch.autocast("cpu"):
            loaded = load(path)
            assert torch.get_default_dtype() is dtype
            save(loaded, path.with_name("again"))
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(torch.get_rng_state(), before)
    assert path.with_name("again").read_bytes() == path.read_bytes()
    assert_same_maps(loaded, model)


def test_every_tensor_that_is_missing_is_noticed(path):
    content = path.read_bytes()
    for name in safe_file.read(path).tensors:
        path.write_bytes(content)
        rewrite(path, lambda content, name=name: content.tensors.pop(name))
        with pytest.raises(ModelFileError, match=r"is missing, or stands in two places"):
            load(path)


def test_names_of_features_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcde"))
    loaded = save_and_load(make().fit(frame), tmp_path)
    assert loaded.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(frame.rename(columns={"a": "z"}))


def test_a_scaler_never_overwrites_the_rows_of_its_caller(tmp_path):
    """F10: whether it may is for its caller to choose, not for a file."""
    model = make_pipeline(StandardScaler(copy=False), make()).fit(X.copy())
    rows = X.copy()
    save_and_load(model, tmp_path).transform(rows)
    np.testing.assert_array_equal(rows, X)
