"""What `dkae score` prints is what the Python API returns, beside what a model must beat."""

import json

import numpy as np
import pytest
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel

from dkae.baselines import compare_with_baselines
from dkae.metrics import centered_alignment_score
from tests.cli.helpers import SOURCES, TINY, fail, succeed


@pytest.mark.parametrize("source", SOURCES)
def test_score_equals_the_python_api(source, folder, rows, model):
    printed = json.loads(succeed("score", folder / "model.safetensors", folder / source).stdout)
    alignment = model.score(rows)
    back = model.inverse_transform(model.transform(rows))
    P = rbf_kernel(rows.astype(float), gamma=model.kernel_.gamma_)
    expected = {
        "rows": 40,
        "alignment": alignment,
        "constant_kernel": float(P.sum() / (len(P) * np.linalg.norm(P))),
        "alignment_loss": (2 - 2 * alignment) ** 0.5,
        "centered_alignment": centered_alignment_score(model, rows),
        "reconstruction_mse": float(np.mean((back - rows) ** 2)),
        "r2": r2_score(rows, back, multioutput="variance_weighted"),
    }
    assert printed == pytest.approx(expected, rel=1e-5)


def test_score_with_baselines_equals_the_python_api(folder, rows, model, tmp_path):
    np.save(tmp_path / "train.npy", train := rows[::2] + 0.1)
    args = "score", folder / "model.safetensors", folder / "rows.npy", "--baselines"
    printed = json.loads(succeed(*args, "--train", tmp_path / "train.npy").stdout)
    expected = [row._asdict() for row in compare_with_baselines(model, rows, train)]
    for row, other in zip(printed["baselines"], expected, strict=True):
        assert (row.pop("name"), row.pop("note")) == (other.pop("name"), other.pop("note"))
        assert row == pytest.approx(other, rel=1e-5, abs=1e-7)
    assert printed["baselines"][0]["alignment"] == printed["alignment"]
    assert printed["baselines"][1]["alignment"] == pytest.approx(printed["constant_kernel"])


def test_score_with_baselines_of_the_scored_rows_says_so(folder):
    args = "score", folder / "model.safetensors", folder / "rows.npy", "--baselines"
    _, *rivals = json.loads(succeed(*args).stdout)["baselines"]
    assert all("which flatters it" in rival["note"] for rival in rivals)


def test_score_with_baselines_of_a_gram_lists_what_needs_a_kernel(folder):
    args = "score", folder / "model.safetensors", folder / "rows.npy", "--baselines"
    printed = json.loads(succeed(*args, "--gram", folder / "gram.npy").stdout)["baselines"]
    missing = [row["name"] for row in printed if row["alignment"] is None]
    assert missing == ["Nystroem + ridge", "kernel PCA"]


def test_score_has_no_use_for_training_rows_without_baselines(folder):
    args = "score", folder / "model.safetensors", folder / "rows.npy", "--train", "digits"
    assert fail(*args).startswith("Error: --train is for --baselines, which is missing: add it")


def test_score_with_a_gram(folder, rows, model):
    args = "score", folder / "model.safetensors", folder / "rows.npy"
    printed = json.loads(succeed(*args, "--gram", folder / "gram.npy").stdout)
    assert printed["alignment"] == model.score(rows, gram=rows @ rows.T)


@pytest.mark.filterwarnings("ignore:.* does not hold a kernel")
def test_score_of_a_model_without_a_kernel_asks_for_the_gram(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--gram", folder / "gram.npy")
    assert "pass gram=" in fail("score", out, folder / "rows.npy")
