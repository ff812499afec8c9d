"""The command line does what the Python API does, with tables of any format."""

import json
import shlex
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest

import dkae
from dkae import codespace, load
from dkae.cli import main
from dkae.tables import Layout, read_table
from tests.cli.helpers import (
    BESIDE,
    COMMANDS,
    EXAMPLES,
    NAMES,
    TINY,
    fail,
    make_estimator,
    run,
    run_python,
    succeed,
)

SOURCES = ["rows.npy", "two.npz:rows", "rows.csv", "rows.parquet", "clean.tsv"]
OUTPUTS = [".npy", ".csv", ".tsv", ".parquet"]

# --- help and version ----------------------------------------------------------------------------


def test_version():
    assert succeed("--version").stdout == f"dkae, version {dkae.__version__}\n"


def test_console_script_is_this_function():
    (script,) = entry_points(group="console_scripts", name="dkae")
    assert script.load() is main


@pytest.mark.parametrize("args", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_has_an_example(args):
    assert "\n  Example:\n    dkae " in succeed(*args, "-h").stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_valid_usage_and_is_not_wrapped(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("model.safetensors", "codes.npy", "rows.csv", "gram.npy"):
        Path(name).touch()
    _, name, *args = shlex.split(example)
    if "-o model.safetensors" in example:
        Path("model.safetensors").unlink()
    assert main.commands[name].make_context(name, args).params
    pages = "\n".join(succeed(*args, "--help").stdout for args in ([], [name]))
    assert f"    {example}\n" in pages


@pytest.mark.slow
@pytest.mark.parametrize("args", [["--help"], ["--version"], ["fit", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(args):
    code = (
        "import sys; from dkae.cli import main; main(sys.argv[1:], standalone_mode=False);"
        "print(*{'torch', 'sklearn', 'numpy', 'scipy', 'pyarrow'} & set(sys.modules),"
        "file=sys.stderr)"
    )
    result = run_python(code, *args)
    assert (result.returncode, result.stderr) == (0, "\n")


@pytest.mark.slow
def test_threads_are_calmed_before_torch_is_imported(folder, monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    code = """if True:
        import os, sys
        class Spy:
            def find_spec(self, name, path=None, target=None):
                if name == "torch":
                    print(os.environ.get("GOMP_SPINCOUNT"))
        sys.meta_path.insert(0, Spy())
        from dkae.cli import main
        main(["score", "model.safetensors", "rows.npy"])"""
    monkeypatch.chdir(folder)
    assert run_python(code).stdout.splitlines()[0] == "10000"


# --- the same as the Python API ------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_fit_equals_the_python_api(source, folder, rows, model, tmp_path):
    beside = BESIDE if source in ("rows.csv", "rows.parquet") else []
    printed = succeed("fit", folder / source, "-o", tmp_path / "m.safetensors", *TINY, *beside)
    loaded = load(tmp_path / "m.safetensors")
    assert printed.stdout.startswith(f"{tmp_path / 'm.safetensors'}: 40 rows -> 4 components")
    assert printed.stdout.count("\n") == 1
    assert printed.stderr == ""
    turned = rows[:, ::-1] if beside else rows
    names = {"rows.csv": NAMES[::-1], "rows.parquet": NAMES[::-1], "clean.tsv": NAMES}.get(source)
    assert list(getattr(loaded, "feature_names_in_", [])) == (names or [])
    expected = make_estimator().fit(turned)
    np.testing.assert_array_equal(codes_of(loaded, turned), expected.transform(turned))


def codes_of(fitted, rows):
    """Return codes without the names, of which scikit-learn warns."""
    vars(fitted).pop("feature_names_in_", None)
    return fitted.transform(rows)


@pytest.mark.parametrize("ending", OUTPUTS)
@pytest.mark.parametrize("source", SOURCES)
def test_there_and_back(source, ending, folder, rows, tmp_path):
    """Columns are found by the names of the model, and the others are mentioned."""
    named = source in ("rows.csv", "rows.parquet", "clean.tsv")
    saved = folder / ("named.safetensors" if named else "model.safetensors")
    codes, back = tmp_path / f"codes{ending}", tmp_path / f"back{ending}"
    found = succeed("transform", saved, folder / source, "-o", codes)
    assert found.stdout == f"{codes}: codes of shape (40, 4)\n"
    mention = f"{folder / source}: the model does not use 'id', 'kind'\n"
    assert found.stderr == (mention if source in ("rows.csv", "rows.parquet") else "")
    expected = codes_of(load(saved), rows)
    np.testing.assert_array_equal(read_table(str(codes)).rows, expected)
    succeed("inverse", saved, codes, "-o", back)
    table = read_table(str(back))
    np.testing.assert_array_equal(table.rows, load(saved).inverse_transform(expected))
    if ending != ".npy":
        assert table.names == (NAMES if named else ["x0", "x1", "x2", "x3"])


@pytest.mark.parametrize("ending", OUTPUTS[1:])
def test_index_and_label_are_carried(ending, folder, tmp_path):
    codes, back = tmp_path / f"codes{ending}", tmp_path / "back.csv"
    saved = folder / "named.safetensors"
    assert not succeed("transform", saved, folder / "rows.csv", "-o", codes, *BESIDE).stderr
    assert not succeed("inverse", saved, codes, "-o", back, *BESIDE).stderr
    before, after = (read_table(str(p), Layout(index="id", label="kind")) for p in (codes, back))
    source = read_table(str(folder / "rows.csv"), Layout(index="id", label="kind"))
    for table in (before, after):
        assert table.index.values.to_pylist() == source.index.values.to_pylist()
        assert table.label.values.to_pylist() == source.label.values.to_pylist()
    assert before.names == [f"deepkernelizedautoencoder{i}" for i in range(4)]
    assert after.names == NAMES


def test_drop_leaves_out_columns_without_a_word(folder, tmp_path):
    out, drop = ["-o", tmp_path / "codes.npy"], ["--drop", "kind, id"]
    assert not succeed(
        "transform", folder / "named.safetensors", folder / "rows.csv", *out, *drop
    ).stderr
    succeed("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *TINY, *drop)
    assert list(load(tmp_path / "m.safetensors").feature_names_in_) == NAMES[::-1]


def test_codes_of_other_names_are_taken_in_their_order(folder, rows, model, tmp_path):
    codes = model.transform(rows)
    np.savetxt(tmp_path / "c.csv", codes, "%.9g", ",", header="p,q,r,s", comments="")
    succeed("inverse", folder / "model.safetensors", tmp_path / "c.csv", "-o", tmp_path / "b.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), model.inverse_transform(codes))


def test_denoise_equals_the_function(folder, rows, model, tmp_path):
    """Without a number of components it is half of so narrow a code; clean rows need no label."""
    out, saved = tmp_path / "clean.csv", folder / "named.safetensors"
    succeed(
        "denoise", saved, folder / "rows.csv", "--clean", folder / "clean.tsv", "-o", out, *BESIDE
    )
    table = read_table(str(out), Layout(index="id", label="kind"))
    np.testing.assert_allclose(table.rows, codespace.denoise(model, rows, rows, 2), atol=1e-6)
    succeed("denoise", saved, folder / "rows.csv", "--clean", folder / "rows.csv", "-o", out,
            "--force", "--components", 3)  # fmt: skip
    expected = codespace.denoise(model, rows, rows, 3)
    np.testing.assert_allclose(read_table(str(out)).rows, expected, atol=1e-6)


def test_interpolate_equals_the_function(folder, rows, model, tmp_path):
    out = tmp_path / "path.csv"
    args = ["--between", 3, 7, "--steps", 5, "-o", out]
    succeed("interpolate", folder / "named.safetensors", folder / "rows.parquet", *args)
    expected = codespace.interpolate(model, rows[3], rows[7], 5)
    np.testing.assert_allclose(read_table(str(out)).rows, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.* does not hold a kernel", "ignore:the file lacks")
@pytest.mark.parametrize("gram", ["gram.npy", "two.npz:gram"])
def test_gram_is_used_instead_of_the_kernel(gram, folder, rows, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--gram", folder / gram)
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


@pytest.mark.filterwarnings("ignore:feature .* of the squared distances")
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
        table = read_table(str(out))
        assert np.isfinite(table.rows).all()
        if command[0] == "transform":
            out.rename(tmp_path / "codes.csv")
    line = fail("transform", folder / "model.safetensors", data, "-o", out, "--force")
    assert "gaps.npy, row 31 (from 0), column 2: a gap; fill it" in line


# --- progress and the end of a fit ---------------------------------------------------------------


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
