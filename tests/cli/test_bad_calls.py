"""Whatever a call gets wrong, it ends with an exit code and a line that says what; no traceback.

Errors that have a test of their own elsewhere in this folder are not repeated here.
"""

import gzip
import io
import pickle
import struct
import zipfile

import numpy as np
import pandas as pd
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import TINY, run

HUGE = str(2**63 - 1)
DEEP = "[" * 20_000


def npy(array, **options):
    """Return the bytes of a file .npy."""
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(**members):
    """Return the bytes of an archive; a member may be anything."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return buffer.getvalue()


def header(shape, kind="<f4"):
    """Return a file .npy that announces an array, and has nothing of it."""
    text = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (117 - len(text)) + b"\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(text)) + text


def parquet(**columns):
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


def assert_refused(result, code, message):
    assert isinstance(result.exception, SystemExit), repr(result.exception)
    said = " ".join(result.stderr.split())
    assert result.exit_code == code, said
    assert message in said
    assert "Traceback" not in said
    assert "this is a bug" not in said
    if code == 1:  # wrong usage has a line on how to get help before it
        (line,) = (line for line in result.stderr.splitlines() if not line.startswith("Warning: "))
        assert line.startswith("Error: ")
        assert len(line) < 1200


# --- options -------------------------------------------------------------------------------------

OPTIONS = [
    ("--components x", 2, "'x' is not a valid integer"),
    ("--components -1", 1, "n_components=-1"),
    ("--components 0.5", 2, "not a valid integer"),
    (f"--components {HUGE}", 1, "more memory than there is"),
    ("--hidden -8", 1, "hidden_layer_sizes"),
    ("--hidden 8,0", 1, "hidden_layer_sizes"),
    ("--hidden nan", 1, "hidden_layer_sizes"),
    (f"--hidden {HUGE}", 1, "more memory than there is"),
    (f"--hidden {'9' * 30}", 1, "more memory than there is"),
    (f"--hidden {'9' * 5000}", 1, "hidden_layer_sizes"),
    ("--kernel ''", 1, "kernel=''"),
    ("--kernel precomputed", 1, "Gram matrix"),
    ("--gamma -1", 1, "gamma=-1"),
    ("--gamma nan", 1, "gamma="),
    ("--gamma 1e400", 1, "gamma=inf"),
    ("--gamma [1]", 1, "gamma=[1]"),
    ("--alignment x", 1, "alignment='x'"),
    ("--alignment-weight -0.1", 1, "alignment_weight=-0.1"),
    ("--alignment-weight nan", 1, "alignment_weight=nan"),
    ("--max-iter -1", 1, "max_iter=-1"),
    ("--steps-per-epoch 0", 1, "steps_per_epoch=0"),
    ("--steps-per-epoch -Infinity", 1, "steps_per_epoch=-inf"),
    ("--batch-size 0", 1, "batch_size=0"),
    ("--input-noise -1", 1, "input_noise=-1"),
    ("--input-noise inf", 1, "input_noise=inf"),
    ("--seed -1", 1, "random_state=-1 must be a whole number"),
    ("--seed x", 2, "'x' is not a valid integer"),
    ("--device meta", 1, "device='meta' is not available"),
    ("--device xla", 1, "device='xla' is not available"),
    ("--device vulkan", 1, "device='vulkan' is not available"),
    ("--device xpu", 1, "device='xpu' is not available"),
    ("--device ''", 1, "device=''"),
    ("--recipe ''", 1, "recipe=''"),
    ("--gram .", 1, "is neither a file nor a data set"),
    ("--gram rows.npy", 1, "gram has shape (40, 6)"),
    ("--checkpoint .", 1, "is a folder"),
    ("--checkpoint no/state", 2, "does not exist: make it"),
    ("--columns 0,0", 1, "--columns has '0' twice"),
    ("--columns 6", 1, "--columns '6' is not there"),
    ("--columns ''", 1, "--columns is empty"),
    ("--label -1", 1, "positions count from 0"),
    ("--index 0 --label 0", 1, "are both '0'"),
    ("--set x", 1, "expected NAME=VALUE"),
    ("--set =1", 1, "parameter=''"),
    ("--set kernel_params=5", 1, "kernel_params=5 is not a table of names"),
    ("--set kernel_params=[1]", 1, "kernel_params=[1] is not a table of names"),
    ("--set kernel_params=true", 1, "kernel_params=True is not a table of names"),
    ('--set kernel_params={"gama":1}', 1, "did you mean 'gamma'?"),
    ('--set kernel_params={"gamma":"x"}', 1, "gamma='x'"),
    ("--set kernel_params=" + DEEP, 1, "is not a table of names"),
    ('--kernel pck --set kernel_params={"n":1}', 1, "kernel_params"),
    ('--kernel forest --set kernel_params={"n_estimators":-3}', 1, "n_estimators"),
    ("--set network=nonsense", 1, "network='nonsense' is not known"),
    ("--set callbacks=[1]", 1, "callbacks[0]"),
    ("--set optimizer=7", 1, "optimizer=<int> is not known"),
    ("--set precision=float8", 1, "precision='float8'"),
    ("--set standardize=[]", 1, "standardize"),
    ("--set verbose=loud", 1, "verbose='loud'"),
    ("--unknown", 2, "No such option"),
    ("--max-iter", 2, "requires an argument"),
    ("another.npy", 2, "unexpected extra argument"),
]


@pytest.mark.parametrize(("option", "code", "message"), OPTIONS, ids=lambda x: str(x)[:40])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_wrong_option_of_fit(option, code, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    out = tmp_path / "m.safetensors"
    words = [word.strip("'") if word == "''" else word for word in option.split(" ")]
    assert_refused(run("fit", "rows.npy", "-o", out, *TINY, *words), code, message)
    assert list(tmp_path.iterdir()) == []


#: Stands for M in the calls.
MODEL = "model.safetensors rows.npy"
COMMANDS = [
    ("", 2, "Usage"),
    ("nonsense", 2, "No such command 'nonsense'"),
    ("fit", 2, "Missing argument 'DATA'"),
    ("fit rows.npy", 2, "Missing option '-o'"),
    ("transform model.safetensors", 2, "Missing argument 'DATA'"),
    ("transform . rows.npy -o OUT", 2, "is a directory"),
    ("transform rows.npy rows.npy -o OUT", 1, "rows.npy is not a dkae file, or is damaged"),
    ("transform model.safetensors gram.npy -o OUT", 1, "40 features"),
    ("transform M --columns 0,1 -o OUT", 1, "2 features"),
    ("inverse M -o OUT", 1, "6 columns"),
    ("inverse model.safetensors header.csv -o OUT", 1, "expects 4"),
    ("interpolate M -o OUT", 2, "Missing option '--between'"),
    ("interpolate M --between 0", 2, "requires 2 arguments"),
    ("interpolate M --between 0 40 -o OUT", 1, "rows 0 to 39"),
    ("interpolate M --between -1 0 -o OUT", 1, "rows 0 to 39"),
    ("interpolate M --between 0 x -o OUT", 2, "not a valid integer"),
    (
        "interpolate M --between 0 1 --steps 1 -o OUT",
        2,
        "not in the range",
    ),
    (f"interpolate M --between 0 1 --steps {HUGE} -o OUT", 2, "range"),
    ("denoise M -o OUT", 2, "Missing option '--clean'"),
    ("denoise M --clean gram.npy -o OUT", 1, "40 features"),
    ("denoise M --clean no.npy -o OUT", 1, "no.npy is neither"),
    (
        "denoise M --clean rows.npz --components 0 -o OUT",
        1,
        "n_components",
    ),
    (
        "denoise M --clean rows.npz --components 9 -o OUT",
        1,
        "n_components",
    ),
    ("score model.safetensors no.npy", 1, "no.npy is neither a file nor a data set"),
    ("score M --gram rows.npz", 1, "gram has shape (40, 6)"),
    ("score M --train rows.npz", 1, "--train is for --baselines"),
    ("score M --baselines --train gram.npy", 1, "--train gram.npy has rows of"),
    ("score model.safetensors mnist20k:tset", 1, "did you mean 'test'?"),
]


@pytest.mark.parametrize(("call", "code", "message"), COMMANDS, ids=lambda x: str(x)[:60])
def test_wrong_call(call, code, message, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    call = call.replace(" M", f" {MODEL}").replace("OUT", str(tmp_path / "out.npy"))
    args = call.split()
    assert_refused(run(*args), code, message)
    assert list(tmp_path.iterdir()) == []


# --- files ---------------------------------------------------------------------------------------

NUMBERS = np.ones((9, 6), dtype=np.float32)
FILES = {
    "folder.npy/": (None, "folder.npy"),
    "empty.npy": (b"", "not a NumPy file"),
    "garbage.npy": (bytes(range(256)), "not a NumPy file"),
    "garbage.npz": (bytes(range(256)), "cannot be read as .npz"),
    "garbage.csv": (bytes(range(256)), "not a table of numbers"),
    "garbage.csv.gz": (bytes(range(256)), "not a table of numbers"),
    "garbage.tsv": (bytes(range(128, 256)), "not a table of numbers"),
    "garbage.parquet": (bytes(range(256)), "cannot be read as Parquet"),
    "garbage.idx": (bytes(range(256)), "wrong magic number"),
    "empty.parquet": (b"", "cannot be read as Parquet"),
    "cut.csv.gz": (gzip.compress(b"1,2,3,4,5,6\n" * 99)[:-12], "not a table of numbers"),
    "objects.npy": (npy(np.array([[{}]]), allow_pickle=True), "no object is unpickled"),
    "objects.npz": (npz(a=npy(np.array([[{}]]), allow_pickle=True)), "no object is unpickled"),
    "pickle.npy": (pickle.dumps({}), "not a NumPy file"),
    "text.npy": (npy(np.array([["a"] * 6] * 9)), "type <U1: expected numbers"),
    "bytes.npz": (npz(a=npy(np.zeros((9, 6), "S3"))), "type |S3: expected numbers"),
    "complex.npy": (npy(NUMBERS * 1j), "type complex64: expected numbers"),
    "dates.npy": (npy(np.zeros((9, 6), "M8[s]")), "expected numbers"),
    "fields.npy": (npy(np.zeros(9, [("a", "f4"), ("b", "f4")])), "expected numbers"),
    "scalar.npy": (npy(np.float32(3)), "scalar array"),
    "three.npy": (npy(np.ones((9, 6, 2))), "dim 3"),
    "no_rows.npy": (npy(NUMBERS[:0]), "0 sample(s)"),
    "no_columns.npy": (npy(NUMBERS[:, :0]), "0 feature(s)"),
    "one_row.npy": (npy(NUMBERS[:1]), "minimum of 2"),
    "nan.npy": (npy(NUMBERS * np.nan), "contains NaN"),
    "inf.npz": (npz(a=npy(NUMBERS * np.inf)), "contains infinity"),
    "announced.npy": (header((10**9, 10**6)), "not a NumPy file"),
    "negative.npy": (header((-9, 6)), "shape (-9, 6)"),
    "no_type.npy": (header((9, 6), "nonsense"), "not a NumPy file"),
    "version.npy": (b"\x93NUMPY\x09\0" + b" " * 100, "not a NumPy file"),
    "announced.npz": (npz(a=header((10**9, 10**6))), "its header announces"),
    "more.npz": (npz(a=npy(NUMBERS) + b"more"), "is damaged"),
    "no_array.npz": (npz(a=b"hello"), "cannot be read as .npz"),
    "no_member.npz": (npz(), "holds 0 arrays"),
    "several.npz": (npz(a=npy(NUMBERS), b=npy(NUMBERS)), "holds 2 arrays"),
    "blank.csv": (b"\n\n", "has no rows"),
    "header.csv": (b"a,b\n", "has a header and no rows"),
    "zero.csv": (b"1,2\n3,\0\n", "zero.csv"),
    "wide_text.csv": ("a,b\n1,2\n".encode("utf-16"), "not a table of numbers"),
    "quote.csv": (b'a,b\n"1,2\n3,4\n', "quote.csv"),
    "infinite.csv": (b"1,2\n3,inf\n", "inf is not finite in float32"),
    "too_large.csv": (b"1,2\n3,1e400\n", "1e400 is not finite in float32"),
    "semicolons.csv": (b"1;2\n3;4\n", "semicolons.csv"),
    "twice.csv": (b"a,a\n1,2\n3,4\n", "more than one column with the name 'a'"),
    "long_field.csv": (b"1,2\n3," + b"x" * 120_000, "is not a number"),
    "escape.csv": (b"a,b\n1,2\n3,\x1b[31m\n", "\\x1b[31m"),
    "words.parquet": (parquet(a=["x", "y"], b=[1, 2]), "'x' is not a number"),
    "lists.parquet": (parquet(a=[[1], [2]], b=[1, 2]), "is not a number"),
    "no_rows.parquet": (parquet(a=[], b=[]), "has no rows"),
    "large.idx": (b"\0\0\x08\3" + b"\xff" * 12, "announces 79228162458924105385300197391 bytes"),
    "many.idx": (b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"x", "has the shape"),
    "nan.idx": (b"\0\0\x0e\2\0\0\0\2\0\0\0\1" + struct.pack(">2d", 1, np.nan), "contains NaN"),
    "rows.txt": (b"1,2\n", "has the ending '.txt'"),
    "line\nbreak.npy": (b"", "line break.npy is not a NumPy file"),
    "größe \u202e.npy": (b"", "größe \\u202e.npy is not a NumPy file"),
}


@pytest.mark.parametrize(("name", "found"), FILES.items(), ids=[ascii(name) for name in FILES])
def test_a_file_that_is_no_table_of_numbers(name, found, tmp_path):
    content, message = found
    path = tmp_path / name
    path.mkdir() if content is None else path.write_bytes(content)
    out = tmp_path / "m.safetensors"
    assert_refused(run("fit", path, "-o", out, *TINY), 1, message)
    assert not out.exists()


@pytest.mark.parametrize("name", ["garbage.npy", "objects.npz", "garbage.parquet", "large.idx"])
@pytest.mark.parametrize(
    "call",
    [
        "transform model.safetensors FILE -o OUT",
        "inverse model.safetensors FILE -o OUT",
        "interpolate model.safetensors FILE --between 0 1 -o OUT",
        "denoise model.safetensors rows.npy --clean FILE -o OUT",
        "score model.safetensors rows.npy --gram FILE",
        "score model.safetensors rows.npy --baselines --train FILE",
        "transform FILE rows.npy -o OUT",
    ],
)
def test_such_a_file_in_any_place(call, name, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    content, message = FILES[name]
    (tmp_path / name).write_bytes(content)
    args = call.replace("OUT", str(tmp_path / "out.npy")).replace("FILE", str(tmp_path / name))
    expected = "is not a dkae file" if call.startswith("transform FILE") else message
    assert_refused(run(*args.split()), 1, expected)


def test_a_file_that_may_not_be_read(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", NUMBERS)

    def refused(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr("pathlib.Path.open", refused)
    result = run("fit", tmp_path / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY)
    assert_refused(result, 1, "Permission denied")


def test_names_that_no_file_can_have(tmp_path):
    for name in ("\0.npy", "x" * 5000 + ".npy", "\ud800.npy", ""):
        result = run("fit", name, "-o", tmp_path / "m.safetensors", *TINY)
        assert_refused(result, 1, "")


# --- what no check has foreseen ------------------------------------------------------------------


@pytest.fixture
def broken(monkeypatch):
    """Return a function that makes every fit raise an error."""

    def set_up(error):
        def fit(*args, **kwargs):
            raise error

        monkeypatch.setattr(DeepKernelizedAutoencoder, "fit", fit)
        return "fit", "digits", *TINY

    return set_up


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8.0 TiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried\nto"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("Storage size calculation overflowed with sizes=[9223372036854775807]"),
    ],
    ids=str,
)
def test_too_little_memory_is_one_line(error, broken, tmp_path):
    result = run(*broken(error), "-o", tmp_path / "m.safetensors")
    assert_refused(result, 1, "needs more memory than there is")


@pytest.mark.parametrize("error", [TypeError("a\nb"), RuntimeError("no"), KeyError("x")], ids=repr)
def test_a_bug_is_one_line_that_says_so(error, broken, tmp_path, monkeypatch):
    args = (*broken(error), "-o", tmp_path / "m.safetensors")
    line = run(*args).stderr
    assert line.startswith(f"Error: {type(error).__name__}: ")
    assert line.count("\n") == 1
    assert "this is a bug of dkae: please report it, with what DKAE_TRACEBACK=1 shows" in line
    monkeypatch.setenv("DKAE_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in run(*args).stderr
