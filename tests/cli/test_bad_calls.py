"""Any wrong call ends with an exit code and one line that names the fault; no traceback."""

import os
import shlex

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import TINY, fail, run

HUGE = 2**63
FIT = "fit rows.npy -o OUT.safetensors --max-iter 1 --quiet "

CALLS = [
    ("", 2, "Usage"),
    ("nonsense", 2, "No such command 'nonsense'"),
    ("fit rows.npy", 2, "Missing option '-o'"),
    ("fit no.npy -o OUT.safetensors", 1, "no.npy is neither a file nor a data set"),
    ("fit rows.npy -o OUT.npy", 2, "OUT.npy must end in .safetensors"),
    (FIT + "--components x", 1, "n_components='x' must be a whole number"),
    (FIT + f"--components {HUGE}", 1, f"n_components={HUGE} must be at most"),
    (FIT + f"--hidden {HUGE}", 1, f"{HUGE}"),
    (FIT + "--kernel lienar", 1, "did you mean 'linear'?"),
    (FIT + "--kernel precomputed", 1, "Gram matrix"),
    (FIT + "--gamma 1e400", 1, "gamma=inf"),
    (FIT + "--alignment-weight 2", 1, "alignment_weight=2 must be a number in [0, 1]"),
    (FIT + "--set steps_per_epoch=pair", 1, "did you mean 'pairs'?"),
    (FIT + "--map nystrom", 2, "is not one of 'autoencoder', 'nystroem', 'kernel-pca'"),
    (FIT + "--scale 1e308", 1, "--scale=1e+308 must be a number in [1e-15, 1e+15]"),
    (FIT + "--gram nowhere.npy", 1, "nowhere.npy is neither a file nor a data set"),
    (FIT + "--gram rows.npy", 1, "gram has shape (40, 4)"),
    (FIT + "--checkpoint .", 1, "is a folder"),
    (FIT + "--checkpoint no/state", 1, "lies in a folder that does not exist: make it first"),
    (FIT + "--drop 4", 1, "--drop '4' is not there"),
    (FIT + "--set x", 2, "x: expected NAME=VALUE, such as --set missing=mask"),
    (FIT + "--unknown", 2, "No such option"),
    ("fit rows.csv -o OUT.safetensors", 1,
     "column 'kind': 'cat' is not a number; encode it as numbers, leave it out with --drop, or"),
    ("transform . rows.npy -o OUT.npy", 2, "is a directory"),
    ("transform rows.npy rows.npy -o OUT.npy", 1, "rows.npy is not a dkae file"),
    ("transform M gram.npy -o OUT.npy", 1, "40 features"),
    ("transform M rows.npy --columns 0,1 -o OUT.npy", 1, "has 2 columns of features"),
    ("transform M rows.csv -o OUT.npy", 1, "has 6 columns of features, and the model expects 4"),
    ("transform M rows.npy -o OUT.npz", 2, "must end in .npy or .csv"),
    ("transform M rows.npy --label kind -o OUT.csv", 1, "no header with names"),
    ("inverse M gram.npy -o OUT.npy", 1, "40"),
    ("inverse M rows.csv -o OUT.npy", 1, "rows.csv lacks 'deepkernelizedautoencoder0',"),
    ("interpolate M rows.npy --between -1 40 -o OUT.npy", 1, "--between -1: DATA has rows 0 to 39"),
    (f"interpolate M rows.npy --between 0 1 --steps {HUGE} -o OUT.npy", 2, "range"),
    ("denoise M rows.npy --clean rows.npy --components 9 -o OUT.npy", 1, "n_components=9"),
    ("inverse M rows.npy --scale 2 -o OUT.npy", 2, "No such option"),
    ("score M mnist20k:tset", 1, "mnist20k:tset is neither a file nor a data set (digits,"),
    ("info rows.npy", 1, "is not a dkae file"),
    ("info no", 1, "there is no model file no"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "code", "message"), CALLS, ids=lambda x: str(x)[-40:])
def test_wrong_call(call, code, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    args = shlex.split(call.replace(" M ", " model.safetensors "))
    args = [arg.replace("OUT", str(tmp_path / "OUT")) for arg in args]
    assert message in fail(*args, code=code).replace(f"{tmp_path}/", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n1,2\n3,\x1b[31m\n", "\\x1b[31m"),
        ("t.csv", "a,b\n1,2\n3," + "x" * 10**5, "t.csv, row 3 (the header is row 1), column 'b'"),
        ("line\nbreak \u202e.npy", "", "line break \\u202e.npy is not a NumPy file"),
        ("one.csv", "1,2\n", "minimum of 2"),
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_a_file_is_named_on_one_short_line(name, content, message, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    line = fail("fit", tmp_path / name, "-o", tmp_path / "m.safetensors", *TINY)
    assert message in line
    assert len(line) < 1200


def test_names_that_no_file_can_have(tmp_path):
    for name in ("\0.npy", "x" * 5000 + ".npy", "\ud800.npy", ""):
        fail("fit", name, "-o", tmp_path / "m.safetensors", *TINY)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes with names")
@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ("fit pipe.npy -o m.safetensors", 1, "pipe.npy is neither a file nor a data set"),
        ("fit pipe.csv -o m.safetensors", 1, "pipe.csv is neither a file nor a data set"),
        ("fit rows.npy -o m.safetensors --gram pipe.npy", 1, "pipe.npy is neither a file nor"),
        ("fit rows.npy -o pipe.safetensors --force", 1, "pipe.safetensors is a pipe or a device"),
        ("fit rows.npy -o m.safetensors --checkpoint pipe.npy", 1, "is a pipe or a device"),
        ("info pipe.npy", 1, "pipe.npy is a folder, a pipe, a device"),
        ("score pipe.npy rows.npy", 1, "pipe.npy is a folder, a pipe, a device"),
    ],
)
def test_nothing_waits_for_a_pipe(call, code, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for ending in ("npy", "csv", "safetensors"):
        os.mkfifo(f"pipe.{ending}")
    np.save("rows.npy", np.load(folder / "rows.npy"))
    assert message in fail(*call.split(), code=code)


def test_without_pyarrow_tables_name_the_remedy(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.tables.arrow.find_spec", lambda name: None)
    args = ["transform", folder / "model.safetensors", folder / "rows.npy", "-o"]
    assert "needs pyarrow: pip install 'dkae[table]'" in fail(*args, tmp_path / "c.csv")
    assert run(*args, tmp_path / "c.npy").exit_code == 0


# --- bugs ----------------------------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch, tmp_path):
    """Return a function that makes every fit raise an error."""

    def set_up(error):
        def fit(*args, **kwargs):
            raise error

        monkeypatch.setattr(DeepKernelizedAutoencoder, "fit", fit)
        return "fit", "digits", *TINY, "-o", tmp_path / "m.safetensors"

    return set_up


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8.0 TiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried\nto"),
        RuntimeError("Storage size calculation overflowed with sizes=[9223372036854775807]"),
    ],
    ids=str,
)
def test_too_little_memory_is_one_line(error, broken):
    assert "needs more memory than there is" in fail(*broken(error))


@pytest.mark.parametrize("error", [TypeError("a\nb"), RuntimeError("no"), KeyError("x")], ids=repr)
def test_a_bug_is_one_line_that_says_so(error, broken, monkeypatch):
    line = run(*broken(error)).stderr
    assert line.startswith(f"Error: {type(error).__name__}: ")
    assert line.count("\n") == 1
    assert "this is a bug of dkae: please report it, with the output of DKAE_TRACEBACK=1" in line
    monkeypatch.setenv("DKAE_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in run(*broken(error)).stderr
