"""Files that appear whole or not at all, and paths that one process has to itself.

A file is written under a temporary name, flushed to the disk and renamed; then the folder is
flushed too. Whatever fails in between leaves the old file as it was. A process that is killed
leaves its temporary file behind; the next write to the same path removes it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import re
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

__all__ = ["check_writable", "owning", "replacing"]

#: Errors of file systems that cannot flush a folder.
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOSYS)
#: Part of temporary names: machines may share a folder, and a process number is of one of them.
_HOST = re.sub(r"[^A-Za-z0-9]", "", platform.node())[:16] or "host"
#: Seconds to wait for a lock that its owner is just removing.
_LOCK_SECONDS = 0.2


@contextlib.contextmanager
def replacing(path: Path, keep: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path` that replaces it if the block succeeds.

    The file that was there is kept as `keep`, in the same folder, if that is given.
    """
    path = path.resolve()  # a link keeps pointing to the file that it named
    _remove_leftovers(path)
    temporary = _temporary(path)
    with _naming(path):
        try:
            temporary.touch(exist_ok=False)  # with the mode that the umask gives
            if path.exists():
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            yield temporary
            with temporary.open("r+b") as file:  # Windows flushes only what it may write
                os.fsync(file.fileno())
            if keep is not None and path.exists():
                path.replace(keep)
            temporary.replace(path)
            _flush_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def check_writable(path: Path, name: str) -> None:
    """Raise an error if a file cannot be written, before any work; `name` is the parameter."""
    if path.is_dir():
        raise ValueError(f"{name}={path} is a folder: pass the path of a file")
    if path.exists() and not path.is_file():
        raise ValueError(f"{name}={path} is a pipe or a device: pass the path of a file")
    if not path.resolve().parent.is_dir():
        raise ValueError(f"{name}={path} lies in a folder that does not exist: make it first")
    probe = _temporary(path.resolve())
    try:
        probe.touch(exist_ok=False)
        probe.unlink()
    except OSError as error:
        raise ValueError(
            f"{name}={path} cannot be written ({error.strerror}): pass a path in a folder where "
            "you may write"
        ) from error


@contextlib.contextmanager
def owning(path: Path, what: str) -> Iterator[None]:
    """Keep other processes and fits from the same path meanwhile; `what` names it in an error.

    The operating system holds the lock: a process that is killed holds nothing.
    """
    lock = path.parent / f".{path.name}.dkae-lock"
    try:
        held = FileLock(lock, timeout=_LOCK_SECONDS)
        held.acquire(poll_interval=0.02)
    except Timeout as error:
        raise ValueError(
            f"{what} is in use by another process or fit: wait for it, or choose another path"
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            # Removed while it is held: a process that has opened it finds it unlinked and retries.
            if lock.stat().st_size == 0:
                lock.unlink()
        held.release()


def _temporary(path: Path) -> Path:
    """Return the path of a new file beside `path`; its name holds machine and process."""
    name = f".{path.name}.{_HOST}-{os.getpid()}-{secrets.token_hex(4)}{path.suffix}"
    return path.with_name(name)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in errors of a full disk and the like, which name none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of this path whose process has died on this machine."""
    name = re.compile(rf"\.{re.escape(path.name)}\.{_HOST}-(\d+)-\w+{re.escape(path.suffix)}")
    pattern = re.sub(r"[][*?]", "?", path.name)
    for other in path.parent.glob(f".{pattern}.{_HOST}-*"):
        match = name.fullmatch(other.name)
        if match and not _is_alive(int(match[1])):
            with contextlib.suppress(OSError):  # another process may be faster
                other.unlink()


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere the question would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it belongs to another user, or there is no such number
        return True
    return True


def _flush_folder(folder: Path) -> None:
    """Flush a rename to the disk, where folders can be opened."""
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder may be writable and not readable
        return
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot; the file itself is whole on any of them.
        if error.errno not in _NOT_SUPPORTED:
            raise
    finally:
        os.close(handle)
