"""The command line does what the Python API does."""

import shlex
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dkae
from dkae import load
from dkae.cli import main
from dkae.datasets.files import load_dataset, read_array
from dkae.training import Trainer
from tests.cli.helpers import (
    COMMANDS,
    ENDINGS,
    EXAMPLES,
    SOURCES,
    TINY,
    make_estimator,
    run,
    run_python,
    succeed,
)

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
    names = getattr(loaded, "feature_names_in_", None)
    assert (names is not None) == (source == "header.csv")
    named = rows if names is None else pd.DataFrame(rows, columns=names)
    np.testing.assert_array_equal(loaded.transform(named), model.transform(rows))


def test_fit_prints_the_last_value_of_each_loss(folder, model, tmp_path):
    """That of the alignment is of the epoch before the decoder learns alone."""
    options = [*TINY, "--set", "decoder_max_iter=1"]
    printed = succeed("fit", folder / "rows.npy", "-o", tmp_path / "m.safetensors", *options).stdout
    history = load(tmp_path / "m.safetensors").history_
    assert "alignment_loss" not in history[-1]
    last = history[-1] | {"alignment_loss": history[-2]["alignment_loss"]}
    for name in ("loss", "reconstruction_loss", "alignment_loss"):
        assert f" {name} {last[name]:.5g}" in printed


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
        ("--hidden 5,3", "hidden_layer_sizes", (5, 3)),
        ("--hidden ''", "hidden_layer_sizes", ()),
        ("--kernel laplacian", "kernel", "laplacian"),
        ("--gamma 0.5", "gamma", 0.5),
        ("--gamma scale", "gamma", "scale"),
        ("--alignment-weight 0.3", "alignment_weight", 0.3),
        ("--max-iter 2", "max_iter", 2),
        ("--steps-per-epoch 3", "steps_per_epoch", 3),
        ("--steps-per-epoch samples", "steps_per_epoch", "samples"),
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
    succeed(
        "fit",
        folder / "rows.npy",
        "-o",
        out,
        *TINY,
        "--set",
        "network=stacked",
        "--set",
        "tied_weights=false",
    )
    assert all(layer.decoder_weight is not None for layer in load(out).network_.layers)


def test_false_as_python_spells_it_is_not_taken_for_true(folder, tmp_path):
    out = tmp_path / "m.safetensors"
    params = ("--set", "network=stacked", "--set", "tied_weights=False")
    result = run("fit", folder / "rows.npy", "-o", out, *TINY, *params)
    assert result.exit_code == 1 or load(out).network_.layers[0].decoder_weight is not None


def test_another_seed_gives_another_model(folder, rows, model, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--seed", 1)
    assert not np.array_equal(load(out).transform(rows), model.transform(rows))


@pytest.mark.filterwarnings("ignore:.* does not hold a kernel")
@pytest.mark.parametrize("gram", ["gram.npy", "two.npz:gram"])
def test_gram_is_used_in_place_of_the_kernel(gram, folder, rows, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.npy", "-o", out, *TINY, "--gram", folder / gram)
    expected = make_estimator().fit(rows, gram=rows @ rows.T)
    np.testing.assert_array_equal(load(out).transform(rows), expected.transform(rows))


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


@pytest.mark.parametrize("kernel", ["pck", "forest"])
def test_ensembles_are_kernels_by_name(kernel, tmp_path):
    out = tmp_path / "model.safetensors"
    succeed("fit", "digits", "-o", out, "--kernel", kernel, *TINY)
    assert load(out).transform(load_dataset("digits")).shape == (1797, 4)


def test_fit_goes_on_from_a_checkpoint(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.training.checkpoint.EVERY_SECONDS", 0)
    fitting = ("fit", folder / "rows.npy", *TINY, "--max-iter", 3)
    succeed(*fitting, "-o", tmp_path / "whole.safetensors")
    broken = (*fitting, "-o", tmp_path / "broken.safetensors", "--checkpoint", tmp_path / "state")
    with monkeypatch.context() as patch:
        # Stop in the third epoch of five steps.
        steps, step = iter([None] * 12), Trainer.train_step
        patch.setattr(Trainer, "train_step", lambda *a: _next_or_stop(steps) or step(*a))
        result = run(*broken)
        assert result.exit_code == 130
        assert f"the same command goes on from {tmp_path / 'state'}" in result.stderr
    assert (tmp_path / "state").exists()
    succeed(*broken)
    assert not (tmp_path / "state").exists()
    whole, resumed = (load(tmp_path / f"{name}.safetensors") for name in ("whole", "broken"))
    X = np.load(folder / "rows.npy")
    assert np.array_equal(whole.transform(X), resumed.transform(X))


def _next_or_stop(steps):
    try:
        next(steps)
    except StopIteration:
        raise KeyboardInterrupt from None
