"""The examples run and show what they say. Two longer ones are left to their readers."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path
from unittest import mock

import matplotlib.image
import matplotlib.pyplot as plt

EXAMPLES = Path(__file__).parents[2] / "examples"


def output_of(name: str, folder: Path = EXAMPLES) -> str:
    """Return what an example prints; in this process, because importing torch takes seconds."""
    output = io.StringIO()
    alone = mock.patch.object(sys, "argv", [name])
    with alone, contextlib.chdir(folder), contextlib.redirect_stdout(output):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    plt.close("all")
    return output.getvalue()


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


def test_plot_model(tmp_path):
    assert output_of("plot_model.py", tmp_path) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["plot_model.png"]
    image = matplotlib.image.imread(tmp_path / "plot_model.png")
    assert image.shape[:2] == (1050, 1800)
    # All four quarters have ink and colour.
    for half in (image[:500], image[550:]):
        assert min(quarter.std() for quarter in (half[:, :850], half[:, 950:])) > 0.05


def test_code_space(tmp_path):
    output = output_of("code_space.py", tmp_path)
    noisy, pixels, codes = map(float, re.findall(r"(0\.\d{4})$", output, re.M))
    assert codes < pixels < noisy
    line = re.search(r"from a 3 to an 8 +(.+)", output)[1].split()
    assert (line[0], line[-1]) == ("3", "8")
    changes = re.findall(r"(\d+)% before, (\d+)% after", output)
    assert [int(after) > int(before) + 20 for before, after in changes] == [True, True]
    image = matplotlib.image.imread(tmp_path / "code_space.png")
    assert image.shape[1] > 1.5 * image.shape[0] > 900
    # White paper with ink on it.
    assert image[0, 0].tolist() == [1, 1, 1, 1]
    assert image[..., 0].min() < 0.1
    assert [path.name for path in tmp_path.iterdir()] == ["code_space.png"]


def test_convolutional():
    output = output_of("convolutional.py")
    assert "(397, 1, 8, 8)" in output
    alignment, error = map(float, re.findall(r"(0\.\d{4})$", output, re.M))
    assert alignment > 0.95
    assert error < 0.03


def test_own_measure():
    output = output_of("own_measure.py")
    n_epochs = int(re.search(r"stopped after (\d+) epochs of 30", output)[1])
    assert 3 < n_epochs < 30  # by the rule of the callback
    assert len(re.findall(r"^fine-tuning \d+/30: L_r 0.\d+  L_c", output, re.M)) == n_epochs
    assert re.search(r"^decoder 1/10: L_r 0.\d+$", output, re.M)
    assert float(re.search(r"new rows (\d\.\d+)", output)[1]) > 0.94


def test_sequences():
    output = output_of("sequences.py")
    assert float(re.search(r"new waves (\d\.\d+)", output)[1]) > 0.8
    assert int(re.search(r"same frequency: (\d+)%", output)[1]) > 75  # a third by chance
    assert "(100, 24, 1)" in output


def test_fitted_kernel():
    output = output_of("fitted_kernel.py")
    network, nystroem, pca, overlap = map(float, re.findall(r"(0\.\d{4})$", output, re.M))
    assert 0.8 < network < pca  # no 32 components are nearer than those of kernel PCA, nearly
    assert abs(nystroem - pca) < 0.01
    assert overlap > 0.85
    assert int(re.search(r"from (\d+)% of the entries", output)[1]) <= 50


def test_three_maps():
    output = output_of("three_maps.py")
    exact, landmarks, learned = (float(a) for a in re.findall(r"alignment (0\.\d{4})", output))
    assert exact > landmarks > 0.99
    assert 0.97 < learned < exact
    assert min(map(float, re.findall(r"R² (0\.\d+)", output))) > 0.9


def test_quickstart_is_that_of_the_readme():
    readme = (EXAMPLES.parent / "README.md").read_text(encoding="utf-8")
    _, _, code = (EXAMPLES / "quickstart.py").read_text(encoding="utf-8").partition("\n\n")
    assert f"```python\n{code}```" in readme
