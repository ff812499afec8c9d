"""Files that appear whole or not at all: a failed write leaves the old file as it was."""

import contextlib
import os
import stat
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

#: The umask belongs to the process, and can be read only by setting it.
_UMASK_LOCK = threading.Lock()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path` that replaces it if the block succeeds."""
    path = path.resolve()  # a link keeps pointing to the file that it named
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(_mode_of(path))
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _mode_of(path: Path) -> int:
    """Return the mode of the file to replace, or that of a new file."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    with _UMASK_LOCK:
        umask = os.umask(0)
        os.umask(umask)
    return 0o666 & ~umask
