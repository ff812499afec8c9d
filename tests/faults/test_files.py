"""Files that appear whole or not at all, whatever fails, and paths that have one owner."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dkae import files
from dkae.files import check_writable, owning, replacing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="system calls are POSIX")

NO_SPACE = OSError(errno.ENOSPC, "no space left")


def write(path, text="new"):
    with replacing(path) as temporary:
        temporary.write_text(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path):
    (tmp_path / "f.x").write_text("old")
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


#: The calls that a write makes, and their owners.
CALLS = {"touch": pathlib.Path, "open": pathlib.Path, "replace": pathlib.Path, "fsync": os}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("is_there", [True, False], ids=["over a file", "a new file"])
def test_a_call_that_fails_leaves_things_as_they_were(name, is_there, tmp_path, monkeypatch):
    path = tmp_path / "f.x"
    if is_there:
        path.write_text("old")
    with monkeypatch.context() as patch:
        patch.setattr(CALLS[name], name, failing(getattr(CALLS[name], name)))
        with pytest.raises(OSError, match=r"no space left.*f\.x"):
            write(path)
    assert list(tmp_path.iterdir()) == [path] * is_there
    assert not is_there or path.read_text() == "old"
    write(path)
    assert path.read_text() == "new"


def test_a_block_that_fails_leaves_the_old_file(path):
    def write() -> None:
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        write()
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the size of files")
def test_a_full_disk_is_named(path):
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from dkae._support import safe_file; import torch\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "safe_file.write(Path(sys.argv[1]), {}, {'a': torch.arange(1000)})"
    )
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False)
    assert f"File too large: '{path}'" in done.stderr.decode()
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]


def test_file_and_folder_are_flushed_in_this_order(tmp_path, monkeypatch):
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
    write(tmp_path / "f")
    assert seen == ["file", "rename", "folder"]


@pytest.mark.parametrize("code", [errno.EINVAL, errno.ENOTSUP, errno.EIO])
def test_a_folder_that_cannot_be_flushed(code, path, monkeypatch):
    """Some file systems cannot; a broken disk is an error, and the file is whole all the same."""
    monkeypatch.setattr(os, "fsync", failing(os.fsync, 2, OSError(code, "not here")))
    expected = pytest.raises(OSError, match="not here") if code == errno.EIO else None
    with expected or contextlib.nullcontext():
        write(path)
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_the_mode_is_that_of_the_old_file_or_of_any_new_one(tmp_path):
    (tmp_path / "ordinary").write_text("")
    write(tmp_path / "new")
    assert mode(tmp_path / "new") == mode(tmp_path / "ordinary")
    (tmp_path / "new").chmod(0o640)
    write(tmp_path / "new", "newer")
    assert mode(tmp_path / "new") == 0o640


def test_a_link_keeps_pointing_to_its_file(path):
    link = path.with_name("link")
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_text() == "new"


# --- before any work -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "out=.* is a folder: pass the path of a file"),
        ("no/f", "out=.*no/f lies in a folder that does not exist: make it first"),
        ("file/f", "out=.* lies in a folder that does not exist"),
        ("pipe", "out=.*pipe is a pipe or a device: pass the path of a file"),
    ],
)
def test_a_path_that_cannot_be_written_is_named(name, message, tmp_path):
    (tmp_path / "file").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match=message):
        check_writable(tmp_path / name, "out")


def test_a_folder_that_takes_no_files_is_named(path, monkeypatch):
    check_writable(path, "out")
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]
    error = OSError(30, "Read-only file system")
    monkeypatch.setattr(pathlib.Path, "touch", failing(None, error=error))
    with pytest.raises(ValueError, match=r"out=.* cannot be written \(Read-only file system\)"):
        check_writable(path, "out")


# --- leftovers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dead():
    """Return the number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def left_by(path, process, suffix=None, host=None):
    host = files._HOST if host is None else host
    suffix = path.suffix if suffix is None else suffix
    leftover = path.parent / f".{path.name}.{host}-{process}-abc_12{suffix}"
    leftover.write_text("half")
    return leftover


@pytest.mark.parametrize("name", ["f", "f.safetensors", "a[b]*?.x", "f.", "ä b.ü"])
def test_what_a_dead_process_left_goes_with_the_next_write(name, tmp_path, dead):
    leftover = left_by(tmp_path / name, dead)
    write(tmp_path / name)
    assert not leftover.exists()
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_everything_else_stays(tmp_path, dead):
    path = tmp_path / "f.x"
    kept = [
        left_by(path, os.getpid()),
        left_by(path, 1),
        left_by(path, 10**30),
        left_by(path, dead, host="elsewhere"),
        left_by(tmp_path / "ff.x", dead),
        left_by(path, dead, suffix=".y"),
        left_by(path, f"{dead}-x y"),
    ]
    write(path)
    assert all(p.exists() for p in kept)


def test_a_process_that_is_killed_leaves_what_the_next_write_removes(path):
    code = "with replacing(path) as t:\n    t.write_text('half')\n"
    with killed_afterwards(f"{code}    print('in', flush=True)\n    sleep(60)", path):
        pass
    assert path.read_text() == "old"
    assert len(list(path.parent.iterdir())) == 2
    write(path)
    assert list(path.parent.iterdir()) == [path]


def test_many_writers_at_the_same_time(tmp_path, dead):
    path = tmp_path / "f.x"
    for i in range(20):
        left_by(path, f"{dead}-{i}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write(path, str(i)), range(60)))
    assert path.read_text().isdecimal()
    assert all(f"{os.getpid()}-" not in p.name for p in tmp_path.iterdir())


# --- owners --------------------------------------------------------------------------------------


@contextlib.contextmanager
def killed_afterwards(code, path):
    """Start a process that runs this code with a path, wait until it prints, and kill it."""
    begin = (
        "import sys; from pathlib import Path; from time import sleep\n"
        "from dkae.files import owning, replacing\npath = Path(sys.argv[1])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", begin + code, path], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout.readline() == "in\n"
            yield
        finally:
            process.kill()


def test_a_path_has_one_owner(tmp_path):
    path = tmp_path / "c"
    message = "the checkpoint is in use by another process or fit: wait for it, or choose"

    def own_and_fail() -> None:
        with owning(path, "the checkpoint"):
            with pytest.raises(ValueError, match=message), owning(path, "the checkpoint"):
                pass
            with owning(tmp_path / "d", "another"):
                pass
            raise KeyError("mine")

    for _ in range(2):  # it is free again afterwards, also after a failure
        with pytest.raises(KeyError, match="mine"):
            own_and_fail()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["c.lock", ".c.lock", ".c.dkae-lock"])
def test_a_file_of_the_user_is_never_deleted(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with owning(tmp_path / "c", "it"):
        pass
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "mine")]


def test_another_process_keeps_a_path_until_it_is_killed(tmp_path):
    path = tmp_path / "c"
    code = "with owning(path, 'it'):\n    print('in', flush=True)\n    sleep(60)"
    with (
        killed_afterwards(code, path),
        pytest.raises(ValueError, match="in use by another process"),
        owning(path, "it"),
    ):
        pass
    with owning(path, "it"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_of_many_at_the_same_time_one_is_the_owner(tmp_path):
    inside, most = [], []

    def own(i):
        try:
            with owning(tmp_path / "c", "it"):
                inside.append(i)
                most.append(len(inside))
                time.sleep(0.001)
                inside.remove(i)
        except ValueError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(own, range(100)))
    assert any(results)
    assert max(most) == 1
    assert list(tmp_path.iterdir()) == []
