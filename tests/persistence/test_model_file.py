"""The file itself, and that nothing but a model is loaded."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.decomposition import PCA

import dkae
from dkae import load, save
from dkae._support import container
from dkae.persistence import ModelFileError, info
from tests.persistence.helpers import (
    UNSAVED_KINDS,
    X,
    fit_kind,
    left_out_is_fine,
    make,
    read,
    rewrite,
    state_of,
)

# --- the file ------------------------------------------------------------------------------------


@left_out_is_fine
@pytest.mark.parametrize("kind", ["name", "Gaussian process", *UNSAVED_KINDS])
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
        def change(described):
            del described["params"]["decoder_max_iter"]

        shutil.copy(FILES / "0.2.0.safetensors", tmp_path / "m")
        rewrite(tmp_path / "m", change=change)
        assert load(tmp_path / "m").decoder_max_iter == 0


class TestThisFormat:
    """Files of the format "dkae model 3" when it was new, and what they made of 30 rows then."""

    @pytest.mark.parametrize("name", ["kernel_layer", "stack"])
    def test_later_versions_read_it(self, name):
        loaded, expected = load(FILES / f"3-{name}.safetensors"), np.load(FILES / f"3-{name}.npz")
        np.testing.assert_allclose(loaded.transform(X), expected["codes"], atol=1e-6)
        rows = loaded.inverse_transform(expected["codes"])
        np.testing.assert_allclose(rows, expected["rows"], atol=1e-6)
        assert loaded.score(X) == pytest.approx(float(expected["score"]), abs=1e-6)
        assert info(FILES / f"3-{name}.safetensors")["format"] == "dkae model 3"


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
    def fail(*args):
        raise error

    before = path.read_bytes()
    monkeypatch.setattr(container, "_put_tensor", fail)
    with pytest.raises(error):
        save(model, path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_missing_folder_is_named(model, tmp_path):
    with pytest.raises(ValueError, match=r"path=.*nowhere.m lies in a folder that does not exist"):
        save(model, tmp_path / "nowhere/m")


def test_unfitted_model_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted: call fit before save"):
        save(make(), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_another_estimator_is_refused(tmp_path):
    message = "model is a PCA, and only DeepKernelizedAutoencoder, KernelPCA, .*: pass one of them"
    with pytest.raises(ValueError, match=message):
        save(PCA().fit(X), tmp_path / "m")


# --- what is no model ----------------------------------------------------------------------------


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no model file .*nothing"):
        load(tmp_path / "nothing")


def test_unknown_device_is_refused(path):
    with pytest.raises(ValueError, match=r"device='cpuu'.*did you mean 'cpu'"):
        load(path, device="cpuu")


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"\x00" * 100, b"{}" * 50], ids=lambda content: content[:5]
)
def test_other_file_is_refused(content, tmp_path):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelFileError, match="m is not a dkae file, or is damaged"):
        load(tmp_path / "m")


def test_pickle_is_refused(model, tmp_path):
    (tmp_path / "m").write_bytes(pickle.dumps(model))
    with pytest.raises(ModelFileError, match="m is not a dkae file, or is damaged"):
        load(tmp_path / "m")


@pytest.mark.parametrize("n_bytes", [4, 100, -1])
def test_truncated_file_is_refused(n_bytes, path):
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(ModelFileError, match="is damaged"):
        load(path)


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}, {"format": "dkae model x"}])
def test_safetensors_file_of_something_else_is_refused(metadata, tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "m", metadata=metadata)
    with pytest.raises(ModelFileError, match="expected 'dkae model 3'"):
        load(tmp_path / "m")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"format": "dkae model 4", "dkae": "9.0"}, "of dkae 9.0, .*: install a newer dkae"),
        ({"format": "dkae model 2"}, "was never released: fit the model again"),
        ({"format": "dkae model 03"}, "was never released"),
        ({"format": "dkae model ٣"}, "was never released"),
        ({"format": "dkae model " + "9" * 5000}, "expected 'dkae model 3'"),
        ({"format": "dkae model 1"}, "damaged or not from dkae"),
    ],
    ids=range(6),
)
def test_another_format_is_refused(metadata, message, path):
    rewrite(path, metadata=metadata)
    with pytest.raises(ModelFileError, match=message):
        load(path)


def test_a_file_without_its_checksum_is_refused(path):
    metadata, tensors = read(path)
    save_file(tensors, path, metadata)
    with pytest.raises(ModelFileError, match="its checksum is missing"):
        load(path)


def test_every_missing_tensor_is_noticed(path):
    tensors = read(path)[1]
    for name in tensors:
        rewrite(path, tensors={k: v for k, v in tensors.items() if k != name})
        with pytest.raises(ModelFileError, match=rf"damaged[\s\S]*{name}"):
            load(path)


def test_a_tensor_too_many_is_refused(path):
    rewrite(path, tensors=read(path)[1] | {"surplus": torch.ones(1)})
    with pytest.raises(ModelFileError, match=r"damaged[\s\S]*surplus"):
        load(path)


def test_a_tensor_of_another_shape_is_refused(path):
    bias = "model.learnt.network_.weights._layers.0.bias"
    rewrite(path, tensors=read(path)[1] | {bias: torch.ones(99)})
    with pytest.raises(ModelFileError, match=r"damaged[\s\S]*_layers\.0\.bias"):
        load(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", "3", "NaN", '{"dict": {}}'])
def test_damaged_description_is_refused(text, path):
    rewrite(path, metadata={"state": text})
    with pytest.raises(ModelFileError, match="is damaged or not from dkae"):
        load(path)


def test_unknown_activation_is_refused(path):
    def change(described):
        layer = state_of(described, "learnt", "network_")["layers"][0]["dict"]
        layer["activation"] = "of a later version"

    rewrite(path, change=change)
    with pytest.raises(ModelFileError, match="of a later version"):
        load(path)


# --- what a file says of itself ------------------------------------------------------------------


def test_a_file_says_what_it_is(model, path):
    said = info(path)
    assert (said["format"], said["kind"]) == ("dkae model 3", "DeepKernelizedAutoencoder")
    assert (said["dkae"], len(said["checksum"])) == (dkae.__version__, 64)
    assert state_of(said["state"], "params")["n_components"] == 3
    weight = "model.learnt.network_.weights._layers.0.weight"
    assert said["tensors"][weight] == ("F32", tuple(model.network_.layers[0].weight.shape))


def test_a_file_of_0_2_says_what_it_is():
    said = info(FILES / "0.2.0.safetensors")
    assert (said["format"], said["checksum"]) == ("dkae model 1", None)
    assert said["kind"] == "DeepKernelizedAutoencoder"


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "NaN"], ids=range(4))
def test_a_damaged_file_says_nothing(text, path):
    rewrite(path, metadata={"state": text})
    with pytest.raises(ModelFileError, match="damaged: its description is not JSON"):
        info(path)


@pytest.mark.parametrize("read_from", [load, info])
@pytest.mark.skipif(os.name != "posix", reason="of POSIX")
def test_what_is_no_file_is_refused_at_once(read_from, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "nowhere").symlink_to(tmp_path / "nothing")
    for name in (".", "pipe", "loop", "nowhere"):
        with pytest.raises(ModelFileError, match="is no ordinary file"):
            read_from(tmp_path / name)
    with pytest.raises(ModelFileError, match="is no ordinary file"):
        read_from("/dev/zero")
