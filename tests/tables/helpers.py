"""Reading a whole table, and a disk that is full."""

import contextlib

import pytest

from dkae.tables import TableReader


def read_table(source, **wishes):
    return TableReader(str(source), **wishes).read()


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
