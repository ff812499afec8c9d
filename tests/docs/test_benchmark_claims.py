"""What the documentation says of the results of benchmarks."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def results(name: str) -> dict:
    """Return what a benchmark has written; skip the test if there is nothing."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no results of benchmarks/{name}.py")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def scores():
    """Return L_c, 1 − CKA and 1 − R² on the test parts, by data set, kernel and method."""
    values = defaultdict(list)
    for name, record in results("recipes").items():
        data, kernel, method, _ = name.split(" / ")
        values[data, kernel, method].append(list(record["test"].values())[:3])
    return {key: np.mean(seeds, axis=0) for key, seeds in values.items()}


def wins(scores, score, method, other):
    """Return in how many rows one method has the smaller number, and how many rows there are."""
    places = {key[:2] for key in scores}
    return sum(scores[*p, method][score] < scores[*p, other][score] for p in places), len(places)


def test_recipes_are_of_several_kinds_of_data_and_three_kernels(scores):
    data, kernels, _ = (set(names) for names in zip(*scores, strict=True))
    assert len(data) >= 6
    assert kernels == {"rbf", "laplacian", "pck"}


@pytest.mark.parametrize("score", [0, 1, 2])
def test_the_computed_map_beats_nystroem_and_ridge_everywhere(scores, score):
    assert wins(scores, score, "InvertibleNystroem", "Nystroem + ridge") == (18, 18)


def test_the_computed_map_is_nearer_to_the_kernel_than_the_learned_one(scores):
    n_wins, n = wins(scores, 0, "InvertibleNystroem", "DeepKernelizedAutoencoder")
    assert n_wins >= 0.9 * n


def test_computed_codes_are_as_fast_as_those_of_scikit_learn():
    for found in results("nystroem").values():
        verdicts = {v["what"]: v["verdict"] for v in found["verdicts"]}
        assert verdicts["transform"] == "holds"


def test_the_maps_reach_their_aims_on_mnist():
    found = results("mnist_recipes")

    def mean(method, score):
        records = [r for name, r in found.items() if name.startswith(f"rbf / {method} / ")]
        return np.mean([record[score] for record in records])

    learned = "InvertibleNystroem, mlp"
    assert mean(learned, "alignment_loss") <= 0.0055
    assert mean(learned, "one_minus_cka") <= 0.0017
    assert mean(learned, "mse") <= 0.0022
    assert mean("InvertibleNystroem, kernel_ridge", "mse") < found["PCA 128"]["mse"]
