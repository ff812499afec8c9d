"""Files that appear whole or not at all, and paths that one process has to itself.

A file is written under a temporary name, brought to the disk, and renamed; then the folder is
brought to the disk too. Whatever fails in between leaves the old file as it was. A process that is
killed leaves its temporary file behind; the next write to the same path removes it.
"""

import contextlib
import errno
import os
import platform
import re
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":  # where nothing is locked
    import fcntl

#: What file systems say that cannot do a thing.
_NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS)
#: The umask belongs to the process, and can be read only by setting it.
_UMASK_LOCK = threading.Lock()
#: Part of temporary names: a folder may be shared by machines, and a number of a process is of one.
_HOST = re.sub(r"[^A-Za-z0-9]", "", platform.node())[:16] or "host"


@contextlib.contextmanager
def replacing(path: Path, keep: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path` that replaces it if the block succeeds.

    The file that was there is kept as `keep`, in the same folder, if that is given.
    """
    path = path.resolve()  # a link keeps pointing to the file that it named
    _remove_leftovers(path)
    handle, temporary = _temporary(path)
    try:
        os.close(handle)
        yield temporary
        with temporary.open("r+b") as file:  # Windows syncs only what it may write
            os.fsync(file.fileno())
        temporary.chmod(_mode_of(path))
        if keep is not None and path.exists():
            path.replace(keep)
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary(path: Path) -> tuple[int, Path]:
    """Return a new file beside `path`, under a name that says whose it is."""
    handle, name = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.{_HOST}-{os.getpid()}-", suffix=path.suffix
    )
    return handle, Path(name)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of this path whose process has died on this machine."""
    name = re.compile(rf"\.{re.escape(path.name)}\.{_HOST}-(\d+)-\w+{re.escape(path.suffix)}")
    for other in path.parent.glob(f".{_without_wildcards(path.name)}.{_HOST}-*"):
        match = name.fullmatch(other.name)
        if match and not _is_alive(int(match[1])):
            with contextlib.suppress(OSError):  # another process may be faster
                other.unlink()


def _without_wildcards(name: str) -> str:
    return re.sub(r"[][*?]", "?", name)


def _is_alive(process: int) -> bool:
    if os.name != "posix":  # elsewhere the question would end the process
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is somebody else's, or no such number can be
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Bring a rename to the disk, where folders can be opened."""
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # one may write to a folder that one may not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems of networks cannot; the file itself is whole on any of them.
        if error.errno not in _NOT_SUPPORTED:
            raise
    finally:
        os.close(handle)


def _mode_of(path: Path) -> int:
    """Return the mode of the file to replace, or that of a new file."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    with _UMASK_LOCK:
        umask = os.umask(0)
        os.umask(umask)
    return 0o666 & ~umask


def check_writable(path: Path, name: str) -> None:
    """Refuse a path whose folder cannot be written to, before any work; `name` is a parameter's."""
    folder = path.resolve().parent
    if path.is_dir():
        raise ValueError(f"{name}={path} is a folder: pass the path of a file")
    if not folder.is_dir():
        raise ValueError(f"{name}={path} lies in a folder that does not exist: make it first")
    try:
        handle, probe = _temporary(path.resolve())
    except OSError as error:
        raise ValueError(
            f"{name}={path} cannot be written ({error.strerror}): pass a path in a folder of yours"
        ) from error
    try:
        os.close(handle)
    finally:
        probe.unlink(missing_ok=True)


@contextlib.contextmanager
def owning(path: Path, what: str) -> Iterator[None]:
    """Keep other processes from the same path meanwhile; `what` names it in an error.

    The lock is the system's, and ends with the process: one that was killed holds nothing.
    """
    lock = path.parent / f".{path.name}.lock"
    handle = _lock(lock, what)
    try:
        yield
    finally:
        try:
            if sys.platform != "win32":  # which removes no file that is open
                lock.unlink(missing_ok=True)  # while it is held: who opens it meanwhile looks again
        finally:
            os.close(handle)


def _flock(handle: int) -> None:
    if sys.platform != "win32":
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock(lock: Path, what: str) -> int:
    while True:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _flock(handle)
        except BlockingIOError as error:
            os.close(handle)
            raise ValueError(
                f"{what} is in use by another process or fit: wait for it, or choose another path"
            ) from error
        except OSError as error:
            if error.errno not in _NOT_SUPPORTED:
                os.close(handle)
                raise
        # The former owner may have removed it between the two calls.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(handle).st_ino == lock.stat().st_ino:
                return handle
        os.close(handle)
