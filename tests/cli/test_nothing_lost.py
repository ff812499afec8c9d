"""No command costs a user a file: not one that it reads, and none that is there without --force."""

import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import TINY, fail, run, succeed
from tests.tables.helpers import full_disk

NAMES = ["rows.npy", "gram.npy", "clean.tsv", "model.safetensors"]
#: Calls that read a file, and the file; OUT stands for it as a user may write it.
READING = [
    ("fit rows.npy --checkpoint new.safetensors", "new.safetensors"),
    ("fit rows.npy --checkpoint OUT", "model.safetensors"),
    ("transform model.npy rows.npy", "model.npy"),
    ("transform model.safetensors rows.npy", "rows.npy"),
    ("transform model.safetensors clean.tsv", "clean.tsv"),
    ("inverse model.safetensors codes.npy", "codes.npy"),
    ("denoise model.safetensors rows.npy --clean digits", "rows.npy"),
    ("denoise model.safetensors digits --clean gram.npy", "gram.npy"),
    ("interpolate model.safetensors rows.npy --between 0 1", "rows.npy"),
]
WAYS = ["as it is", "another spelling", "symbolic link", "hard link"]


@pytest.fixture
def here(folder, tmp_path, monkeypatch):
    """Return a copy of the folder of inputs, and work in it."""
    for name in NAMES:
        shutil.copy(folder / name, tmp_path)
    shutil.copy(folder / "model.safetensors", tmp_path / "model.npy")
    np.save(tmp_path / "codes.npy", np.ones((3, 4), dtype=np.float32))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def written(name, way, folder):
    """Return another name of a file."""
    other = folder / f"other{way[:3]}{Path(name).suffix}"
    if way == "symbolic link":
        other.symlink_to(name)
    elif way == "hard link":
        other.hardlink_to(name)
    return {"as it is": name, "another spelling": f"../{folder.name}/./{name}"}.get(way, other.name)


@pytest.mark.parametrize(("text", "name"), READING)
def test_a_file_that_is_read_is_never_replaced(text, name, here, no_training):
    (here / "new.safetensors").write_bytes(b"a checkpoint")
    before = contents(here)
    args = text.replace("OUT", name).split()
    for way in WAYS:
        message = fail(*args, "-o", written(name, way, here), "--force", code=2)
        assert "too, which would be lost: pass another name" in message
    assert before.items() <= contents(here).items()


@pytest.mark.parametrize(
    "call",
    [
        "rows.npy --checkpoint rows.npy",
        "rows.npy --gram gram.npy --checkpoint gram.npy",
        "rows.npy --checkpoint ./new.safetensors",
    ],
)
def test_a_checkpoint_is_no_other_file(call, here, no_training):
    before = contents(here)
    message = fail("fit", *call.split(), "-o", "new.safetensors", *TINY, code=2)
    assert "too, which would be lost: pass another name" in message
    assert contents(here) == before


@pytest.mark.parametrize(
    "call",
    [
        "fit rows.npy -o old.safetensors",
        "transform model.safetensors rows.npy -o old.csv",
        "inverse model.safetensors codes.npy -o old.tsv",
        "denoise model.safetensors rows.npy --clean rows.npy -o old.parquet",
        "interpolate model.safetensors rows.npy --between 0 1 -o old.npy",
    ],
)
def test_no_file_is_overwritten_without_force(call, here, monkeypatch):
    args = [*call.split(), *(TINY if call.startswith("fit") else [])]
    old = here / call.split()[-1]
    old.touch()  # an empty file is a file too
    with monkeypatch.context() as patch:
        for name in ("fit", "transform", "inverse_transform"):
            patch.setattr(DeepKernelizedAutoencoder, name, lambda *_: pytest.fail("work was done"))
        message = fail(*args, code=2)
    assert f"{old.name} exists: pass another name, or --force to overwrite it" in message
    assert old.read_bytes() == b""
    succeed(*args, "--force")
    assert old.read_bytes() != b""


@pytest.mark.parametrize(
    ("out", "code", "message"),
    [
        ("no/m.safetensors", 1, "lies in a folder that does not exist: make it first"),
        ("rows.npy/m.safetensors", 1, "lies in a folder that does not exist"),
        ("lost.safetensors", 1, "lies in a folder that does not exist"),
        ("loop.safetensors", 2, "is a link to itself: remove it"),
        ("null.safetensors", 1, "is a pipe or a device: pass the path of a file"),
        ("m" * 240 + ".safetensors", 1, "cannot be written (File name too long)"),
        ("locked/m.safetensors", 1, "cannot be written (Permission denied): pass a path in a"),
    ],
)
def test_an_output_is_tried_before_the_training(out, code, message, here, no_training, monkeypatch):
    (here / "lost.safetensors").symlink_to("no/m.safetensors")
    (here / "loop.safetensors").symlink_to("loop.safetensors")
    (here / "null.safetensors").symlink_to("/dev/null")
    forbid(here / "locked", monkeypatch)
    before = contents(here)
    assert message in fail("fit", "rows.npy", "-o", out, "--force", *TINY, code=code)
    assert contents(here) == before
    assert not Path("/dev/null").is_file()


def forbid(folder, monkeypatch):
    """Make a folder without the right to write; root may write everywhere."""
    folder.mkdir()
    open_file = os.open

    def without_making(path, flags, *args, **kwargs):
        if flags & os.O_CREAT and Path(path).is_relative_to(folder):
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", without_making)


@pytest.mark.parametrize(
    "name", ["with space.npy", "line\nbreak.npy", "größe λ.npy", "--force.npy", "\u202eabc.npy"]
)
def test_names_with_spaces_line_breaks_and_signs(name, here):
    args = ("transform", "model.safetensors", "rows.npy", "-o", f"./{name}")
    succeed(*args)
    assert np.load(name).shape == (40, 4)
    assert run(*args).exit_code == 2


# --- failures leave the old file -----------------------------------------------------------------


@pytest.mark.parametrize("ending", [".npy", ".csv", ".parquet", ".safetensors"])
def test_a_full_disk_is_named_and_costs_nothing(ending, here):
    np.save("many.npy", np.tile(np.load("rows.npy"), (5000, 1)))
    before, out = contents(here), here / f"out{ending}"
    out.write_bytes(b"old")
    args = ["transform", "model.safetensors", "many.npy"]
    if ending == ".safetensors":
        args = ["fit", "rows.npy", *TINY]
    with full_disk():
        assert f"out{ending}" in fail(*args, "-o", out, "--force")
    assert contents(here) == before | {out.name: b"old"}


@pytest.mark.parametrize("ending", [".npy", ".csv", ".parquet"])
def test_a_late_error_leaves_the_old_file(ending, here, monkeypatch):
    monkeypatch.setattr("dkae.tables.table.N_PIECE_NUMBERS", 20)
    rows = np.load("rows.npy")
    rows[31, 2] = np.nan
    np.save("bad.npy", rows)
    out = here / f"out{ending}"
    out.write_bytes(b"old")
    before = contents(here)
    line = fail("transform", "model.safetensors", "bad.npy", "-o", out, "--force")
    assert "bad.npy, row 31 (from 0), column 2: a gap" in line
    options = [*TINY, "--kernel", "rbg"]
    fail("fit", "rows.npy", "-o", "model.safetensors", "--force", *options)
    assert contents(here) == before
