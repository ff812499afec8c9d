"""`dkae info` shows what a file holds, and a file cannot take over the terminal."""

import pytest

from tests.cli.helpers import fail, succeed


def test_it_shows_the_parameters_of_model_and_kernel(folder):
    printed = succeed("info", folder / "named.safetensors").stdout
    assert "DeepKernelizedAutoencoder, written by dkae" in printed
    assert "\n    alignment_weight         0.1\n" in printed
    assert "\n  PairwiseKernel\n" in printed
    assert len(printed.split("sha256")[1].split()[0]) == 64


def test_the_checksum_is_compared(folder, tmp_path):
    content = bytearray((folder / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (tmp_path / "m").write_bytes(content)
    assert "is damaged" in fail("info", tmp_path / "m")


@pytest.mark.parametrize(
    "state",
    [
        [],
        3,
        {"object": [1]},
        {"object": ["a", [1]]},
        {"object": ["\x1b[2J", {"\x1b[2J": "\x1b[2J" * 99, "b": {"tuple": [1, "\r"]}, "c": [[]]}]},
    ],
    ids=str,
)
def test_text_of_a_file_cannot_move_the_cursor(state, tmp_path, monkeypatch):
    found = {
        "format": "dkae model 1",
        "dkae": "1\n2",
        "kind": "a\r\nok: \x1b]0;owned\x07",
        "checksum": None,
        "tensors": {"w": ("float32", (2, 3))},
        "state": state,
    }
    monkeypatch.setattr("dkae.persistence.info", lambda path: found)
    printed = succeed("info", tmp_path / "m").stdout
    assert "tensors    1, of 6 numbers" in printed
    assert {c for c in printed if not c.isprintable()} <= {"\n"}
    assert max(map(len, printed.splitlines()[3:]), default=0) < 100
