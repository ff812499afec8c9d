"""The MNIST loader and the file that ships with the package."""

from __future__ import annotations

import hashlib
import os
import runpy
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils import Bunch

from dkae import datasets
from dkae.datasets import load_mnist20k

REPOSITORY = Path(__file__).resolve().parents[2]
ORIGINAL = REPOSITORY.parent / "shared/data/mnist"
SCRIPT = REPOSITORY / "scripts/make_mnist20k.py"
DATA_FILE = Path(datasets.__file__).parent / "data/mnist20k.npz"
ZLIB_OF_DATA_FILE = "1.2.13"

needs_original = pytest.mark.skipif(
    not (ORIGINAL / "train-images-idx3-ubyte.gz").exists(), reason="needs the original MNIST files"
)


@pytest.fixture(scope="module")
def digits() -> Bunch:
    """Load the subset as it is loaded by default."""
    return load_mnist20k()


def test_arrays(digits: Bunch) -> None:
    """Shapes, types and ranges are as documented; rows are distinct, in their original order."""
    assert (digits.data.shape, digits.data.dtype) == ((20_000, 784), np.uint8)
    assert (digits.data.min(), digits.data.max()) == (0, 255)
    assert (digits.target.shape, digits.target.dtype) == ((20_000,), np.int64)
    assert digits.images.shape == (20_000, 28, 28)
    assert np.shares_memory(digits.data, digits.images)
    assert digits.source_rows.dtype == np.int64
    assert (np.diff(digits.source_rows) > 0).all()
    assert digits.source_rows[0] >= 0
    assert digits.source_rows[-1] < 60_000


def test_scaled(digits: Bunch) -> None:
    """Scaling divides by 255 in float32, changes nothing else, and makes no float64 copy."""
    tracemalloc.start()
    try:
        scaled = load_mnist20k(scaled=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6  # a float64 copy takes 125 MB
    assert np.shares_memory(scaled.data, scaled.images)
    np.testing.assert_array_equal(scaled.data, digits.data.astype(np.float32) / np.float32(255))
    np.testing.assert_array_equal(scaled.target, digits.target)
    np.testing.assert_array_equal(scaled.train, digits.train)


def test_split_never_changes(digits: Bunch) -> None:
    """The split is pinned: published results depend on it."""
    digests = [
        hashlib.sha256(digits[part].astype("<i8").tobytes()).hexdigest()[:16]
        for part in ("train", "validation", "test")
    ]
    assert digests == ["5ceac25756998316", "4a261eaf302afce6", "9c9d0a71d3868a52"]


@pytest.mark.parametrize("damage", ["flipped", "cut", "empty"])
def test_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    """A damaged file is refused, with its name and the remedy."""
    content = DATA_FILE.read_bytes()
    flipped = content[:1000] + bytes([content[1000] ^ 1]) + content[1001:]
    damaged = {"flipped": flipped, "cut": content[:-1], "empty": b""}[damage]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mnist20k.npz").write_bytes(damaged)
    monkeypatch.setattr(datasets, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=r"mnist20k\.npz is damaged.*reinstall the package"):
        load_mnist20k()


def test_data_readme_states_the_file_as_it_is() -> None:
    """The README next to the file names its size and checksum."""
    readme = (DATA_FILE.parent / "README.md").read_text(encoding="utf-8")
    assert datasets.MNIST20K_SHA256 in readme
    assert f"{DATA_FILE.stat().st_size:,} bytes" in readme


@needs_original
def test_script_reproduces_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The script gives the same arrays and, with the same zlib, the same bytes."""
    out = tmp_path / "remade"
    runpy.run_path(str(SCRIPT))["main"]([str(ORIGINAL), "--out", str(out)])
    printed = capsys.readouterr().out
    assert hashlib.sha256(out.read_bytes()).hexdigest() in printed
    with np.load(out) as remade, np.load(DATA_FILE) as shipped:
        assert remade.files == shipped.files
        for name in shipped.files:
            assert remade[name].dtype == shipped[name].dtype
            np.testing.assert_array_equal(remade[name], shipped[name])
    if os.name == "posix" and ZLIB_OF_DATA_FILE == zlib.ZLIB_RUNTIME_VERSION:
        assert datasets.MNIST20K_SHA256 in printed
