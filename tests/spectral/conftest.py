"""Small matrices: one thread does it."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="package", autouse=True)
def _one_thread():
    # Two threads that have to share a core with other work wait for each other most of the time.
    with threadpool_limits(1):
        yield
