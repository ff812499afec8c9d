"""Outputs are checked before any work, and a failure leaves the old file."""

import contextlib
import errno
import os
from pathlib import Path

import numpy as np
import pytest

from tests.cli.helpers import (
    ENDINGS,
    TINY,
    fail,
    refuse,
    run,
)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("nowhere/m.safetensors", "nowhere does not exist"),
        ("m.pt", "must end in"),
        ("m", "must end in"),
        ("taken.safetensors", "is a directory"),
    ],
)
def test_unusable_output_is_refused_before_the_training(out, message, tmp_path, no_training):
    (tmp_path / "taken.safetensors").mkdir()
    assert message in refuse("fit", "digits", "-o", tmp_path / out, *TINY)


@pytest.mark.parametrize("exists", [False, True], ids=["new file", "existing file"])
def test_unwritable_output_is_refused_before_the_training(
    exists, tmp_path, monkeypatch, no_training
):
    folder = tmp_path / "locked"
    folder.mkdir()
    out = folder / "m.safetensors"
    if exists:
        out.write_text("old", encoding="utf-8")
        out.chmod(0o444)
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # root may write everywhere: take that right away
        access, open_file = os.access, os.open

        def without_writing(path, mode, **kwargs):
            within = Path(path).is_relative_to(folder)
            return not (mode & os.W_OK and within) and access(path, mode, **kwargs)

        def without_making(path, flags, *args, **kwargs):
            if flags & os.O_CREAT and Path(path).is_relative_to(folder):
                raise PermissionError(errno.EACCES, "Permission denied")
            return open_file(path, flags, *args, **kwargs)

        monkeypatch.setattr(os, "access", without_writing)
        monkeypatch.setattr(os, "open", without_making)
    try:
        result = run("fit", "digits", "-o", out, *TINY)
    finally:
        folder.chmod(0o755)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in (1, 2)
    assert "writable" in result.stderr


@pytest.mark.parametrize(
    ("command", "out", "message"),
    [
        ("transform", "codes.txt", "must end in"),
        ("transform", "nowhere/codes.npy", "nowhere does not exist"),
        ("inverse", "rows", "must end in"),
        ("inverse", "nowhere/rows.csv", "nowhere does not exist"),
    ],
)
def test_unusable_output_of_an_array_is_refused(command, out, message, folder, tmp_path):
    args = folder / "model.safetensors", folder / "rows.npy", "-o", tmp_path / out
    assert message in refuse(command, *args)


def test_missing_output_option_is_refused(no_training):
    assert "--out" in refuse("fit", "digits", *TINY)


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "nowhere.npy", *TINY],
        ["fit", "rows.npy", *TINY, "--kernel", "rbg"],
        ["fit", "rows.npy", *TINY, "--gram", "rows.npz"],
        ["fit", "rows.npy", *TINY, "--set", "learning_rate_init=1e30"],
    ],
    ids=lambda args: " ".join(args[1:2] + args[-1:]),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_existing_model_survives_a_failed_fit(args, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    out = tmp_path / "m.safetensors"
    out.write_text("old", encoding="utf-8")
    fail(*args, "-o", out, "--force")
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("command", ["transform", "inverse"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_existing_array_survives_a_failed_command(command, ending, folder, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((3, 9)))
    out = tmp_path / f"out{ending}"
    out.write_text("old", encoding="utf-8")
    fail(command, folder / "model.safetensors", tmp_path / "wide.npy", "-o", out, "--force")
    assert out.read_text(encoding="utf-8") == "old"


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


def test_existing_model_survives_a_full_disk(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    out.write_text("old", encoding="utf-8")
    with full_disk():
        fail("fit", folder / "rows.npy", "-o", out, *TINY, "--force")
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("ending", ENDINGS)
def test_existing_array_survives_a_full_disk(ending, folder, rows, tmp_path):
    many, out = tmp_path / "many.npy", tmp_path / f"codes{ending}"
    np.save(many, np.tile(rows, (50, 1)))
    out.write_text("old", encoding="utf-8")
    with full_disk():
        fail("transform", folder / "model.safetensors", many, "-o", out, "--force")
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {many.name, out.name}
