"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from dkae._support.files import replacing


def write(path, text="new"):
    with replacing(path) as temporary:
        temporary.write_text(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail():
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise OSError

    with pytest.raises(OSError):  # noqa: PT011  # raised three lines above
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_mode_is_that_of_the_old_file_or_of_any_new_one(tmp_path):
    (tmp_path / "ordinary").write_text("")
    write(tmp_path / "new")
    assert mode(tmp_path / "new") == mode(tmp_path / "ordinary")
    (tmp_path / "new").chmod(0o640)
    write(tmp_path / "new", "newer")
    assert mode(tmp_path / "new") == 0o640


def test_threads_do_not_confuse_the_modes_of_new_files(tmp_path):
    before, interval = os.umask(0o022), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        paths = [tmp_path / str(i) for i in range(400)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(write, paths))
        assert {mode(path) for path in paths} == {0o644}
        assert os.umask(0o022) == 0o022
    finally:
        sys.setswitchinterval(interval)
        os.umask(before)
