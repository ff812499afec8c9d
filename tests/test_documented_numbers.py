"""README, docs and their figures say what stands in the results that are committed."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest
from dkae_study.contrasts import CONTRASTS, contrast_recipes
from dkae_study.denoising import DENOISING
from dkae_study.intervals import estimate
from dkae_study.report.study import write_figures
from dkae_study.results import read_runs, select
from dkae_study.sweeps import LAMBDA
from PIL import Image
from scipy.stats import spearmanr

ROOT = Path(__file__).parents[1]
RESULTS, FIGURES = ROOT / "results" / "laptop", ROOT / "docs" / "images" / "study"

pytestmark = pytest.mark.skipif(not RESULTS.exists(), reason="only in the repository")


@pytest.fixture(scope="module")
def runs():
    return read_runs(RESULTS)


@pytest.fixture(scope="module")
def study():
    return (ROOT / "docs" / "study.md").read_text(encoding="utf-8")


def row_of(text: str, start: str) -> list[str]:
    """Return the cells of the row of a table that starts with these words."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("recipe", ["paper", "default"])
@pytest.mark.parametrize(
    ("start", "in_readme", "experiment", "path", "digits"),
    [
        ("Table 1: L_c(P, K_I)", "L_c to the ideal kernel: prior", "ideal-kernel", ["P"], 3),
        ("Table 1: L_c(K_AE, K_I)", "… of a plain auto", "ideal-kernel", ["K_AE"], 3),
        ("Table 1: L_c(C, K_I), dkAE", "… of dkAE", "ideal-kernel", ["C"], 3),
        (
            "Fig. 5: dkAE is nearer",
            "dkAE is nearer to the prior",
            "kernel-pca",
            ["crossing_out_of_sample"],
            1,
        ),
        (
            "Table 2: denoising, dkAE + PCA",
            "denoising with 32 components: dkAE",
            "denoising",
            ["5 and 6", "dkAE + PCA", "mse"],
            4,
        ),
        (
            "Table 2: denoising, kernel PCA",
            "denoising with 32 components: kernel",
            "denoising",
            ["5 and 6", "kernel PCA, PCK", "mse"],
            4,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_rows_with_an_interval(runs, study, start, in_readme, experiment, path, digits, recipe):
    chosen = [r for r in select(runs, experiment, recipe) if r.point in (None, "clean")]
    values = []
    for run in chosen:
        value = run.scores
        for name in path:
            value = value[name]
        values.append(value)
    expected = estimate(values).format(digits)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for cells in (row_of(study, start), row_of(readme, in_readme)):
        cell = cells[["paper", "default"].index(recipe) + 2]
        assert cell == expected or (recipe == "default" and cell.startswith("the same"))


@pytest.mark.parametrize("recipe", ["paper", "default"])
@pytest.mark.parametrize(
    ("start", "experiment", "loss", "ends"),
    [
        ("Fig. 3a: L_r rises", "lambda", "reconstruction_mse", (0, 1)),
        ("Fig. 3a: L_c falls", "lambda", "alignment_loss", (0, 1)),
        ("Fig. 3b: L_r falls", "code-size", "reconstruction_mse", (10, 2000)),
        ("Fig. 3b: so does L_c", "code-size", "alignment_loss", (10, 2000)),
    ],
)
def test_ends_of_the_sweeps(runs, study, start, experiment, loss, ends, recipe):
    losses = {r.point: r.scores["validation"][loss] for r in select(runs, experiment, recipe)}
    cell = row_of(study, start)[["paper", "default"].index(recipe) + 2]
    numbers = cell.split(" (")[0].split(" → ")
    for number, point in zip(numbers, ends, strict=True):
        assert float(number) == round(losses[point], len(number.split(".")[1]))


@pytest.mark.parametrize("recipe", ["paper", "default"])
def test_growth_of_the_reconstruction_error(runs, study, recipe):
    growth = next(c for c in CONTRASTS if c.text.startswith("Largest L_r"))
    found = getattr(contrast_recipes(growth, runs), recipe)[0].mean
    cell = row_of(study, "Fig. 3a: both nearly constant")[["paper", "default"].index(recipe) + 2]
    assert f"L_r grows {found:.1f} times" in cell


@pytest.mark.parametrize(
    ("start", "method"),
    [
        ("as it came in |", "noisy input"),
        ("linear PCA |", "linear PCA"),
        ("kernel PCA |", "kernel PCA, PCK"),
        *(
            (f"{name}, `{recipe}` |", f"{name}, {recipe}")
            for name in ("plain autoencoder + PCA", "dkAE + PCA")
            for recipe in ("paper", "default")
        ),
        ("dkAE without PCA, `paper` |", "dkAE, paper"),
        ("dkAE without PCA, `default` |", "dkAE, default"),
    ],
)
def test_table_of_clipped_noise(study, start, method):
    expected = read_json("clipped_noise")[method].values()
    for cell, value in zip(row_of(study, start)[1:], expected, strict=True):
        assert value == cell or (method == "noisy input" and value.startswith(cell))


@pytest.mark.parametrize("recipe", ["paper", "default"])
def test_table_of_what_the_crossing_depends_on(study, recipe):
    for variant, scores in read_json("sensitivity").items():
        row = row_of(study, f"`{recipe}`, {variant.replace('the study', 'the study |')}")
        names = ("crossing", "L_c(C, P)", "C - P", "L_r")
        found = [float(cell.replace("−", "-")) for cell in row[1:]]
        assert found == [scores[recipe][name] for name in names]


@pytest.mark.parametrize("recipe", ["paper", "default"])
def test_the_rule_for_trends_that_was_given_up(runs, study, recipe):
    losses = {r.point: r.scores["validation"] for r in select(runs, "lambda", recipe)}
    ranks = spearmanr(list(losses), [loss["alignment_loss"] for loss in losses.values()])
    found = f"{ranks.statistic:.2f}".replace("-", "−")
    assert f"{found} (`{recipe}`)" in " ".join(study.split())
    assert f"{found} {recipe}" in " ".join(LAMBDA.assumptions)


@pytest.mark.parametrize("recipe", ["paper", "default"])
def test_components_of_two_digits_are_those_of_the_study(runs, recipe):
    """On another processor a network is another one, by a per cent."""
    ours = read_json("rows_of_components")["of 5 and 6"][f"dkAE + PCA, {recipe}"]
    study = [r for r in select(runs, "denoising", recipe) if r.point == "clean"][: len(ours)]
    theirs = [run.scores["5 and 6"]["dkAE + PCA"]["mse"] for run in study]
    assert ours == pytest.approx(theirs, rel=0.02)


def test_errors_with_components_of_all_digits(study):
    errors = read_json("rows_of_components")["of all digits"]
    names = ("dkAE + PCA, paper", "dkAE + PCA, default", "kernel PCA, PCK", "linear PCA")
    paper, default, kernel, linear = (estimate(errors[name]).format() for name in names)
    text = " ".join(study.split())
    assert f"dkAE + PCA has {paper} (`paper`) and {default} (`default`)" in text
    assert f"kernel PCA has {kernel} and linear PCA {linear}" in text
    page = " ".join(DENOISING.differences)
    assert (
        f"dkAE + PCA has {paper} (paper) and {default} (default), and kernel PCA {kernel}" in page
    )


def read_json(name: str):
    path = ROOT / "benchmarks" / "results" / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_mean_of_clipped_noise_is_that_of_many_draws():
    path = ROOT / "benchmarks" / "clipped_noise.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    x = np.array([0.0, 0.1, 0.5, 0.8, 1.0])
    noise = 0.25 * np.random.default_rng(0).standard_normal((200_000, 5))
    draws = (x + noise).clip(0, 1)
    np.testing.assert_allclose(benchmark.mean_of_clipped(x, 0.25), draws.mean(axis=0), atol=2e-3)


def test_figures_are_drawn_from_them(tmp_path):
    drawn = {path.name: path for path in write_figures(RESULTS, tmp_path)}
    kept = {path.name: path for path in FIGURES.iterdir()}
    assert kept.keys() <= drawn.keys()
    for name, path in kept.items():
        if path.suffix == ".png":
            a, b = (np.asarray(Image.open(p).convert("L"), float) for p in (path, drawn[name]))
            assert a.shape == b.shape, name
            assert np.abs(a - b).mean() < 0.5, name  # fonts may differ by a few pixels
        else:
            assert rounded(path) == rounded(drawn[name]), name


def rounded(path: Path) -> str:
    """Return an SVG with its numbers to a tenth of a point."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.1f}", text)
