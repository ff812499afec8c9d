"""What the documentation says of the results of benchmarks/recipes.py."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "recipes.json"

pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="not in an installed package")


@pytest.fixture(scope="module")
def found():
    """Return the mean of each score on the test parts, by data set, kernel and method."""
    values = defaultdict(list)
    for name, record in json.loads(RESULTS.read_text(encoding="utf-8")).items():
        data, kernel, method, _ = name.split(" / ")
        values[data, kernel, method].append(list(record["test"].values()))
    return {key: np.mean(scores, axis=0) for key, scores in values.items()}


def test_it_is_of_several_kinds_of_data_and_three_kernels(found):
    data, kernels, _ = (set(names) for names in zip(*found, strict=True))
    assert len(data) >= 6
    assert kernels == {"rbf", "laplacian", "pck"}


def test_the_kernel_layer_beats_nystroem_and_ridge_in_all_numbers_everywhere(found):
    for data, kernel, method in found:
        if method == "kernel layer":
            assert (found[data, kernel, method] < found[data, kernel, "Nystroem + ridge"]).all()


def wins(found, score, method, other):
    """Return in how many rows one method has the smaller number."""
    places = {key[:2] for key in found}
    return sum(found[*p, method][score] < found[*p, other][score] for p in places), len(places)


def test_the_counts_on_the_page_are_those_of_the_results(found):
    assert wins(found, 0, "kernel layer", "network") == (17, 18)
    assert wins(found, 2, "kernel PCA + pre-image", "kernel layer") == (5, 18)
