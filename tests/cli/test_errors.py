"""An error is one clear line."""

import numpy as np
import pytest

from tests.cli.helpers import TINY, fail, refuse, run_python


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--recipe papr", "paper"),
        ("--kernel lienar", "linear"),
        ("--gamma medain", "median"),
        ("--device cpuu", "cpu"),
        ("--steps-per-epoch pair", "pairs"),
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
        ("missing.csv", "a,b\n1,2\n3,\n", "a gap (an empty field)"),
        ("nan.csv", "a,b\n1,2\n3,nan\n", "a gap (nan)"),
        ("ragged.csv", "1,2\n3\n", "line 2, column 1: the line ends before it"),
        ("one_row.csv", "1,2\n", "minimum of 2"),
        ("rows.txt", "1,2\n", "expected .npy, .npz, .csv, .tsv or .parquet"),
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
    assert "not a dkae file" in fail("transform", *args)


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
