"""The examples of docs/yardsticks.md run, and its table shows what the page says of it."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

from dkae.baselines import RIVALS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "yardsticks.md"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="only in the repository")


def run_example(number):
    """Run an example of the page; return its names, and what it prints."""
    code = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    names, output = {"__name__": "example"}, io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code[number], f"{PAGE.name}, example {number}", "exec"), names)
    return names, output.getvalue()


@pytest.mark.slow
def test_rivals():
    _, output = run_example(0)
    rows = dict(re.findall(r"^(.+?) +CKA .* R² (\S+)$", output, re.M))
    assert list(rows) == ["dkae", *RIVALS]
    table = re.findall(r"^\| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.M)
    assert set(RIVALS) <= set(table)
    assert float(rows["constant kernel"]) < 0.01 < 0.7 < float(rows["PCA"])


@pytest.mark.slow
def test_search():
    names, output = run_example(1)
    assert names["search"].best_params_ == {"deepkernelizedautoencoder__gamma": 0.5}
    assert "'deepkernelizedautoencoder__gamma': 0.5" in output


# --- what the page says of the table -------------------------------------------------------------


@pytest.fixture(scope="module", params=["frobenius", "centered"])
def found(request):
    results = json.loads((ROOT / "benchmarks/results/choose_gamma.json").read_text("utf-8"))
    return request.param, {float(factor): by for factor, by in results[request.param].items()}


def best(table, name):
    return max(table, key=lambda factor: table[factor][name])


def test_alignment_is_best_below_the_median_and_no_better_than_its_floor(found):
    loss, table = found
    assert best(table, "alignment") < 1
    if loss == "frobenius":
        assert min(by["alignment"] for factor, by in table.items() if factor <= 1) > 0.999
    assert table[1e-4]["alignment"] < table[1e-4]["constant"]


def test_centred_alignment_prefers_what_the_loss_learns_easily(found):
    loss, table = found
    expected = {"frobenius": 0.3333, "centered": 1e-4}
    assert best(table, "score") == expected[loss]


def test_labels_choose_ten_times_the_median_and_a_classifier_three_times(found):
    _, table = found
    assert (best(table, "label_alignment"), best(table, "classifier")) == (10, 3)
    assert table[3]["classifier"] - table[10]["classifier"] < 0.01


def test_r2_is_nearly_flat(found):
    values = [by["r2"] for by in found[1].values()]
    assert max(values) - min(values) < 0.02
