"""Processes that died in the middle of a write, and those that hold a path."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dkae._support import files
from dkae._support.files import owning, replacing

pytestmark = pytest.mark.skipif(os.name != "posix", reason="of POSIX")


def write(path, text="new"):
    with replacing(path) as temporary:
        temporary.write_text(text)


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


# --- leftovers -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["f", "f.safetensors", "f.my-model", "a[b]*?.x", "f.", "ä b.ü"])
def test_what_a_dead_process_left_goes_with_the_next_write(name, tmp_path, dead):
    leftover = left_by(tmp_path / name, dead)
    write(tmp_path / name)
    assert not leftover.exists()
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_what_is_not_left_by_a_dead_process_stays(tmp_path, dead):
    path = tmp_path / "f.x"
    kept = [
        left_by(path, os.getpid()),
        left_by(path, os.getppid()),
        left_by(path, 1),
        left_by(path, 10**30),
        left_by(path, dead, host="elsewhere"),
        left_by(tmp_path / "ff.x", dead),
        left_by(tmp_path / "f.x.x", dead),
        left_by(path, dead, suffix=".y"),
        left_by(path, f"{dead}-x y"),
        tmp_path / f"f.x.{files._HOST}-{dead}-abc.x",
    ]
    kept[-1].touch()
    write(path)
    assert all(p.exists() for p in kept)


def test_a_process_that_is_killed_leaves_what_the_next_write_removes(tmp_path):
    path = tmp_path / "f.x"
    path.write_text("old")
    code = "with replacing(path) as t:\n    t.write_text('half')\n"
    with killed_afterwards(f"{code}    print('in', flush=True)\n    sleep(60)", path):
        pass
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    write(path)
    assert [p.name for p in tmp_path.iterdir()] == ["f.x"]
    assert path.read_text() == "new"


def test_leftovers_do_not_disturb_writers_at_the_same_time(tmp_path, dead):
    path = tmp_path / "f.x"
    for i in range(20):
        left_by(path, f"{dead}-{i}")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write(path, str(i)), range(60)))
    assert path.read_text().isdecimal()
    assert all(f"{os.getpid()}-" not in p.name for p in tmp_path.iterdir())


# --- owning --------------------------------------------------------------------------------------


@contextlib.contextmanager
def killed_afterwards(code, path):
    """Start a process that runs this code with a path, wait until it says so, and kill it."""
    begin = (
        "import sys; from pathlib import Path; from time import sleep\n"
        "from dkae._support.files import owning, replacing\npath = Path(sys.argv[1])\n"
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
    with owning(path, "the checkpoint"):
        message = "the checkpoint is in use by another process or fit: wait for it, or choose"
        with pytest.raises(ValueError, match=message), owning(path, "the checkpoint"):
            pass
        with owning(tmp_path / "d", "another"):
            pass
    with owning(path, "the checkpoint"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_free_after_a_failure(tmp_path):
    def fail():
        with owning(tmp_path / "c", "it"):
            raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            fail()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_cannot_be_removed_is_let_go_all_the_same(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise PermissionError("not yours")

    def own():
        with owning(tmp_path / "c", "it"), monkeypatch.context() as patch:
            patch.setattr(type(tmp_path), "unlink", fail)

    own()
    with owning(tmp_path / "c", "it"):
        pass


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
        results = list(pool.map(own, range(200)))
    assert any(results)
    assert max(most) == 1
    assert list(tmp_path.iterdir()) == []
