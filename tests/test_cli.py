"""Tests of the command line: it does what the Python API does, and an error is one clear line."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import dkae.experiments.demo
import dkae.report.demo
from dkae import DeepKernelizedAutoencoder, load
from dkae.cli import main
from dkae.datasets.files import load_dataset, read_array

TINY = ["--hidden", "16", "--components", "4", "--max-iter", "1", "--epoch", "5", "--quiet"]
COMMANDS = sorted(main.commands)
ENDINGS = [".npy", ".npz", ".csv"]
SOURCES = ["rows.npy", "rows.npz", "two.npz:rows", "header.csv", "bare.csv"]
EXAMPLES = [
    line.strip()
    for command in [main, *main.commands.values()]
    for line in command.epilog.splitlines()
    if line.strip().startswith("dkae ")
]


def run(*args):
    return CliRunner().invoke(main, [str(arg) for arg in args])


def succeed(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output or repr(result.exception)
    return result


def fail(*args):
    """Run a command that must end with exit code 1 and one line; return that line."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 1
    line = result.stderr.removesuffix("\n")
    assert line.startswith("Error: ")
    assert "\n" not in line
    return line


def refuse(*args):
    """Run a command that must be refused as wrong usage; return what it says."""
    result = run(*args)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code == 2
    return result.stderr


def make_estimator(**params):
    tiny = {"hidden_layer_sizes": (16,), "max_iter": 1, "epoch": 5, "random_state": 0}
    return DeepKernelizedAutoencoder(4, **(tiny | params))


def run_python(code, *args):
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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


# --- help and version ----------------------------------------------------------------------------


def test_version():
    assert succeed("--version").stdout == f"dkae, version {dkae.__version__}\n"


def test_console_script_is_this_function():
    (script,) = entry_points(group="console_scripts", name="dkae")
    assert script.load() is main


@pytest.mark.parametrize("args", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_help_has_an_example(args):
    assert "\n  Example:\n    dkae " in succeed(*args, "--help").stdout


@pytest.mark.parametrize("args", [["-h"], ["fit", "-h"]], ids=" ".join)
def test_short_help_option(args):
    assert "Example:" in succeed(*args).stdout


@pytest.mark.parametrize("example", EXAMPLES)
def test_help_does_not_wrap_an_example(example):
    pages = "\n".join(succeed(*args, "--help").stdout for args in ([], *([n] for n in COMMANDS)))
    assert f"    {example}\n" in pages


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_is_valid_usage(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("model.safetensors", "codes.npy", "rows.csv", "gram.npy"):
        Path(name).touch()
    _, name, *args = shlex.split(example)
    context = main.commands[name].make_context(name, args)
    assert context.params


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["fit", "--help"]], ids=" ".join)
def test_help_imports_nothing_heavy(args):
    code = (
        "import sys; from dkae.cli import main; main(sys.argv[1:], standalone_mode=False);"
        "print(*{'torch', 'sklearn', 'numpy', 'scipy'} & set(sys.modules), file=sys.stderr)"
    )
    result = run_python(code, *args)
    assert (result.returncode, result.stderr) == (0, "\n")


# --- the same as the Python API ------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_fit_equals_the_python_api(source, folder, rows, model, tmp_path):
    succeed("fit", folder / source, "-o", tmp_path / "m.safetensors", *TINY)
    loaded = load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.transform(rows), model.transform(rows))


@pytest.mark.parametrize("ending", ENDINGS)
def test_transform_equals_the_python_api(ending, folder, rows, model, tmp_path):
    out = tmp_path / f"codes{ending}"
    succeed("transform", folder / "model.safetensors", folder / "rows.npy", "-o", out)
    codes = read_array(str(out))
    assert codes.dtype == np.float32
    np.testing.assert_array_equal(codes, model.transform(rows))


@pytest.mark.parametrize("source", SOURCES)
def test_transform_reads_every_format(source, folder, rows, model, tmp_path):
    out = tmp_path / "codes.npy"
    succeed("transform", folder / "model.safetensors", folder / source, "-o", out)
    np.testing.assert_array_equal(np.load(out), model.transform(rows))


@pytest.mark.parametrize("rows_ending", ENDINGS)
@pytest.mark.parametrize("codes_ending", ENDINGS)
def test_inverse_equals_the_python_api(codes_ending, rows_ending, folder, rows, model, tmp_path):
    saved, codes = folder / "model.safetensors", tmp_path / f"codes{codes_ending}"
    back = tmp_path / f"back{rows_ending}"
    succeed("transform", saved, folder / "rows.npy", "-o", codes)
    succeed("inverse", saved, codes, "-o", back)
    expected = model.inverse_transform(model.transform(rows))
    np.testing.assert_array_equal(read_array(str(back)), expected)


@pytest.mark.parametrize("source", SOURCES)
def test_score_equals_the_python_api(source, folder, rows, model):
    printed = json.loads(succeed("score", folder / "model.safetensors", folder / source).stdout)
    alignment = model.score(rows)
    back = model.inverse_transform(model.transform(rows))
    assert printed == {
        "rows": 40,
        "alignment": alignment,
        "alignment_loss": (2 - 2 * alignment) ** 0.5,
        "reconstruction_mse": float(np.mean((back - rows) ** 2)),
    }


def test_built_in_data_set_there_and_back(tmp_path):
    digits = load_dataset("digits")
    saved, codes, back = (tmp_path / name for name in ("m.safetensors", "c.npy", "b.npy"))
    succeed("fit", "digits", "-o", saved, *TINY)
    succeed("transform", saved, "digits", "-o", codes)
    succeed("inverse", saved, codes, "-o", back)
    expected = make_estimator().fit(digits)
    np.testing.assert_array_equal(np.load(codes), expected.transform(digits))
    np.testing.assert_array_equal(np.load(back), expected.inverse_transform(np.load(codes)))


def test_csv_of_codes_has_the_feature_names_as_header(folder, tmp_path):
    out = tmp_path / "codes.csv"
    succeed("transform", folder / "model.safetensors", folder / "rows.npy", "-o", out)
    names = [f"deepkernelizedautoencoder{i}" for i in range(4)]
    assert out.read_text(encoding="utf-8").splitlines()[0] == ",".join(names)


def test_a_process_of_its_own_gives_the_same_file(folder, tmp_path):
    args = ["fit", str(folder / "rows.npy"), "-o", str(tmp_path / "m.safetensors"), *TINY]
    result = run_python("from dkae.cli import main; main()", *args)
    assert (result.returncode, result.stderr) == (0, "")
    loaded, here = load(tmp_path / "m.safetensors"), load(folder / "model.safetensors")
    assert loaded.get_params() == here.get_params()
    # Another process may have another number of threads, and so other last digits.
    for name, tensor in here.network_.state_dict().items():
        np.testing.assert_allclose(loaded.network_.state_dict()[name], tensor, atol=1e-5)


# --- options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "name", "value"),
    [
        ("--set tied_weights=false", "tied_weights", False),
        ("--set max_grad_norm=0.5", "max_grad_norm", 0.5),
        ("--set activation=tanh", "activation", "tanh"),
        ("--set hidden_layer_sizes=[3,2]", "hidden_layer_sizes", [3, 2]),
        ("--set max_grad_norm=null", "max_grad_norm", None),
        ("--components 3", "n_components", 3),
        ("--hidden 5,3", "hidden_layer_sizes", [5, 3]),
        ("--hidden ''", "hidden_layer_sizes", []),
        ("--kernel laplacian", "kernel", "laplacian"),
        ("--gamma 0.5", "gamma", 0.5),
        ("--gamma scale", "gamma", "scale"),
        ("--alignment-weight 0.3", "alignment_weight", 0.3),
        ("--max-iter 2", "max_iter", 2),
        ("--epoch 3", "epoch", 3),
        ("--epoch samples", "epoch", "samples"),
        ("--batch-size 7", "batch_size", 7),
        ("--input-noise 0.1", "input_noise", 0.1),
        ("--device cpu", "device", "cpu"),
        ("--seed 5", "random_state", 5),
        ("--recipe paper --set pretrain_max_iter=1", "code_activation", "sigmoid"),
    ],
)
def test_option_reaches_the_estimator(option, name, value, folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, *shlex.split(option))
    assert load(out).get_params()[name] == value


def test_untied_weights_are_trained(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--set", "tied_weights=false")
    assert all(layer.decoder_weight is not None for layer in load(out).network_.layers)


def test_false_as_python_spells_it_is_not_taken_for_true(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    result = run("fit", folder / "rows.npy", "-o", out, *TINY, "--set", "tied_weights=False")
    assert result.exit_code == 1 or load(out).network_.layers[0].decoder_weight is not None


def test_another_seed_gives_another_model(folder, rows, model, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--seed", 1)
    assert not np.array_equal(load(out).transform(rows), model.transform(rows))


@pytest.mark.parametrize("gram", ["gram.npy", "two.npz:gram"])
def test_gram_is_used_in_place_of_the_kernel(gram, folder, rows, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--gram", folder / gram)
    expected = make_estimator().fit(rows, gram=rows @ rows.T)
    np.testing.assert_array_equal(load(out).transform(rows), expected.transform(rows))


def test_score_with_a_gram(folder, rows, model):
    args = "score", folder / "model.safetensors", folder / "rows.npy"
    printed = json.loads(succeed(*args, "--gram", folder / "gram.npy").stdout)
    assert printed["alignment"] == model.score(rows, gram=rows @ rows.T)


def test_score_of_a_model_without_a_kernel_asks_for_the_gram(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--gram", folder / "gram.npy")
    assert "pass gram=" in fail("score", out, folder / "rows.npy")


def test_quiet_leaves_one_line(folder, tmp_path):
    result = succeed("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY)
    assert result.stderr == ""
    assert "40 rows -> 4 components" in result.stdout
    assert result.stdout.count("\n") == 1


def test_progress_bar_goes_to_standard_error(folder, tmp_path):
    options = [option for option in TINY if option != "--quiet"]
    result = succeed("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *options)
    assert "fine-tuning" in result.stderr
    assert result.stdout.count("\n") == 1


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--recipe papr", "paper"),
        ("--kernel lienar", "linear"),
        ("--gamma medain", "median"),
        ("--device cpuu", "cpu"),
        ("--epoch pair", "pairs"),
        ("--set tied_weigths=false", "tied_weights"),
        ("--set activation=rellu", "relu"),
    ],
)
def test_unknown_name_says_what_may_have_been_meant(option, meant, folder, tmp_path):
    out = tmp_path / "m.safetensors"
    line = fail("fit", folder / "rows.npy", "-o", out, *TINY, *option.split())
    assert f"did you mean '{meant}'?" in line


@pytest.mark.parametrize(
    ("data", "meant"), [("digts", "digits"), ("mnist20", "mnist20k"), ("mnist20k:tset", "test")]
)
def test_unknown_data_set_says_what_may_have_been_meant(data, meant, tmp_path):
    line = fail("fit", data, "-o", tmp_path / "m.safetensors", *TINY)
    assert f"did you mean '{meant}'?" in line


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--set tied_weights", "expected NAME=VALUE"),
        ("--hidden 16,x", "hidden_layer_sizes"),
        ("--components 0", "n_components"),
        ("--alignment-weight 2", "alignment_weight"),
        ("--set random_state=abc", "abc"),
        ("--kernel poly --set degree=abc", "degree"),
        ("--kernel poly --set coef0=abc", "coef0"),
        ("--kernel precomputed", "Gram matrix"),
        ("--set learning_rate_init=1e30", "loss became"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_value_is_named_in_one_line(option, message, folder, tmp_path):
    out = tmp_path / "m.safetensors"
    assert message in fail("fit", folder / "rows.npy", "-o", out, *TINY, *option.split())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.csv", "a,b\n1,2\n3,four\n", "four"),
        ("missing.csv", "a,b\n1,2\n3,\n", "table of numbers"),
        ("nan.csv", "a,b\n1,2\n3,nan\n", "NaN"),
        ("ragged.csv", "1,2\n3\n", "columns"),
        ("one_row.csv", "1,2\n", "minimum of 2"),
        ("rows.txt", "1,2\n", "expected .npy, .npz or .csv"),
        ("rows.npy", "1,2\n", "not a NumPy file"),
    ],
)
def test_unusable_data_is_one_line(name, content, message, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert message in fail("fit", tmp_path / name, "-o", tmp_path / "m.safetensors", *TINY)


def test_array_of_one_dimension_is_one_line(tmp_path):
    np.save(tmp_path / "flat.npy", np.ones(5))
    assert "1D" in fail("fit", tmp_path / "flat.npy", "-o", tmp_path / "m.safetensors", *TINY)


@pytest.mark.parametrize("name", ["rows.npy", "rows.csv", "rows.npz:x"])
def test_missing_data_is_named(name, tmp_path):
    line = fail("fit", tmp_path / name, "-o", tmp_path / "m.safetensors", *TINY)
    assert name.partition(":")[0] in line


def test_missing_gram_is_named(folder, tmp_path, no_training):
    args = ["fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY]
    assert "nowhere.npy" in fail(*args, "--gram", "nowhere.npy")


@pytest.mark.parametrize("command", ["transform", "inverse"])
def test_missing_model_is_refused(command, folder, tmp_path):
    args = folder / "rows.npy", "-o", tmp_path / "out.npy"
    assert "does not exist" in refuse(command, tmp_path / "m.safetensors", *args)


@pytest.mark.parametrize("command", ["transform", "inverse"])
def test_wrong_number_of_columns_is_one_line(command, folder, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((3, 9)))
    out = tmp_path / "out.npy"
    assert "9" in fail(command, folder / "model.safetensors", tmp_path / "wide.npy", "-o", out)


def test_file_that_is_no_model_is_one_line(folder, tmp_path):
    args = folder / "rows.npy", folder / "rows.npy", "-o", tmp_path / "codes.npy"
    assert "not a dkae model file" in fail("transform", *args)


def test_damaged_model_is_one_line(folder, tmp_path):
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    with safe_open(folder / "model.safetensors", "pt") as file:
        header = file.metadata()
    weights = load_file(folder / "model.safetensors")
    weights.popitem()
    save_file(weights, tmp_path / "m.safetensors", metadata=header)
    args = tmp_path / "m.safetensors", folder / "rows.npy", "-o", tmp_path / "codes.npy"
    assert "damaged" in fail("transform", *args)


def test_error_in_a_process_of_its_own_has_no_traceback(tmp_path):
    args = ["fit", "nowhere.npy", "-o", str(tmp_path / "m.safetensors")]
    result = run_python("from dkae.cli import main; main()", *args)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: nowhere.npy")
    assert result.stderr.count("\n") == 1


# --- output files --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("nowhere/m.safetensors", "nowhere does not exist"),
        ("m.pt", "must end in"),
        ("m", "must end in"),
        ("taken.safetensors", "is a directory"),
    ],
)
def test_unusable_output_is_refused_before_the_training(out, message, tmp_path, no_training):
    (tmp_path / "taken.safetensors").mkdir()
    assert message in refuse("fit", "digits", "-o", tmp_path / out, *TINY)


@pytest.mark.parametrize("exists", [False, True], ids=["new file", "existing file"])
def test_unwritable_output_is_refused_before_the_training(
    exists, tmp_path, monkeypatch, no_training
):
    folder = tmp_path / "locked"
    folder.mkdir()
    out = folder / "m.safetensors"
    if exists:
        out.write_text("old", encoding="utf-8")
        out.chmod(0o444)
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):  # root may write everywhere: take that right away
        access = os.access

        def without_writing(path, mode, **kwargs):
            within = Path(path).is_relative_to(folder)
            return not (mode & os.W_OK and within) and access(path, mode, **kwargs)

        monkeypatch.setattr(os, "access", without_writing)
    try:
        result = run("fit", "digits", "-o", out, *TINY)
    finally:
        folder.chmod(0o755)
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    assert result.exit_code in (1, 2)
    assert "writable" in result.stderr


@pytest.mark.parametrize(
    ("command", "out", "message"),
    [
        ("transform", "codes.txt", "must end in"),
        ("transform", "nowhere/codes.npy", "nowhere does not exist"),
        ("inverse", "rows", "must end in"),
        ("inverse", "nowhere/rows.csv", "nowhere does not exist"),
    ],
)
def test_unusable_output_of_an_array_is_refused(command, out, message, folder, tmp_path):
    args = folder / "model.safetensors", folder / "rows.npy", "-o", tmp_path / out
    assert message in refuse(command, *args)


def test_missing_output_option_is_refused(no_training):
    assert "--out" in refuse("fit", "digits", *TINY)


@pytest.mark.parametrize(
    "args",
    [
        ["fit", "nowhere.npy", *TINY],
        ["fit", "rows.npy", *TINY, "--kernel", "rbg"],
        ["fit", "rows.npy", *TINY, "--gram", "rows.npy"],
        ["fit", "rows.npy", *TINY, "--set", "learning_rate_init=1e30"],
    ],
    ids=lambda args: " ".join(args[1:2] + args[-1:]),
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_existing_model_survives_a_failed_fit(args, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    out = tmp_path / "m.safetensors"
    out.write_text("old", encoding="utf-8")
    fail(*args, "-o", out)
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("command", ["transform", "inverse"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_existing_array_survives_a_failed_command(command, ending, folder, tmp_path):
    np.save(tmp_path / "wide.npy", np.ones((3, 9)))
    out = tmp_path / f"out{ending}"
    out.write_text("old", encoding="utf-8")
    fail(command, folder / "model.safetensors", tmp_path / "wide.npy", "-o", out)
    assert out.read_text(encoding="utf-8") == "old"


@contextlib.contextmanager
def full_disk():
    """Make every write beyond 512 bytes of a file fail, as on a disk without space."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_existing_model_survives_a_full_disk(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    out.write_text("old", encoding="utf-8")
    with full_disk():
        fail("fit", folder / "rows.npy", "-o", out, *TINY)
    assert out.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("ending", ENDINGS)
def test_existing_array_survives_a_full_disk(ending, folder, rows, tmp_path):
    many, out = tmp_path / "many.npy", tmp_path / f"codes{ending}"
    np.save(many, np.tile(rows, (50, 1)))
    out.write_text("old", encoding="utf-8")
    with full_disk():
        fail("transform", folder / "model.safetensors", many, "-o", out)
    assert out.read_bytes() == b"old"
    assert {path.name for path in tmp_path.iterdir()} == {many.name, out.name}


# --- the demo ------------------------------------------------------------------------------------


@pytest.fixture
def demo_calls(monkeypatch):
    """Replace the demo's training and page by functions that note how they were called."""
    calls = []

    def run_demo(out, **kwargs):
        calls.append((out, kwargs))
        return {"scores": {"test alignment": 0.123456}}

    monkeypatch.setattr(dkae.experiments.demo, "run_demo", run_demo)
    monkeypatch.setattr(dkae.report.demo, "write_demo_page", lambda out: out / "index.html")
    return calls


def test_demo_passes_its_options_on(demo_calls, tmp_path):
    succeed("demo", "-o", tmp_path, "--steps", 40, "--seed", 3, "--quiet")
    assert demo_calls == [(tmp_path, {"n_steps": 40, "seed": 3, "verbose": False})]


def test_demo_prints_scores_and_page(demo_calls, tmp_path):
    printed = succeed("demo", "-o", tmp_path).stdout
    assert "test alignment  0.1235\n" in printed
    assert str(tmp_path / "index.html") in printed


@pytest.mark.parametrize("option", [("--steps", 19), ("-o", __file__)], ids=str)
def test_demo_refuses_wrong_options(option, demo_calls):
    refuse("demo", *option)
    assert demo_calls == []


def test_demo_without_the_report_extra_says_what_to_install(demo_calls, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    monkeypatch.delitem(sys.modules, "dkae.report.demo")
    assert "pip install 'dkae[report]'" in fail("demo", "-o", tmp_path)
    assert demo_calls == []


@pytest.mark.parametrize("kernel", ["pck", "forest"])
def test_ensembles_are_kernels_by_name(kernel, tmp_path):
    out = tmp_path / "model.safetensors"
    succeed("fit", "digits", "-o", out, "--kernel", kernel, *TINY)
    assert load(out).transform(load_dataset("digits")).shape == (1797, 4)
