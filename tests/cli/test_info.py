"""`dkae info`, and files of models that no command uses."""

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder, save
from dkae._support.container import write_container
from dkae.spectral import KernelPCA
from tests.cli.helpers import fail, succeed

X = np.random.default_rng(0).random((40, 5), dtype=np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("info") / "m.safetensors"
    model = DeepKernelizedAutoencoder(3, kernel="pck", decoder_max_iter=1, random_state=0)
    model.set_params(kernel_params={"max_components": 3, "n_initializations": 2})
    save(model.fit(X), path)
    return path


def test_it_shows_model_kernel_and_size(model):
    printed = succeed("info", model).stdout
    assert "DeepKernelizedAutoencoder, written by dkae" in printed
    assert "ProbabilisticClusterKernel" in printed
    assert "n_mixtures_" in printed
    assert "alignment_weight         0.1" in printed
    assert len(printed.split("sha256")[1].split()[0]) == 64


def test_the_checksum_is_compared(model, tmp_path):
    content = bytearray(model.read_bytes())
    content[-1] ^= 1
    (tmp_path / "m").write_bytes(content)
    assert "is damaged: its content does not have the checksum" in fail("info", tmp_path / "m")


@pytest.mark.parametrize(
    "state",
    ["[]", "3", '{"object": [1]}', '{"object": ["a", [1]]}', '{"dict": {"a": {"dict": 3}}}'],
)
def test_a_description_that_makes_no_sense_is_shown_as_far_as_it_goes(state, tmp_path):
    metadata = {"format": "dkae model 3", "kind": "a\r\nok: \x1b]0;owned\x07", "state": state}
    write_container(tmp_path / "m", metadata, {})
    printed = succeed("info", tmp_path / "m").stdout
    assert "\x1b" not in printed
    assert len(printed.splitlines()) == 3


def test_a_hostile_name_cannot_move_the_cursor(tmp_path):
    frame = DeepKernelizedAutoencoder(3, network="stacked", max_iter=1, hidden_layer_sizes=(4,))
    frame.fit(X)
    frame.kernel_params = {"\x1b[2J": "\x1b[2J"}
    save(frame, tmp_path / "m")
    assert "\x1b" not in succeed("info", tmp_path / "m").stdout


def test_what_is_no_model_is_one_line(tmp_path):
    (tmp_path / "m").write_bytes(b"hello")
    assert "is not a dkae file, or is damaged" in fail("info", tmp_path / "m")
    assert "there is no model file" in fail("info", tmp_path / "none")


def test_another_map_is_named(tmp_path):
    save(KernelPCA(2).fit(X), tmp_path / "m.safetensors")
    assert "KernelPCA, written by dkae" in succeed("info", tmp_path / "m.safetensors").stdout
