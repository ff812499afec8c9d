"""Whatever fails while a file is written: the old file stays, and nothing is left behind."""

from __future__ import annotations

import errno
import io
import os
import pathlib
import stat
import tempfile

import pytest
import torch

from dkae._support import files
from dkae._support.container import read_container, write_container

pytestmark = pytest.mark.skipif(os.name != "posix", reason="system calls are POSIX")

NEW = {"a": torch.arange(1000)}
NO_SPACE = OSError(errno.ENOSPC, "no space left")


@pytest.fixture
def path(tmp_path):
    write_container(tmp_path / "f.x", {"is": "old"}, {"a": torch.ones(3)})
    return tmp_path / "f.x"


def failing(function, at=1, error=NO_SPACE):
    """Return a function that fails when it is called for the n-th time."""
    calls = []

    def call(*args, **kwargs):
        calls.append(args)
        if len(calls) == at:
            raise error
        return function(*args, **kwargs)

    return call


def put_out_of_order(monkeypatch, name, at=1):
    """Let one of the calls that a save makes fail."""
    owners = {
        "mkstemp": tempfile, "open file": pathlib.Path, "chmod": pathlib.Path,
        "replace": pathlib.Path, "close": os, "fsync": os, "umask": os, "kill": os,
    }  # fmt: skip
    owner, attribute = owners[name], name.split()[0]
    monkeypatch.setattr(owner, attribute, failing(getattr(owner, attribute), at))


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("mkstemp", 1),
        ("close", 1),  # of the handle of mkstemp
        ("open file", 1),  # to write
        ("open file", 2),  # to bring it to the disk
        ("fsync", 1),
        ("chmod", 1),
        ("replace", 1),
    ],
)
def test_a_call_that_fails_leaves_the_old_file(name, at, path, monkeypatch):
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        put_out_of_order(patch, name, at)
        with pytest.raises(OSError, match="no space left"):
            write_container(path, {"is": "new"}, NEW)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]
    write_container(path, {"is": "new"}, NEW)
    assert read_container(path).metadata["is"] == "new"


@pytest.mark.parametrize("name", ["mkstemp", "close", "open file", "fsync", "chmod", "replace"])
def test_a_call_that_fails_leaves_nothing_where_nothing_was(name, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        put_out_of_order(patch, name)
        with pytest.raises(OSError, match="no space left"):
            write_container(tmp_path / "f", {}, NEW)
    assert list(tmp_path.iterdir()) == []


class FullDisk(io.FileIO):
    """Takes so many bytes, and no more."""

    n_left = 0

    def write(self, chunk):
        if self.n_left < len(chunk):
            raise NO_SPACE
        self.n_left -= len(chunk)
        return super().write(chunk)


@pytest.mark.parametrize("n_bytes", [0, 1, 100, 5000, 8000])
def test_a_full_disk_leaves_the_old_file(n_bytes, path, monkeypatch):
    before = path.read_bytes()

    def open_full(self, mode="r", *args, **kwargs):
        file = FullDisk(self, mode.replace("b", ""))
        file.n_left = n_bytes
        return io.BufferedRandom(file, 64) if "+" in mode else io.BufferedReader(file)

    with monkeypatch.context() as patch:
        patch.setattr(pathlib.Path, "open", open_full)
        with pytest.raises(OSError, match="no space left"):
            write_container(path, {"is": "new"}, NEW)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_leftover_that_cannot_be_removed_does_not_hide_the_failure(path, monkeypatch):
    before = path.read_bytes()
    with monkeypatch.context() as patch:
        put_out_of_order(patch, "replace")
        patch.setattr(pathlib.Path, "unlink", failing(None, error=OSError("not to be removed")))
        with pytest.raises(OSError, match="not to be removed") as caught:
            write_container(path, {"is": "new"}, NEW)
    assert "no space left" in str(caught.value.__context__)
    assert path.read_bytes() == before
    assert len(list(path.parent.iterdir())) == 2


# --- the folder ----------------------------------------------------------------------------------


def test_file_and_folder_are_brought_to_the_disk_in_this_order(tmp_path, monkeypatch):
    seen = []
    fsync, replace = os.fsync, pathlib.Path.replace

    def note(handle):
        seen.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def note_rename(self, target):
        seen.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(pathlib.Path, "replace", note_rename)
    write_container(tmp_path / "f", {}, NEW)
    assert seen == ["file", "rename", "folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP])
def test_a_folder_that_cannot_be_brought_to_the_disk_is_fine(code, path, monkeypatch):
    monkeypatch.setattr(os, "fsync", failing(os.fsync, 2, OSError(code, "not here")))
    write_container(path, {"is": "new"}, NEW)
    assert read_container(path).metadata["is"] == "new"


def test_a_folder_that_may_not_be_read_is_fine(path, monkeypatch):
    monkeypatch.setattr(os, "open", _refusing_folders(PermissionError(errno.EACCES, "not yours")))
    write_container(path, {"is": "new"}, NEW)
    monkeypatch.undo()
    assert read_container(path).metadata["is"] == "new"


def _refusing_folders(error):
    real = os.open

    def open_file(path, *args, **kwargs):
        if pathlib.Path(path).is_dir():
            raise error
        return real(path, *args, **kwargs)

    return open_file


@pytest.mark.parametrize("name", ["open", "fsync"])
def test_a_failure_after_the_rename_is_told_and_the_file_is_whole(name, path, monkeypatch):
    failure = OSError(errno.EIO, "disk is broken")
    fails = _refusing_folders(failure) if name == "open" else failing(os.fsync, 2, failure)
    with monkeypatch.context() as patch:
        patch.setattr(os, name, fails)
        with pytest.raises(OSError, match="disk is broken"):
            write_container(path, {"is": "new"}, NEW)
    assert read_container(path).metadata["is"] == "new"
    assert list(path.parent.iterdir()) == [path]


# --- before any work -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "out=.* is a folder: pass the path of a file"),
        ("no/f", "out=.*no/f lies in a folder that does not exist: make it first"),
        ("file/f", "out=.* lies in a folder that does not exist"),
    ],
)
def test_a_path_that_cannot_be_written_is_named(name, message, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=message):
        files.check_writable(tmp_path / name, "out")


def test_a_folder_that_takes_no_files_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(
        tempfile, "mkstemp", failing(None, error=OSError(30, "Read-only file system"))
    )
    with pytest.raises(
        ValueError, match=r"out=.* cannot be written \(Read-only file system\): pass"
    ):
        files.check_writable(tmp_path / "f", "out")


def test_asking_leaves_nothing(tmp_path):
    (tmp_path / "f").write_text("old")
    files.check_writable(tmp_path / "f", "out")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    assert (tmp_path / "f").read_text() == "old"
