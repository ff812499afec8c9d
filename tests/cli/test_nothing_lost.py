"""No command costs a user a file: not one that it reads, and none that is there without --force."""

import contextlib
import errno
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import TINY, fail, run, succeed

NAMES = ["rows.npy", "two.npz", "gram.npy", "clean.tsv", "model.safetensors"]
ENDINGS = [".npy", ".csv"]
#: Calls that read a file, and that file; OUT stands for it, as a user may write it.
READING = {
    "fit: the checkpoint": ("fit rows.npy --checkpoint new.safetensors", "new.safetensors"),
    "fit: the model as checkpoint": ("fit rows.npy --checkpoint OUT", "model.safetensors"),
    "transform: MODEL": ("transform model.npy rows.npy", "model.npy"),
    "transform: DATA": ("transform model.safetensors rows.npy", "rows.npy"),
    "transform: a table": ("transform model.safetensors clean.tsv", "clean.tsv"),
    "inverse: CODES": ("inverse model.safetensors codes.npy", "codes.npy"),
    "denoise: NOISY": ("denoise model.safetensors rows.npy --clean digits", "rows.npy"),
    "denoise: --clean": ("denoise model.safetensors digits --clean gram.npy", "gram.npy"),
    "interpolate: DATA": ("interpolate model.safetensors rows.npy --between 0 1", "rows.npy"),
}
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
    other = folder / f"other{Path(name).suffix}"
    if way == "symbolic link":
        other.symlink_to(name)
    elif way == "hard link":
        other.hardlink_to(name)
    return {"as it is": name, "another spelling": f"../{folder.name}/./{name}"}.get(way, other.name)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("text", "name"), READING.values(), ids=READING)
def test_a_file_that_is_read_is_never_replaced(text, name, way, here, no_training):
    (here / "new.safetensors").write_bytes(b"a checkpoint")
    before = contents(here)
    args = text.replace("OUT", name).split()
    message = fail(*args, "-o", written(name, way, here), "--force", code=2)
    assert "too, which would be lost: pass another name" in message
    assert before.items() <= contents(here).items()


@pytest.mark.parametrize("exists", [True, False])
def test_a_model_is_not_deleted_as_its_own_checkpoint(exists, here, no_training):
    name = "model.safetensors" if exists else "new.safetensors"
    args = ("fit", "rows.npy", "-o", name, "--checkpoint", f"./{name}", *TINY)
    assert "is the file of '--checkpoint' too" in fail(*args, "--force", code=2)
    assert (here / name).exists() == exists


@pytest.mark.parametrize(
    "option",
    [
        "rows.npy --checkpoint rows.npy",
        "two.npz:rows --checkpoint two.npz",
        "rows.npy --gram gram.npy",
    ],
)
def test_a_checkpoint_is_no_input(option, here, no_training):
    args = ["fit", *option.split(), "-o", "new.safetensors", *TINY]
    if "--gram" in args:
        args += ["--checkpoint", "gram.npy"]
    before = contents(here)
    message = fail(*args, code=2)
    assert "Invalid value for '--checkpoint'" in message
    assert contents(here) == before


CALLS = [
    "fit rows.npy -o old.safetensors",
    "transform model.safetensors rows.npy -o old.csv",
    "inverse model.safetensors codes.npy -o old.tsv",
    "denoise model.safetensors rows.npy --clean rows.npy -o old.parquet",
    "interpolate model.safetensors rows.npy --between 0 1 -o old.npy",
]


@pytest.mark.parametrize("call", CALLS)
def test_no_file_is_overwritten_without_force(call, here, monkeypatch):
    args = [*call.split(), *(TINY if call.startswith("fit") else [])]
    old = here / call.split()[-1]
    old.write_bytes(b"old")
    with monkeypatch.context() as patch:
        for name in ("fit", "transform", "inverse_transform"):
            patch.setattr(DeepKernelizedAutoencoder, name, lambda *_: pytest.fail("work was done"))
        message = fail(*args, code=2)
    assert f"{old.name} exists: pass another name, or --force to overwrite it" in message
    assert old.read_bytes() == b"old"
    succeed(*args, "--force")
    assert old.read_bytes() != b"old"


def test_an_empty_file_is_a_file_too(here, no_training):
    (here / "new.safetensors").touch()
    assert "exists" in fail("fit", "rows.npy", "-o", "new.safetensors", *TINY, code=2)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_link_keeps_leading_to_the_file_that_is_replaced(ending, here):
    target, link = here / f"target{ending}", here / f"link{ending}"
    target.write_bytes(b"old")
    link.symlink_to(target)
    args = ("transform", "model.safetensors", "rows.npy", "-o", link)
    assert "exists" in fail(*args, code=2)
    succeed(*args, "--force")
    assert link.is_symlink()
    assert target.read_bytes() != b"old"


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs devices")
def test_a_device_is_never_replaced(here):
    (here / "null.npy").symlink_to("/dev/null")
    args = ("transform", "model.safetensors", "rows.npy", "-o", "null.npy")
    assert "null.npy is not a regular file" in fail(*args, "--force", code=2)
    assert not Path("/dev/null").is_file()


def test_a_link_to_itself_is_refused(here, no_training):
    (here / "loop.safetensors").symlink_to("loop.safetensors")
    assert "is a link to itself" in fail("fit", "rows.npy", "-o", "loop.safetensors", *TINY, code=2)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("no/m.safetensors", "does not exist: make it, or pass another"),
        ("rows.npy/m.safetensors", "does not exist"),
        ("lost.safetensors", "does not exist"),
        ("m" * 240 + ".safetensors", "is not writable (File name too long)"),
    ],
    ids=["folder", "file for a folder", "link into no folder", "long name"],
)
def test_an_output_is_tried_before_the_training(out, message, here, no_training):
    (here / "lost.safetensors").symlink_to("no/m.safetensors")
    before = contents(here)
    assert message in fail("fit", "rows.npy", "-o", out, *TINY, code=2)
    assert contents(here) == before


def test_names_with_spaces_line_breaks_and_signs(here):
    for name in (
        "with space.npy",
        "line\nbreak.npy",
        "größe λ.npy",
        "--force.npy",
        "\u202eabc.npy",
    ):
        out = f"./{name}"
        succeed("transform", "model.safetensors", "rows.npy", "-o", out)
        assert np.load(out).shape == (40, 4)
        result = run("transform", "model.safetensors", "rows.npy", "-o", out)
        assert result.exit_code == 2


# --- failures leave the old file -----------------------------------------------------------------


@contextlib.contextmanager
def full_disk():
    """Make every write beyond 512 bytes of a file fail, as on a disk without space."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("ending", [".npy", ".csv", ".parquet", ".safetensors"])
def test_a_full_disk_is_named_and_costs_nothing(ending, here):
    np.save("many.npy", np.tile(np.load("rows.npy"), (5000, 1)))
    before, out = contents(here), here / f"out{ending}"
    out.write_bytes(b"old")
    with full_disk():
        if ending == ".safetensors":
            line = fail("fit", "rows.npy", "-o", out, "--force", *TINY)
        else:
            line = fail("transform", "model.safetensors", "many.npy", "-o", out, "--force")
    assert f"{out} cannot be written: " in line or f"out{ending}" in line
    assert contents(here) == before | {out.name: b"old"}


@pytest.mark.parametrize("ending", [".npy", ".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_late_error_leaves_no_output(ending, exists, here, monkeypatch):
    monkeypatch.setattr("dkae.tables.entries.N_PIECE_NUMBERS", 20)
    rows = np.load("rows.npy")
    rows[31, 2] = np.nan
    np.save("bad.npy", rows)
    out = here / f"out{ending}"
    if exists:
        out.write_bytes(b"old")
    before = contents(here)
    line = fail("transform", "model.safetensors", "bad.npy", "-o", out, "--force")
    assert "bad.npy, row 31 (from 0), column 2: a gap" in line
    assert contents(here) == before


def test_a_failed_fit_leaves_the_old_model(here):
    before = contents(here)
    options = [*TINY, "--kernel", "rbg"]
    fail("fit", "rows.npy", "-o", "model.safetensors", "--force", *options)
    assert contents(here) == before


def test_a_folder_that_cannot_be_written_to(here, monkeypatch, no_training):
    """The right to write is taken away here, because root may write everywhere."""
    folder, open_file = here / "locked", os.open
    folder.mkdir()

    def without_making(path, flags, *args, **kwargs):
        if flags & os.O_CREAT and Path(path).is_relative_to(folder):
            raise PermissionError(errno.EACCES, "Permission denied")
        return open_file(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", without_making)
    message = fail("fit", "rows.npy", "-o", folder / "m.safetensors", *TINY, code=2)
    assert "is not writable (Permission denied): pass a file in another folder" in message
