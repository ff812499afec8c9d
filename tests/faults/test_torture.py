"""A hundredth of what ``make torture`` injects."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

TORTURE = Path(__file__).parents[2] / "benchmarks" / "torture.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TORTURE.exists(), reason="not in an installed package"),
    pytest.mark.skipif(sys.platform != "linux", reason="it forks, and reads /proc"),
]


def test_a_hundredth_holds(tmp_path):
    results = tmp_path / "results.json"
    command = [sys.executable, TORTURE, "--scale", "0.01", "--results", results]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(results.read_text())
    tried = {name: part["tried"] for name, part in found.items() if name != "dkae"}
    assert tried == {"kills": 2, "saves": 2, "files": 100, "states": 20}
