"""The one container: what is written comes back, and no damage is taken."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys

import pytest
import safetensors
import torch
from safetensors.torch import save as save_tensors

from dkae._support import safe_file
from dkae._support.safe_file import ModelFileError

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip
TENSORS = {
    **{str(dtype): torch.ones(3, 2).to(dtype) for dtype in DTYPES},
    "empty": torch.zeros(0, 7),
    "scalar": torch.tensor(2.5),
    "transposed": torch.arange(6).reshape(2, 3).T,
    'ä"\\ ': torch.arange(3),
}
STATE = {
    "text": 'ä"\\\u2028',
    "numbers": [1, 2**200, 0.1, -1e300],
    "none": None,
    "n": {"a": [True]},
}


@pytest.fixture
def path(tmp_path):
    safe_file.write(tmp_path / "f", STATE, TENSORS)
    return tmp_path / "f"


def test_what_is_written_comes_back(path):
    content = safe_file.read(path)
    assert content.state == STATE
    assert content.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert content.tensors[name].dtype is tensor.dtype
        assert torch.equal(content.tensors[name], tensor)
        assert content.tensors[name].data_ptr() % 64 == 0 or not tensor.numel()


def test_the_library_safetensors_reads_it(path):
    with safetensors.safe_open(path, "pt") as file:
        assert set(file.keys()) == TENSORS.keys()
        assert list(file.metadata()) == ["dkae"]


def test_equal_content_gives_equal_bytes(path):
    """Also in a process where sets have another order, and with tensors in another one."""
    code = (
        "import sys; from tests.faults.test_safe_file import *\n"
        "turned = dict(reversed(TENSORS.items()))\n"
        "sys.stdout.write(hashlib.sha256(safe_file.to_bytes(STATE, turned)).hexdigest())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == hashlib.sha256(path.read_bytes()).hexdigest()


def test_shared_memory_is_written_twice(tmp_path):
    both = torch.ones(3)
    safe_file.write(tmp_path / "f", {}, {"a": both, "b": both})
    assert safe_file.read(tmp_path / "f").tensors.keys() == {"a", "b"}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_defaults_of_torch_make_no_difference(dtype, path, monkeypatch):
    before = path.read_bytes()
    try:
        torch.set_default_dtype(dtype)
        with torch.autocast("cpu"), torch.device("meta"):
            tensors = safe_file.read(path).tensors
            assert safe_file.to_bytes(STATE, TENSORS) == before
    finally:
        torch.set_default_dtype(torch.float32)
    assert tensors["scalar"].device.type == "cpu"
    assert tensors["scalar"].dtype is torch.float32


def test_every_bit_is_under_the_checksum(path):
    content, rng = path.read_bytes(), random.Random(0)
    for i in [*range(200), *(rng.randrange(len(content)) for _ in range(500))]:
        broken = bytearray(content)
        broken[i] ^= 1 << rng.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(ModelFileError, match=r"damaged"):
            safe_file.read(path)


def test_a_cut_file_or_one_with_more_is_refused(path):
    content = path.read_bytes()
    for broken in (content[:-1], content[:100], content[:7], b"", content + b"\0"):
        path.write_bytes(broken)
        with pytest.raises(ModelFileError, match=r"f is (damaged|not a dkae file)"):
            safe_file.read(path)


def signed(text: str, tensors=None) -> bytes:
    """Return a file with this text for its JSON, and a right checksum."""
    content = bytearray(save_tensors(tensors or {}, {"dkae": f"{'0' * 64} {text}"}))
    return resigned(content)


def resigned(content: bytearray) -> bytes:
    content[safe_file._DIGITS] = b"0" * 64
    content[safe_file._DIGITS] = hashlib.sha256(content).hexdigest().encode()
    return bytes(content)


def header(text: str, payload: bytes = b"") -> bytes:
    """Return a file with this for the rest of its header, and a right checksum."""
    begin = f'{{"__metadata__":{{"dkae":"{"0" * 64} {{}}"}}{text}'.encode()
    return resigned(bytearray(len(begin).to_bytes(8, "little") + begin + payload))


WITH_HARM = {
    "no JSON": signed("{"),
    "NaN": signed("[NaN]"),
    "Infinity": signed("[-Infinity]"),
    "1e999": signed("[1e999]"),
    "a name twice": signed('{"a":1,"a":2}'),
    "100,000 levels": signed("[" * 100_000 + "]" * 100_000),
    "a million digits": signed("1" * 1_000_000),
    "no end": header(""),
    "a tensor beyond the file": header(',"a":{"dtype":"F32","shape":[9],"data_offsets":[0,36]}}'),
    "a tensor of 2^60": header(
        ',"a":{"dtype":"F32","shape":[1152921504606846976],"data_offsets":[0,4]}}', b"1234"
    ),
    "two tensors in one place": header(
        ',"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},'
        '"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}',
        b"1234",
    ),
    "an unknown type": header(',"a":{"dtype":"X","shape":[1],"data_offsets":[0,1]}}', b"1"),
    "a negative size": header(',"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}', b"1"),
    "bytes that no tensor has": header("}", b"1234"),
    "another kind of file": b"PK\x03\x04" + bytes(500),
    "a pickle": b"\x80\x02}q\x00.",
    "a long header": (2**40).to_bytes(8, "little") + header("}")[8:],
}


@pytest.mark.parametrize("content", WITH_HARM.values(), ids=WITH_HARM)
def test_a_file_that_means_harm_is_refused(content, tmp_path):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"f is ") as error:
        safe_file.read(tmp_path / "f")
    assert len(str(error.value)) < 500


def test_a_description_that_is_too_long_is_refused_when_it_is_written(monkeypatch):
    monkeypatch.setattr(safe_file, "MAX_HEADER_BYTES", 1000)
    with pytest.raises(ValueError, match=r"description of the model takes .* shorten history_"):
        safe_file.to_bytes(["x"] * 1000, {})
