"""Files that mean harm are refused at once, and cost nothing: all of them in one process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.persistence import hostile

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")

NAMES = [
    *hostile.HEADERS,
    *hostile.TEXTS,
    *hostile.other_files(),
    *map(hostile.safe, hostile.STATES),
    *(
        hostile.safe(f"{kind}: {name}")
        for kind in hostile.CHANGES
        for name in hostile.CHANGES[kind]
    ),
    "a folder",
    "a pipe",
    "a loop",
]
MAX_SECONDS, MAX_MEGABYTES = 1.0, 200


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return for each file what became of it, and its cost."""
    command = [sys.executable, "-m", hostile.__name__, tmp_path_factory.mktemp("hostile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = map(json.loads, done.stdout.splitlines())
    return {name: rest for name, *rest in rows}


def test_there_are_many(results):
    assert sorted(results) == sorted(NAMES)
    assert len(NAMES) > 200


@pytest.mark.parametrize("name", NAMES)
def test_it_is_refused(name, results):
    result, seconds, megabytes = results[name]
    assert result.startswith("refused: "), result
    assert len(result) < 1000
    assert seconds < MAX_SECONDS
    assert megabytes < MAX_MEGABYTES
