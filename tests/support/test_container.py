"""One file for tensors and text: it comes back as it was, or not at all."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from dkae._support import container
from dkae._support.container import (
    ModelFileError,
    parse_json,
    read_container,
    read_metadata,
    write_container,
)

DTYPES = list(container._DTYPES.values())
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


@st.composite
def a_tensor(draw):
    """Return a tensor of any type and shape; its bytes are random, and may be NaN."""
    dtype = draw(st.sampled_from(DTYPES))
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    n = int(torch.tensor(shape).prod()) if shape else 1
    if dtype is torch.bool:
        return (
            torch.tensor(draw(st.lists(st.booleans(), min_size=n, max_size=n))).bool().view(shape)
        )
    data = draw(st.binary(min_size=n * dtype.itemsize, max_size=n * dtype.itemsize))
    if not n:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape)


TENSORS = st.dictionaries(TEXT.filter(lambda name: name != "__metadata__"), a_tensor(), max_size=5)
METADATA = st.dictionaries(TEXT.filter(lambda name: name != "sha256"), TEXT, max_size=4)


def same(a, b):
    """Say whether two tensors have the same type, shape and bytes."""
    as_bytes = [t.contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
    return a.dtype is b.dtype and a.shape == b.shape and torch.equal(*as_bytes)


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    assert all(same(found[name], expected[name]) for name in expected)


# --- laws ----------------------------------------------------------------------------------------


@anywhere
@given(tensors=TENSORS, metadata=METADATA)
def test_what_was_written_is_read(tensors, metadata, tmp_path):
    write_container(tmp_path / "f", metadata, tensors)
    content = read_container(tmp_path / "f")
    assert_same(content.tensors, tensors)
    digest = content.metadata.pop("sha256")
    assert content.metadata == metadata
    # The checksum is what any other program would say that it is.
    raw = (tmp_path / "f").read_bytes().replace(digest.encode(), b"0" * 64, 1)
    assert hashlib.sha256(raw).hexdigest() == digest


@anywhere
@given(tensors=TENSORS, metadata=METADATA)
def test_the_library_of_safetensors_reads_the_same(tensors, metadata, tmp_path):
    write_container(tmp_path / "f", metadata, tensors)
    assert_same(load_file(tmp_path / "f"), tensors)
    with safe_open(tmp_path / "f", "pt") as file:
        assert file.metadata() == read_container(tmp_path / "f").metadata


@anywhere
@given(tensors=TENSORS.filter(bool), metadata=METADATA)  # of nothing it writes what is no JSON
def test_what_the_library_of_safetensors_writes_is_read_if_no_checksum_is_needed(
    tensors, metadata, tmp_path
):
    save_file({name: t.clone() for name, t in tensors.items()}, tmp_path / "f", metadata)
    content = read_container(tmp_path / "f", lambda metadata: False)
    assert_same(content.tensors, tensors)
    assert content.metadata == metadata
    with pytest.raises(ModelFileError, match="its checksum is missing"):
        read_container(tmp_path / "f")


@anywhere
@given(tensors=TENSORS, metadata=METADATA, order=st.randoms(use_true_random=False))
def test_equal_content_has_equal_bytes_in_any_order(tensors, metadata, order, tmp_path):
    write_container(tmp_path / "a", metadata, tensors)
    shuffled = [list(mapping.items()) for mapping in (metadata, tensors)]
    for items in shuffled:
        order.shuffle(items)
    write_container(tmp_path / "b", *map(dict, shuffled))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_description_says_the_same_without_the_tensors(tmp_path):
    write_container(tmp_path / "f", {"a": "b"}, {"x": torch.ones(2, 3), "y": torch.ones(()).long()})
    metadata, shapes = read_metadata(tmp_path / "f")
    assert metadata == read_container(tmp_path / "f").metadata
    assert shapes == {"y": ("I64", ()), "x": ("F32", (2, 3))}


def test_tensors_are_written_as_they_are_seen(tmp_path):
    """A transpose, a part, and one that has a gradient."""
    base = torch.arange(12.0).reshape(3, 4).requires_grad_()
    tensors = {"t": base.T, "part": base[1:, ::2], "base": base}
    write_container(tmp_path / "f", {}, tensors)
    assert_same(read_container(tmp_path / "f").tensors, {k: t.detach() for k, t in tensors.items()})


def test_tensors_can_be_changed_and_do_not_share(tmp_path):
    write_container(tmp_path / "f", {}, {"a": torch.ones(3), "b": torch.ones(3)})
    tensors = read_container(tmp_path / "f").tensors
    tensors["a"].zero_()
    assert tensors["b"].sum() == 3
    assert tensors["a"].untyped_storage().nbytes() == 12  # a pickle holds no more


def test_large_tensors_go_in_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(container, "N_CHUNK_BYTES", 7)
    tensors = {"a": torch.arange(100), "b": torch.rand(11)}
    write_container(tmp_path / "f", {}, tensors)
    assert_same(read_container(tmp_path / "f").tensors, tensors)


# --- damage --------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path):
    """Return bytes of a small file, and a function that says whether other bytes are refused."""
    path = tmp_path / "f"
    write_container(path, {"k": "v"}, {"a": torch.tensor([1.5]), "b": torch.tensor([True])})
    raw = path.read_bytes()

    def is_refused(content):
        path.write_bytes(content)
        try:
            read_container(path)
        except ModelFileError:
            return True
        return content == raw  # a byte may be replaced by itself

    return raw, is_refused


def test_every_flipped_bit_is_noticed(damaged):
    raw, is_refused = damaged
    for i in range(8 * len(raw)):
        changed = bytearray(raw)
        changed[i // 8] ^= 1 << i % 8
        assert is_refused(bytes(changed)), i


def test_every_truncation_is_noticed(damaged):
    raw, is_refused = damaged
    assert all(is_refused(raw[:i]) for i in range(len(raw)))


@pytest.mark.parametrize("new", [b"", b"\0", b" ", b"\xff", b'"'], ids=repr)
def test_every_byte_that_is_replaced_or_removed_is_noticed(damaged, new):
    raw, is_refused = damaged
    assert all(is_refused(raw[:i] + new + raw[i + 1 :]) for i in range(len(raw)))


@pytest.mark.parametrize("new", [None, b"\0", b" ", b"\xff", b"\0" * 8], ids=repr)
def test_every_byte_too_many_is_noticed(damaged, new):
    """None repeats the byte that stands there."""
    raw, is_refused = damaged
    for i in range(len(raw) + 1):
        inserted = raw[i : i + 1] if new is None else new
        assert is_refused(raw[:i] + inserted + raw[i:]), i


def test_exchanged_halves_are_noticed(damaged):
    raw, is_refused = damaged
    assert all(is_refused(raw[i:] + raw[:i]) for i in range(1, len(raw)))


# --- what is not written -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metadata", "tensors", "message"),
    [
        ({"sha256": "0"}, {}, "names that a file needs for itself"),
        ({}, {"__metadata__": torch.ones(1)}, "names that a file needs for itself"),
        ({"a": "\ud800"}, {}, "not Unicode"),
        ({}, {"\udfff": torch.ones(1)}, "not Unicode"),
        ({}, {"z": torch.ones(1, dtype=torch.complex64)}, "tensor 'z' of type torch.complex64"),
        ({"a": "x" * 2**25}, {}, "takes .* bytes, and a file holds at most .*: shorten history_"),
        ({"a": "[" * (2**20 + 1)}, {}, "more than about 1,048,576 values: shorten history_"),
    ],
    ids=range(7),
)
def test_what_could_not_be_read_is_not_written(metadata, tensors, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        write_container(tmp_path / "f", metadata, tensors)
    assert not list(tmp_path.iterdir())


# --- strict JSON ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "a name stands there twice"),
        ('{"b": {"a": 1, "a": 1}}', "a name stands there twice"),
        ("NaN", "NaN is no number of JSON"),
        ("[-Infinity]", "-Infinity is no number of JSON"),
        ("1e999", "no number of JSON"),
        ("1" * 10_000, "digits"),
        ("[" * 100_000, "nested too deep"),
        ("[" * 100_000 + "]" * 100_000, "nested too deep"),
        ("[" + "[]," * 2**20, "more than about 1,048,576 values"),
        (b"\xff\xfe\xfd", "decode"),
        ("", "Expecting value"),
    ],
    ids=range(11),
)
def test_json_is_strict(text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda v: st.lists(v) | st.dictionaries(TEXT, v),
)


@given(JSON)
def test_json_is_json(value):
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value).encode()) == value
