"""No command costs a user a file: not one that it reads, and none that is there without --force."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.cli.helpers import ENDINGS, TINY, refuse, run, succeed

NAMES = ["rows.npy", "rows.npz", "two.npz", "gram.npy", "header.csv", "model.safetensors"]
#: Calls that read a file, and that file; OUT stands for it, as a user may write it.
READING = {
    "fit: the checkpoint": ("fit rows.npy --checkpoint new.safetensors", "new.safetensors"),
    "fit: the model as checkpoint": ("fit rows.npy --checkpoint OUT", "model.safetensors"),
    "transform: MODEL": ("transform model.npy rows.npy", "model.npy"),
    "transform: DATA": ("transform model.safetensors rows.npy", "rows.npy"),
    "transform: an archive": ("transform model.safetensors two.npz:rows", "two.npz"),
    "transform: a table": ("transform model.safetensors header.csv", "header.csv"),
    "inverse: CODES": ("inverse model.safetensors codes.npy", "codes.npy"),
    "denoise: NOISY": ("denoise model.safetensors rows.npy --clean digits", "rows.npy"),
    "denoise: --clean": ("denoise model.safetensors digits --clean rows.npz", "rows.npz"),
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
    message = refuse(*args, "-o", written(name, way, here), "--force")
    assert "too, which would be lost: pass another name" in " ".join(message.split())
    assert before.items() <= contents(here).items()


@pytest.mark.parametrize("exists", [True, False])
def test_a_model_is_not_deleted_as_its_own_checkpoint(exists, here, no_training):
    name = "model.safetensors" if exists else "new.safetensors"
    args = ("fit", "rows.npy", "-o", name, "--checkpoint", f"./{name}", *TINY)
    assert "is the file of '--checkpoint' too" in " ".join(refuse(*args, "--force").split())
    assert (here / name).exists() == exists


@pytest.mark.parametrize("option", ["rows.npy --checkpoint rows.npy", "rows.npy --gram gram.npy"])
def test_a_checkpoint_is_no_input(option, here, no_training):
    args = ["fit", *option.split(), "-o", "new.safetensors", *TINY]
    if "--gram" in args:
        args += ["--checkpoint", "gram.npy"]
    before = contents(here)
    message = " ".join(refuse(*args).split())
    assert "Invalid value for '--checkpoint'" in message
    assert contents(here) == before


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "rows.npy", *TINY, "-o", "old.safetensors"],
        ["transform", "model.safetensors", "rows.npy", "-o", "old.npy"],
        ["transform", "model.safetensors", "rows.npy", "-o", "old.csv"],
        ["inverse", "model.safetensors", "codes.npy", "-o", "old.npz"],
        [
            "denoise",
            "model.safetensors",
            "rows.npy",
            "--clean",
            "rows.npz",
            "--components",
            "2",
            "-o",
            "old.npy",
        ],
        ["interpolate", "model.safetensors", "rows.npy", "--between", "0", "1", "-o", "old.tsv"],
    ],
    ids=lambda args: f"{args[0]} {args[-1]}",
)
def test_a_file_that_exists_is_replaced_by_force_alone(args, here, monkeypatch):
    old = here / args[-1]
    old.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr("dkae.cli.models.load_model", lambda path: pytest.fail("work was done"))
        patch.setattr("dkae.cli.models.read_training", lambda *_: pytest.fail("work was done"))
        message = " ".join(refuse(*args).split())
    assert f"{args[-1]} exists: pass another name, or --force to replace it" in message
    assert old.read_bytes() == b"old"
    succeed(*args, "--force", *(["--components", 2] if args[0] == "denoise" else []))
    assert old.read_bytes() != b"old"


def test_an_empty_file_is_a_file_too(here, no_training):
    (here / "new.safetensors").touch()
    assert "exists" in refuse("fit", "rows.npy", "-o", "new.safetensors", *TINY)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_link_keeps_leading_to_the_file_that_is_replaced(ending, here):
    target, link = here / f"target{ending}", here / f"link{ending}"
    target.write_bytes(b"old")
    link.symlink_to(target)
    args = ("transform", "model.safetensors", "rows.npy", "-o", link)
    assert "exists" in refuse(*args)
    succeed(*args, "--force")
    assert link.is_symlink()
    assert target.read_bytes() != b"old"


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="needs devices")
def test_a_device_is_never_replaced(here):
    (here / "null.npy").symlink_to("/dev/null")
    args = ("transform", "model.safetensors", "rows.npy", "-o", "null.npy")
    assert "null.npy is no ordinary file" in refuse(*args, "--force")
    assert not Path("/dev/null").is_file()


def test_a_link_to_itself_is_refused(here, no_training):
    (here / "loop.safetensors").symlink_to("loop.safetensors")
    assert "is a link to itself" in refuse("fit", "rows.npy", "-o", "loop.safetensors", *TINY)


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
    assert message in " ".join(refuse("fit", "rows.npy", "-o", out, *TINY).split())
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
