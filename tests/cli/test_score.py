"""`dkae score` prints what the Python API returns, and the yardsticks."""

import json

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel

from dkae import KernelPCA, load, save
from dkae.baselines import compare_with_baselines
from tests.cli.helpers import fail, succeed


def cosine(a, b):
    return np.sum(a * b) / np.linalg.norm(a) / np.linalg.norm(b)


@pytest.mark.parametrize("source", ["rows.npy", "rows.csv"])
def test_score_equals_independent_numbers(source, folder, rows, model):
    saved = folder / ("named.safetensors" if source == "rows.csv" else "model.safetensors")
    printed = json.loads(succeed("score", saved, folder / source).stdout)
    codes = model.transform(rows).astype(float)
    back = model.inverse_transform(model.transform(rows))
    P, C = rbf_kernel(rows.astype(float), gamma=model.kernel_.gamma_), codes @ codes.T
    H = np.eye(len(P)) - 1 / len(P)
    expected = {
        "rows": 40,
        "alignment": cosine(P, C),
        "constant_kernel": cosine(P, np.ones_like(P)),
        "alignment_loss": (2 - 2 * cosine(P, C)) ** 0.5,
        "centered_alignment": cosine(H @ P @ H, H @ C @ H),
        "reconstruction_mse": np.mean((back - rows) ** 2),
        "r2": r2_score(rows, back, multioutput="variance_weighted"),
    }
    assert printed == pytest.approx(expected, rel=1e-5)
    assert printed["centered_alignment"] == pytest.approx(model.score(rows), rel=1e-5)


@pytest.mark.parametrize("scale", [1, 2])
def test_gaps_do_not_count(scale, folder):
    """Errors are those of the known entries, and the variance too; baselines see gaps filled."""
    saved, data = folder / "gaps.safetensors", np.load(folder / "gaps.npy") / np.float32(scale)
    args = "score", saved, folder / "gaps.npy", "--baselines", folder / "gaps.npy", "--scale", scale
    printed = json.loads(succeed(*args).stdout)
    model = load(saved)
    error = (model.inverse_transform(model.transform(data)) - data) ** 2
    assert printed["reconstruction_mse"] == pytest.approx(np.nanmean(error), rel=1e-5)
    variance = np.nansum((data - np.nanmean(data, axis=0)) ** 2)
    assert printed["r2"] == pytest.approx(1 - np.nansum(error) / variance, rel=1e-5)
    assert "PCA" in [row["name"] for row in printed["baselines"]]


def test_score_with_baselines_equals_the_python_api(folder, rows, model, tmp_path):
    np.save(tmp_path / "train.npy", train := rows[::2] + 0.1)
    args = "score", folder / "model.safetensors", folder / "rows.npy", "--baselines"
    printed = json.loads(succeed(*args, tmp_path / "train.npy").stdout)
    expected = [row._asdict() for row in compare_with_baselines(model, rows, train)]
    assert [row["name"] for row in printed["baselines"]] == [row["name"] for row in expected]
    for row, other in zip(printed["baselines"], expected, strict=True):
        numbers = {name: value for name, value in other.items() if isinstance(value, float)}
        assert {name: row[name] for name in numbers} == pytest.approx(numbers, rel=1e-5, abs=1e-7)


def test_score_with_a_gram(folder, rows, model):
    args = "score", folder / "model.safetensors", folder / "rows.npy", "--gram"
    printed = json.loads(succeed(*args, folder / "gram.npy").stdout)
    C, P = (a.astype(float) @ a.T for a in (model.transform(rows), rows))
    assert printed["alignment"] == pytest.approx(cosine(P, C), rel=1e-6)


@pytest.mark.parametrize(("center", "n_lines"), [(True, 1), (False, 0)])
def test_centred_codes_have_another_measure(center, n_lines, folder, rows, tmp_path):
    saved = tmp_path / "m.safetensors"
    save(KernelPCA(2, center=center).fit(rows), saved)
    result = succeed("score", saved, folder / "rows.npy")
    printed = json.loads(result.stdout)
    assert (printed["alignment"] < printed["constant_kernel"]) == center
    assert result.stderr.count("judge them by centered_alignment") == n_lines


def test_wrong_calls(folder, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((9, 9)))
    args = "score", folder / "model.safetensors", folder / "rows.npy"
    line = fail(*args, "--baselines", tmp_path / "wide.npy")
    assert "train has rows of" in line or "9 features" in line
    assert "gram has shape (40, 4)" in fail(*args, "--gram", folder / "rows.npy")
