"""Operations in code space from the command line are those of the Python API."""

import numpy as np
import pytest

from dkae import codespace
from dkae.datasets.files import read_array
from tests.cli.helpers import ENDINGS, fail, succeed


@pytest.mark.parametrize("ending", ENDINGS)
def test_denoise_writes_what_the_function_returns(ending, folder, model, rows, tmp_path):
    noisy, out = tmp_path / "noisy.npy", tmp_path / f"clean{ending}"
    np.save(noisy, rows + np.float32(0.1))
    args = ["--clean", folder / "rows.npy", "--components", 2, "-o", out]
    result = succeed("denoise", folder / "model.safetensors", noisy, *args)
    assert result.stdout == f"{out}: rows of shape (40, 6)\n"
    expected = codespace.denoise(model, rows + np.float32(0.1), rows, 2)
    np.testing.assert_allclose(read_array(str(out)), expected, atol=1e-6)


def test_interpolate_writes_what_the_function_returns(folder, model, rows, tmp_path):
    out = tmp_path / "path.npy"
    args = ["--between", 3, 7, "--steps", 5, "-o", out]
    succeed("interpolate", folder / "model.safetensors", folder / "rows.npy", *args)
    expected = codespace.interpolate(model, rows[3], rows[7], 5)
    np.testing.assert_allclose(np.load(out), expected, atol=1e-6)


def test_too_many_components_are_one_clear_line(folder, tmp_path):
    rows = folder / "rows.npy"
    args = ["--clean", rows, "-o", tmp_path / "clean.npy"]
    line = fail("denoise", folder / "model.safetensors", rows, *args)
    assert "n_components=32 is too large" in line


def test_a_row_that_is_not_there_is_named(folder, tmp_path):
    args = ["--between", 0, 40, "-o", tmp_path / "path.npy"]
    line = fail("interpolate", folder / "model.safetensors", folder / "rows.npy", *args)
    assert "--between 40: DATA has rows 0 to 39" in line
