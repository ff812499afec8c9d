"""Any wrong call ends with an exit code and one line that names the fault; no traceback."""

import numpy as np
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import BESIDE, TINY, fail, run, run_python

HUGE = str(2**63 - 1)

OPTIONS = [
    ("--components x", 2, "'x' is not a valid integer"),
    ("--components -1", 1, "n_components=-1"),
    ("--components 0", 1, "n_components=0"),
    (f"--components {HUGE}", 1, ""),
    ("--kernel ''", 1, "kernel=''"),
    ("--kernel lienar", 1, "did you mean 'linear'?"),
    ("--kernel precomputed", 1, "Gram matrix"),
    ("--gamma -1", 1, "gamma=-1"),
    ("--gamma medain", 1, "did you mean 'median'?"),
    ("--gamma 1e400", 1, "gamma=inf"),
    ("--alignment x", 1, "alignment='x'"),
    ("--alignment-weight 2", 1, "alignment_weight=2"),
    ("--max-iter -1", 1, "max_iter=-1"),
    ("--steps-per-epoch pair", 1, "did you mean 'pairs'?"),
    ("--batch-size 0", 1, "batch_size=0"),
    ("--input-noise inf", 1, "input_noise=inf"),
    ("--seed -1", 1, "random_state=-1 must be a whole number"),
    ("--device cpuu", 1, "device='cpuu'"),
    ("--recipe papr", 2, "is not one of 'network', 'paper'"),
    ("--map nystrom", 2, "is not one of 'autoencoder', 'nystroem', 'kernel-pca'"),
    ("--scale 1e308", 1, "--scale=1e+308 must be a number in [1e-15, 1e+15]"),
    ("--scale 0", 1, "--scale=0.0 must be a number in"),
    ("--gram nowhere.npy", 1, "nowhere.npy is neither a file nor a data set"),
    ("--gram rows.npy", 1, "gram has shape (40, 4)"),
    ("--checkpoint .", 1, "is a folder"),
    ("--checkpoint no/state", 2, "does not exist: make it"),
    ("--columns 4", 1, "--columns '4' is not there"),
    ("--drop 4", 1, "--drop '4' is not there"),
    ("--index 0 --label 0", 1, "are both '0'"),
    ("--set x", 1, "--set x: expected NAME=VALUE"),
    ("--set =1", 1, "--set : the map autoencoder has no parameter ''"),
    ("--set verbsoe=1", 1, "did you mean 'verbose'?"),
    ("--set kernel__degre=2", 1, "has no parameter 'kernel__degre'; did you mean 'kernel__degree'"),
    ("--unknown", 2, "No such option"),
    ("another.npy", 2, "unexpected extra argument"),
]


@pytest.mark.parametrize(("option", "code", "message"), OPTIONS, ids=lambda x: str(x)[:40])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_option_of_fit(option, code, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    words = [word.strip("'") if word == "''" else word for word in option.split(" ")]
    out = ["-o", tmp_path / "m.safetensors"]
    assert message in fail("fit", "rows.npy", *out, *TINY, *words, code=code)
    assert list(tmp_path.iterdir()) == []


CALLS = [
    ("", 2, "Usage"),
    ("nonsense", 2, "No such command 'nonsense'"),
    ("fit", 2, "Missing argument 'DATA'"),
    ("fit rows.npy", 2, "Missing option '-o'"),
    ("transform . rows.npy -o OUT", 2, "is a directory"),
    ("transform no.safetensors rows.npy -o OUT", 2, "does not exist"),
    ("transform rows.npy rows.npy -o OUT", 1, "rows.npy is not a dkae file"),
    ("transform M gram.npy -o OUT", 1, "40 features"),
    ("transform M rows.npy --columns 0,1 -o OUT", 1, "2 features"),
    ("transform M rows.csv -o OUT", 1, "has 6 columns of features, and the model expects 4"),
    ("transform named.safetensors two.npz -o OUT", 1, "two.npz holds 2 arrays (rows, gram)"),
    ("transform M rows.npy -o out.npz", 2, "must end in .npy or .csv"),
    ("inverse M gram.npy -o OUT", 1, "40"),
    ("inverse M rows.csv -o OUT", 1, "has 6 columns of features, and the model expects 4"),
    ("interpolate M rows.npy -o OUT", 2, "Missing option '--between'"),
    ("interpolate M rows.npy --between 0 40 -o OUT", 1, "--between 40: DATA has rows 0 to 39"),
    ("interpolate M rows.npy --between -1 0 -o OUT", 1, "rows 0 to 39"),
    (f"interpolate M rows.npy --between 0 1 --steps {HUGE} -o OUT", 2, "range"),
    ("denoise M rows.npy -o OUT", 2, "Missing option '--clean'"),
    ("denoise M rows.npy --clean no.npy -o OUT", 1, "no.npy is neither"),
    ("denoise M rows.npy --clean rows.npy --components 9 -o OUT", 1, "n_components=9"),
    ("score M no.npy", 1, "no.npy is neither a file nor a data set"),
    ("score M mnist20k:tset", 1, "did you mean 'test'?"),
    ("info rows.npy", 1, "is not a dkae file"),
]


@pytest.mark.parametrize(("call", "code", "message"), CALLS, ids=lambda x: str(x)[:60])
def test_wrong_call(call, code, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    call = call.replace(" M", " model.safetensors").replace("OUT", str(tmp_path / "out.npy"))
    assert message in fail(*call.split(), code=code)
    assert list(tmp_path.iterdir()) == []


def test_the_first_row_of_a_piece_is_named(folder, rows, tmp_path, monkeypatch):
    """A model counts from the start of a piece."""
    monkeypatch.setattr("dkae.tables.entries.N_PIECE_NUMBERS", 120)
    large = np.array(rows, dtype=np.float64)
    large[31] = 1e300  # finite, but not in float32
    np.save(tmp_path / "large.npy", large)
    out = ["-o", tmp_path / "c.npy"]
    line = fail("transform", folder / "model.safetensors", tmp_path / "large.npy", *out)
    assert line.endswith(f"; its row 0 is row 30 of {tmp_path / 'large.npy'}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", "a,b\n1,2\n3,four\n", "t.csv, line 3, column 'b': 'four' is not a number"),
        ("t.csv", "a,b\n1,2\n3,\x1b[31m\n", "\\x1b[31m"),
        ("t.csv", "a,b\n1,2\n3," + "x" * 10**5, "t.csv, line 3, column 'b': 'xxx"),
        ("line\nbreak.npy", "", "line break.npy is not a NumPy file"),
        ("größe \u202e.npy", "", "größe \\u202e.npy is not a NumPy file"),
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


def test_columns_that_are_no_features_are_an_error_of_fit(folder, tmp_path):
    line = fail("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *TINY)
    assert "column 'kind': 'cat' is not a number" in line
    assert "leave it out with --drop, or name it with --label or --index" in line
    line = fail("transform", folder / "named.safetensors", folder / "rows.npy", "-o",
                tmp_path / "c.csv", "--label", "kind")  # fmt: skip
    assert "no header with names" in line


def test_without_pyarrow_tables_name_the_remedy(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("dkae.cli.outputs.find_spec", lambda name: None)
    args = ["transform", folder / "model.safetensors", folder / "rows.npy", "-o"]
    assert "needs pyarrow: pip install 'dkae[table]'" in fail(*args, tmp_path / "c.csv", code=2)
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


@pytest.mark.slow
def test_an_error_in_a_process_of_its_own_has_no_traceback(tmp_path):
    args = ["fit", "nowhere.npy", "-o", str(tmp_path / "m.safetensors"), *BESIDE]
    result = run_python("from dkae.cli import main; main()", *args)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: nowhere.npy")
    assert result.stderr.count("\n") == 1
