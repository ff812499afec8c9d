"""The file itself, and that nothing but a model is loaded."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn.pipeline import make_pipeline

import dkae.persistence
from dkae import load, save
from dkae.persistence import ModelFileError
from tests.persistence.helpers import (
    UNSAVED_KINDS,
    X,
    fit_kind,
    make,
    rewrite,
)

# --- the file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["name", *UNSAVED_KINDS])
def test_file_does_not_grow_with_the_rows(kind, tmp_path):
    for name, n_rows in {"few": 20, "many": 500}.items():
        rows = np.random.default_rng(0).random((n_rows, 5), dtype=np.float32)
        save(fit_kind(kind, rows), tmp_path / name)
    few, many = ((tmp_path / name).stat().st_size for name in ("few", "many"))
    assert abs(many - few) < 100  # the losses of the history may take more or fewer digits


def test_tied_weights_are_stored_once(tmp_path):
    save(make(decoder_max_iter=0, tied_weights=True).fit(X), tmp_path / "tied")
    save(make(decoder_max_iter=0, tied_weights=False).fit(X), tmp_path / "untied")
    n_tied, n_untied = (
        sum(tensor.numel() for tensor in load_file(tmp_path / name).values())
        for name in ("tied", "untied")
    )
    assert n_untied - n_tied == 5 * 6 + 6 * 3


FILES = Path(__file__).parent / "files"


class TestOlderVersions:
    """A file that 0.2.0 wrote, and what 0.2.0 made of 30 rows."""

    def test_it_maps_as_it_did(self):
        loaded, expected = load(FILES / "0.2.0.safetensors"), np.load(FILES / "0.2.0.npz")
        np.testing.assert_allclose(loaded.transform(X), expected["codes"], atol=1e-6)
        rows = loaded.inverse_transform(expected["codes"])
        np.testing.assert_allclose(rows, expected["rows"], atol=1e-6)
        assert loaded.score(X) == pytest.approx(float(expected["score"]), abs=1e-6)

    def test_fit_builds_the_network_of_that_version(self):
        loaded = load(FILES / "0.2.0.safetensors")
        before = loaded.transform(X)
        again = loaded.fit(X)
        assert (again.scaling_, again.network_.layers[0].norm) == (None, False)
        np.testing.assert_allclose(again.transform(X), before, atol=1e-4)

    def test_one_from_before_the_decoder_learnt_alone_says_so(self, tmp_path):
        shutil.copy(FILES / "0.2.0.safetensors", tmp_path / "m")
        with safe_open(tmp_path / "m", "pt") as file:
            params = json.loads(file.metadata()["model"])["params"]
        del params["decoder_max_iter"]
        rewrite(tmp_path / "m", described={"params": params})
        assert load(tmp_path / "m").decoder_max_iter == 0


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX")
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_file_mode_honours_the_umask(umask, mode, model, tmp_path):
    before = os.umask(umask)
    try:
        save(model, tmp_path / "m")
        after = os.umask(umask)
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == mode
    assert after == umask


def test_an_existing_file_is_replaced(model, path):
    save(make(n_components=2).fit(X), path)
    assert load(path).n_components == 2
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, RuntimeError])
def test_existing_file_survives_a_failed_write(error, model, path, monkeypatch):
    def write_half(weights, filename, metadata):
        filename.write_bytes(b"half")
        raise error

    before = path.read_bytes()
    monkeypatch.setattr(dkae.persistence, "save_file", write_half)
    with pytest.raises(error):
        save(model, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_first_write_leaves_nothing(model, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr(dkae.persistence, "save_file", fail)
    with pytest.raises(OSError, match="no space left"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_missing_folder_is_named(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        save(model, tmp_path / "nowhere/m")


def test_unfitted_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted: call fit before save"):
        save(make(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_another_estimator_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match=r"model is a Pipeline, and only a .*: pass the one in it"):
        save(make_pipeline(model), tmp_path / "m")


# --- what is no model ----------------------------------------------------------------------------


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*nothing"):
        load(tmp_path / "nothing")


def test_unknown_device_is_refused(path):
    with pytest.raises(ValueError, match=r"device='cpuu'.*did you mean 'cpu'"):
        load(path, device="cpuu")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x00" * 100, b"{}" * 50])
def test_other_file_is_refused(content, tmp_path):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match="m is not a dkae model file"):
        load(tmp_path / "m")


def test_pickle_is_refused(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "m")
    with pytest.raises(ModelFileError, match="m is not a dkae model file"):
        load(tmp_path / "m")


@pytest.mark.parametrize("n_bytes", [4, 100, -1])
def test_truncated_file_is_refused(n_bytes, path):
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ModelFileError, match="is not a dkae model file"):
        load(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "dkae model 3"}])
def test_safetensors_file_of_something_else_is_refused(metadata, tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "m", metadata=metadata)
    with pytest.raises(ModelFileError, match="expected 'dkae model 1' or 'dkae model 2'"):
        load(tmp_path / "m")


def test_every_missing_tensor_is_noticed(path):
    weights = load_file(path)
    for name in weights:
        rewrite(path, weights={k: v for k, v in weights.items() if k != name})
        with pytest.raises(ModelFileError, match=rf"damaged[\s\S]*{name}"):
            load(path)


def test_a_tensor_too_many_is_refused(path):
    rewrite(path, weights=load_file(path) | {"surplus": torch.ones(1)})
    with pytest.raises(ModelFileError, match=r"damaged[\s\S]*surplus"):
        load(path)


def test_a_tensor_of_another_shape_is_refused(path):
    rewrite(path, weights=load_file(path) | {"_layers.0.bias": torch.ones(99)})
    with pytest.raises(ModelFileError, match=r"damaged[\s\S]*_layers\.0\.bias"):
        load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", "3"])
def test_damaged_description_is_refused(text, path):
    rewrite(path, header={"model": text})
    with pytest.raises(ModelFileError, match="is damaged or from another version"):
        load(path)


LAYER = {"n_in": 5, "n_out": 3, "activation": "relu", "output_activation": "relu", "tied": True}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("params", {"nonsense": 1}),
        ("params", []),
        ("attributes", {}),
        ("attributes", None),
        ("layers", []),
        ("layers", [{}]),
        ("layers", [LAYER | {"n_in": -1}]),
        ("kernel", {"nonsense": 1}),
        ("kernel", {}),
    ],
)
def test_wrong_part_of_the_description_is_refused(part, value, path):
    rewrite(path, described={part: value})
    with pytest.raises(ModelFileError, match="is damaged or from another version"):
        load(path)


def test_unknown_activation_is_refused(path):
    with safe_open(path, "pt") as file:
        layers = json.loads(file.metadata()["model"])["layers"]
    layers[0]["activation"] = "of a later version"
    rewrite(path, described={"layers": layers})
    with pytest.raises(ModelFileError, match="of a later version"):
        load(path)


def test_network_without_layers_is_refused(path):
    rewrite(path, weights={}, described={"layers": []})
    with pytest.raises(ModelFileError, match="is damaged or from another version"):
        load(path)
