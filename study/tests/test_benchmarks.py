"""Benchmarks of the study: they agree with it, and its declarations quote them as they are."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

STUDY = Path(__file__).parents[1]
RESULTS = STUDY / "results" / "laptop"

pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="only in the repository")


def read_json(name: str):
    path = STUDY / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_mean_of_clipped_noise_is_that_of_many_draws():
    path = STUDY / "benchmarks" / "clipped_noise.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    x = np.array([0.0, 0.1, 0.5, 0.8, 1.0])
    noise = 0.25 * np.random.default_rng(0).standard_normal((200_000, 5))
    draws = (x + noise).clip(0, 1)
    np.testing.assert_allclose(benchmark.mean_of_clipped(x, 0.25), draws.mean(axis=0), atol=2e-3)
