"""Files in every format, a fitted model, and a training that must not happen."""

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import TINY, make_estimator, succeed


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((40, 6), dtype=np.float32)


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """Return a folder with the same rows in every format, and a fitted model."""
    folder = tmp_path_factory.mktemp("inputs")
    np.save(folder / "rows.npy", rows)
    np.savez(folder / "rows.npz", rows)
    np.savez(folder / "two.npz", rows=rows, gram=rows @ rows.T)
    np.save(folder / "gram.npy", rows @ rows.T)
    bare = "".join(",".join(f"{x:.9g}" for x in row) + "\n" for row in rows)
    (folder / "bare.csv").write_text(bare, encoding="utf-8")
    (folder / "header.csv").write_text("a,b,c,d,e,f\n" + bare, encoding="utf-8")
    succeed("fit", folder / "rows.npy", "-o", folder / "model.safetensors", *TINY)
    return folder


@pytest.fixture(scope="module")
def model(rows):
    """Return what the Python API makes of the same rows."""
    return make_estimator().fit(rows)


@pytest.fixture
def no_training(monkeypatch):
    def fit(*args, **kwargs):
        pytest.fail("the command has trained before it refused")

    monkeypatch.setattr(DeepKernelizedAutoencoder, "fit", fit)
