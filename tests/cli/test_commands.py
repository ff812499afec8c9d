"""The command line does what the Python API does, with tables of any format."""

import json
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import click
import numpy as np
import pytest

import dkae
from dkae import codespace, load
from dkae.cli import main
from tests.cli.helpers import (
    BESIDE,
    EXAMPLES,
    NAMES,
    TINY,
    fail,
    make_estimator,
    run,
    run_python,
    succeed,
)
from tests.tables.helpers import read_table

SOURCES = ["rows.npy", "rows.csv", "rows.parquet", "clean.tsv"]
OUTPUTS = [".npy", ".csv", ".tsv", ".parquet"]

# --- help and version ----------------------------------------------------------------------------


def test_version_and_console_script():
    assert succeed("--version").stdout == f"dkae, version {dkae.__version__}\n"
    (script,) = entry_points(group="console_scripts", name="dkae")
    assert script.load() is main


@pytest.mark.parametrize("name", ["", *sorted(main.commands)])
def test_help_has_examples_that_are_valid_usage(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = succeed(*name.split(), "-h").stdout
    examples = [example for example in EXAMPLES if f"    {example}\n" in page]
    assert examples
    for example in examples:
        for path in ("model.safetensors", "codes.npy", "rows.csv", "gram.npy"):
            Path(path).touch()
        _, command, *args = shlex.split(example)
        with click.Context(main, help_option_names=["-h", "--help"]) as context:
            assert main.commands[command].make_context(command, args, context).params


@pytest.mark.slow
def test_help_imports_nothing_heavy():
    code = """if True:
        import sys
        from dkae.cli import main
        for args in (["--help"], ["--version"], ["fit", "--help"]):
            main(args, standalone_mode=False)
        heavy = {"torch", "sklearn", "numpy", "scipy", "pyarrow"}
        print(*heavy & set(sys.modules), file=sys.stderr)"""
    result = run_python(code)
    assert (result.returncode, result.stderr) == (0, "\n")


# --- the same as the Python API ------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_fit_equals_the_python_api(source, folder, rows, tmp_path):
    beside = BESIDE if source in ("rows.csv", "rows.parquet") else []
    printed = succeed("fit", folder / source, "-o", tmp_path / "m.safetensors", *TINY, *beside)
    loaded = load(tmp_path / "m.safetensors")
    assert printed.stdout.startswith(f"{tmp_path / 'm.safetensors'}: 40 rows -> 4 components")
    assert (printed.stdout.count("\n"), printed.stderr) == (1, "")
    turned = rows[:, ::-1] if beside else rows
    names = {"rows.csv": NAMES[::-1], "rows.parquet": NAMES[::-1], "clean.tsv": NAMES}.get(source)
    assert list(getattr(loaded, "feature_names_in_", [])) == (names or [])
    expected = make_estimator().fit(turned)
    np.testing.assert_array_equal(codes_of(loaded, turned), expected.transform(turned))


def codes_of(fitted, rows):
    """Return codes without the names, of which scikit-learn warns."""
    vars(fitted).pop("feature_names_in_", None)
    return fitted.transform(rows)


@pytest.mark.parametrize(("source", "ending"), [*zip(SOURCES, OUTPUTS, strict=True)])
def test_there_and_back(source, ending, folder, rows, tmp_path):
    """Columns are found by the names of the model, and the others are mentioned."""
    named = source in ("rows.csv", "rows.parquet", "clean.tsv")
    saved = folder / ("named.safetensors" if named else "model.safetensors")
    codes, back = tmp_path / f"codes{ending}", tmp_path / f"back{ending}"
    found = succeed("transform", saved, folder / source, "-o", codes)
    assert found.stdout == f"{codes}: 40 codes\n"
    mention = f"{folder / source}: the model does not use 'id', 'kind'\n"
    assert found.stderr == (mention if source in ("rows.csv", "rows.parquet") else "")
    expected = codes_of(load(saved), rows)
    np.testing.assert_array_equal(read_table(codes).rows, expected)
    succeed("inverse", saved, codes, "-o", back)
    table = read_table(back)
    np.testing.assert_array_equal(table.rows, load(saved).inverse_transform(expected))
    if ending != ".npy":
        assert table.names == (NAMES if named else ["x0", "x1", "x2", "x3"])


@pytest.mark.parametrize("ending", OUTPUTS[1:])
def test_index_and_label_are_carried(ending, folder, tmp_path):
    """The labels have a bare carriage return, which a reader takes for the end of a line."""
    codes, back = tmp_path / f"codes{ending}", tmp_path / "back.csv"
    saved, layout = folder / "named.safetensors", {"index": "id", "label": "kind"}
    assert not succeed("transform", saved, folder / "rows.csv", "-o", codes, *BESIDE).stderr
    assert not succeed("inverse", saved, codes, "-o", back, *BESIDE).stderr
    before, after, source = (read_table(p, **layout) for p in (codes, back, folder / "rows.csv"))
    for table in (before, after):
        assert list(table.index.values) == list(source.index.values)
        assert list(table.label.values) == ["cat", "a\rdog"] * 20
    assert before.names == [f"deepkernelizedautoencoder{i}" for i in range(4)]
    assert after.names == NAMES


def test_drop_leaves_out_columns_without_a_word(folder, tmp_path):
    out, drop = ["-o", tmp_path / "codes.npy"], ["--drop", "kind, id"]
    saved = folder / "named.safetensors"
    assert not succeed("transform", saved, folder / "rows.csv", *out, *drop).stderr
    succeed("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *TINY, *drop)
    assert list(load(tmp_path / "m.safetensors").feature_names_in_) == NAMES[::-1]


@pytest.mark.parametrize(("option", "n"), [([], 2), (["--components", 3], 3)])
def test_denoise_equals_the_function(option, n, folder, rows, model, tmp_path):
    """Without a number of components it is half of so narrow a code; clean rows need no label."""
    out, saved = tmp_path / "clean.csv", folder / "named.safetensors"
    clean = ["--clean", folder / "clean.tsv", *BESIDE]
    succeed("denoise", saved, folder / "rows.csv", *clean, "-o", out, *option)
    table = read_table(out, index="id", label="kind")
    np.testing.assert_allclose(table.rows, codespace.denoise(model, rows, rows, n), atol=1e-6)


def test_interpolate_equals_the_function(folder, rows, model, tmp_path):
    out = tmp_path / "path.csv"
    args = ["--between", 3, 7, "--steps", 5, "-o", out]
    succeed("interpolate", folder / "named.safetensors", folder / "rows.parquet", *args)
    expected = codespace.interpolate(model, rows[3], rows[7], 5)
    np.testing.assert_allclose(read_table(out).rows, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.* does not hold a kernel")
def test_gram_is_used_instead_of_the_kernel(folder, rows, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--gram", folder / "gram.npy")
    expected = make_estimator().fit(rows, gram=rows @ rows.T)
    np.testing.assert_array_equal(load(out).transform(rows), expected.transform(rows))
    assert "pass gram=" in fail("score", out, folder / "rows.npy")


def test_labels_reach_fit(folder, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        dkae.DeepKernelizedAutoencoder, "fit", lambda self, X, y, **options: seen.append(y)
    )
    run("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *TINY, *BESIDE)
    assert seen[0].tolist() == ["cat", "a\rdog"] * 20


# --- units and gaps ------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.* of the squared distances")
def test_bytes_are_scaled_by_every_command(rows, tmp_path):
    pixels = (rows * 255).astype(np.uint8)
    np.save(tmp_path / "bytes.npy", pixels)
    np.save(tmp_path / "scaled.npy", pixels / np.float32(255))
    results = []
    for source, more in (("bytes.npy", ["--scale", 255]), ("scaled.npy", [])):
        data, saved, out = (tmp_path / name for name in (source, f"{source}.safetensors", "o.npy"))
        succeed("fit", data, "-o", saved, *TINY, *more)
        found = [saved.read_bytes()]
        for command in (
            ["transform", saved, data],
            ["denoise", saved, data, "--clean", data],
            ["interpolate", saved, data, "--between", 0, 39],
        ):
            succeed(*command, "-o", out, "--force", *more)
            found.append(out.read_bytes())
        found.append(json.loads(succeed("score", saved, data, *more).stdout))
        results.append(found)
    assert results[0] == results[1]


def test_gaps_work_in_every_command(folder, tmp_path):
    saved, data, out = folder / "gaps.safetensors", folder / "gaps.npy", tmp_path / "o.csv"
    for command in (
        ["transform", saved, data],
        ["inverse", saved, tmp_path / "codes.csv"],
        ["denoise", saved, data, "--clean", data],
        ["interpolate", saved, data, "--between", 0, 31],
    ):
        succeed(*command, "-o", out, "--force")
        assert np.isfinite(read_table(out).rows).all()
        if command[0] == "transform":
            out.rename(tmp_path / "codes.csv")
    line = fail("transform", folder / "model.safetensors", data, "-o", out, "--force")
    assert "gaps.npy, row 31 (from 0), column 2: a gap; fill it" in line


# --- messages ------------------------------------------------------------------------------------


def test_redirected_progress_is_a_log_with_the_time(folder, tmp_path):
    options = [option for option in TINY if option != "--quiet"]
    result = succeed("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *options)
    lines = result.stderr.splitlines()
    assert len(lines) > 0
    assert all(line[2:6:3] == "::" for line in lines)
    assert result.stdout.count("\n") == 1


def test_a_terminal_shows_a_bar(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes standard error for a terminal
    args = ["transform", folder / "model.safetensors", folder / "rows.npy"]
    assert "rows" in succeed(*args, "-o", tmp_path / "c.npy").stderr


def test_only_the_first_of_several_processes_writes(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("dkae._support.processes.speaks", lambda: False)
    result = succeed("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY)
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []
