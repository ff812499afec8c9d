"""The examples run and show what they say. Two longer ones are left to their readers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def output_of(name: str) -> str:
    command = [sys.executable, "-W", "error", EXAMPLES / name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_pca_falls_out():
    reached, best, correlation = map(
        float, re.findall(r"(\d\.\d+)$", output_of("pca_falls_out.py"), re.M)
    )
    assert best - 1e-3 < reached <= best + 1e-6
    assert correlation > 0.999


def test_strings():
    output = output_of("strings.py")
    assert float(re.search(r"kernel (\d\.\d+)", output)[1]) > 0.9
    assert "nearest to walks: walk" in output
    assert set(output.split()[-7:]) == set("walking")
