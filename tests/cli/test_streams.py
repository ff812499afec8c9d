"""Commands stream: what comes out is what comes out at once, and memory does not grow with rows."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, RowArray, codespace, load
from dkae.datasets import tables
from dkae.datasets.lazy import ChangedRows
from tests.cli.helpers import TINY, fail, make_estimator, succeed

pytestmark = pytest.mark.filterwarnings("ignore:feature .* of the squared distances")

SOURCES = ["rows.npy", "rows.csv", "rows.tsv", "rows.csv.gz", "rows.parquet"]
OUTPUTS = [".npy", ".npz", ".csv", ".tsv", ".parquet"]


@pytest.fixture(scope="module")
def inputs(rows, tmp_path_factory):
    """Return a folder with the same rows in every format, and a plain and a standardised model."""
    folder = tmp_path_factory.mktemp("streams")
    frame = pd.DataFrame(rows, columns=list("abcdef"))
    np.save(folder / "rows.npy", rows)
    np.save(folder / "bytes.npy", (rows * 255).astype(np.uint8))
    frame.to_parquet(folder / "rows.parquet", row_group_size=7)
    for name in ("rows.csv", "rows.tsv", "rows.csv.gz"):
        frame.to_csv(folder / name, index=False, sep="\t" if ".tsv" in name else ",")
    succeed("fit", folder / "rows.npy", "-o", folder / "plain.safetensors", *TINY)
    succeed("fit", folder / "rows.npy", "-o", folder / "scaled.safetensors", *TINY, "--standardize")
    return folder


@pytest.fixture(scope="module")
def expected(inputs, rows):
    """Return the codes of all rows at once."""
    return load(inputs / "plain.safetensors").transform(rows)


@pytest.fixture
def small_pieces(monkeypatch):
    """Let a piece have three rows."""
    monkeypatch.setattr("dkae.datasets.delimited._CHUNK", 18)
    monkeypatch.setattr("dkae.datasets.sizes.N_PIECE_NUMBERS", 18)


@pytest.fixture
def never_whole(monkeypatch):
    """Return the sizes of the pieces that models see; nobody may ask for all rows."""
    sizes, transform = [], DeepKernelizedAutoencoder.transform

    def seen(self, X):
        sizes.append(len(X))
        return transform(self, X)

    monkeypatch.setattr(DeepKernelizedAutoencoder, "transform", seen)
    monkeypatch.setattr(RowArray, "__array__", lambda *a, **k: pytest.fail("all rows were read"))
    monkeypatch.setattr(tables.TableReader, "read", lambda self: pytest.fail("it was read whole"))
    return sizes


def read(path):
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".npz":
        return np.load(path)["data"]
    if path.suffix == ".parquet":
        return pd.read_parquet(path).to_numpy(np.float32)
    return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",").to_numpy(np.float32)


# --- transform, inverse, denoise -----------------------------------------------------------------


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("ending", OUTPUTS)
@pytest.mark.parametrize("source", SOURCES)
def test_there_and_back_in_pieces(source, ending, inputs, expected, tmp_path, never_whole):
    model, codes, back = inputs / "plain.safetensors", tmp_path / f"c{ending}", tmp_path / "b.npy"
    result = succeed("transform", model, inputs / source, "-o", codes)
    assert result.stdout == f"{codes}: codes of shape (40, 4)\n"
    assert result.stderr == ""  # a bar is for terminals
    assert (max(never_whole), sum(never_whole)) == (3, 40)
    if ending != ".npz":  # which is read whole
        assert succeed("inverse", model, codes, "-o", back).stdout.endswith("of shape (40, 6)\n")
        assert np.load(back).dtype == np.float32
    np.testing.assert_allclose(read(codes), expected, rtol=1e-5)
    if ending != ".npz":
        expected_rows = load(model).inverse_transform(read(codes))
        np.testing.assert_allclose(np.load(back), expected_rows, rtol=1e-4)


@pytest.mark.usefixtures("small_pieces", "never_whole")
def test_a_pipeline_streams(inputs, rows, tmp_path):
    model, out, back = inputs / "scaled.safetensors", tmp_path / "c.npy", tmp_path / "b.npy"
    succeed("transform", model, inputs / "rows.npy", "-o", out)
    fitted = load(model)
    np.testing.assert_allclose(np.load(out), fitted.transform(rows), rtol=1e-4, atol=1e-6)
    succeed("inverse", model, out, "-o", back)
    expected = fitted.inverse_transform(np.load(out))
    np.testing.assert_allclose(np.load(back), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("small_pieces")
def test_denoise_streams(inputs, rows, tmp_path, monkeypatch):
    out = tmp_path / "d.csv"
    args = ["denoise", inputs / "plain.safetensors", inputs / "rows.csv", "--components", 2]
    succeed(*args, "--clean", inputs / "rows.npy", "-o", out)
    expected = codespace.denoise(load(inputs / "plain.safetensors"), rows, rows, 2)
    np.testing.assert_allclose(read(out), expected, rtol=1e-4, atol=1e-5)


def test_a_terminal_shows_a_bar(inputs, tmp_path, monkeypatch, small_pieces):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes standard error for a terminal
    args = ["transform", inputs / "plain.safetensors", inputs / "rows.csv"]
    result = succeed(*args, "-o", tmp_path / "c.npy")
    assert "rows" in result.stderr
    assert result.stdout == f"{tmp_path / 'c.npy'}: codes of shape (40, 4)\n"


# --- what is wrong in a late piece ---------------------------------------------------------------


def bad_file(folder, name, rows):
    """Write rows of which one, in the middle, has a gap."""
    path, bad = folder / name, np.array(rows)
    bad[31, 4] = np.nan
    frame = pd.DataFrame(bad, columns=list("abcdef"))
    if name.endswith(".npy"):
        np.save(path, bad)
    elif name.endswith(".parquet"):
        frame.to_parquet(path, row_group_size=7)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
    return path


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("ending", OUTPUTS)
@pytest.mark.parametrize("name", ["bad.npy", "bad.csv", "bad.tsv.gz", "bad.parquet"])
def test_a_late_gap_leaves_no_output(name, ending, exists, inputs, rows, tmp_path):
    source = bad_file(tmp_path, name, rows)
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / f"c{ending}"
    if exists:
        out.write_bytes(b"old")
    line = fail("transform", inputs / "plain.safetensors", source, "-o", out, "--force")
    where = "line 33, column 'e'" if "sv" in name else "row 31 (from 0), column "
    assert f"{source}, {where}" in line
    assert line.endswith("or its column with --columns; or train with --set missing=mask")
    assert [path.name for path in out.parent.iterdir()] == [out.name] * exists
    assert not exists or out.read_bytes() == b"old"


@pytest.mark.usefixtures("small_pieces")
def test_a_row_without_a_code_is_found_in_the_file(inputs, rows, tmp_path):
    large = np.array(rows, dtype=np.float64)
    large[31, 4] = 1e300  # finite, but not in float32
    np.save(tmp_path / "large.npy", large)
    line = fail(
        "transform", inputs / "plain.safetensors", tmp_path / "large.npy", "-o", tmp_path / "c.npy"
    )
    assert line.endswith(f"; its row 0 is row 30 of {tmp_path / 'large.npy'}")


@pytest.mark.parametrize("n_bytes", [1, 500])
def test_a_truncated_array_is_one_line(n_bytes, inputs, tmp_path):
    content = (inputs / "rows.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(content[:-n_bytes])
    for call in (["fit"], ["transform", inputs / "plain.safetensors"]):
        out = "m.safetensors" if call == ["fit"] else "c.npy"
        line = fail(*call, tmp_path / "cut.npy", "-o", tmp_path / out)
        assert "cut.npy is not a NumPy file of numbers (it has" in line
    assert [path.name for path in tmp_path.iterdir()] == ["cut.npy"]


# --- fit -----------------------------------------------------------------------------------------


@pytest.fixture
def fitted_to(monkeypatch):
    """Return the rows that models were fitted to."""
    seen, fit = [], DeepKernelizedAutoencoder.fit

    def watched(self, X, y=None, **options):
        seen.append(X)
        return fit(self, X, y, **options)

    monkeypatch.setattr(DeepKernelizedAutoencoder, "fit", watched)
    return seen


@pytest.mark.parametrize("more", [[], ["--standardize"], ["--label", "c"]], ids=str)
@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.csv.gz", "rows.parquet"])
def test_a_spooled_table_gives_the_same_model(name, more, inputs, tmp_path, monkeypatch, fitted_to):
    whole, spooled = tmp_path / "whole.safetensors", tmp_path / "spooled.safetensors"
    succeed("fit", inputs / name, "-o", whole, *TINY, *more)
    monkeypatch.setattr(tables, "N_SPOOLED_BYTES", 1)
    succeed("fit", inputs / name, "-o", spooled, *TINY, *more)
    assert isinstance(fitted_to[0], np.ndarray)
    assert isinstance(fitted_to[1], ChangedRows if "--standardize" in more else np.memmap)
    assert spooled.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize(
    "more", [[], ["--standardize"], ["--columns", "3,1"], ["--scale", 2]], ids=str
)
def test_a_mapped_array_is_not_copied(more, inputs, tmp_path, monkeypatch, fitted_to):
    monkeypatch.setattr(ChangedRows, "__array__", lambda *_: pytest.fail("read"), raising=False)
    monkeypatch.setattr(StandardScaler, "fit_transform", lambda *_: pytest.fail("it was copied"))
    succeed("fit", inputs / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY, *more)
    assert isinstance(fitted_to[0], ChangedRows if more else np.memmap)


def test_the_scaler_learns_piece_by_piece(inputs, rows, tmp_path, monkeypatch, small_pieces):
    sizes, learn = [], StandardScaler.partial_fit

    def watched(self, X, *args):
        sizes.append(len(X))
        return learn(self, X, *args)

    monkeypatch.setattr(StandardScaler, "partial_fit", watched)
    out = tmp_path / "m.safetensors"
    succeed("fit", inputs / "rows.npy", "-o", out, *TINY, "--standardize")
    assert (max(sizes), sum(sizes)) == (3, 40)
    expected = make_pipeline(StandardScaler(), make_estimator()).fit(rows)
    np.testing.assert_allclose(load(out)[0].scale_, expected[0].scale_, rtol=1e-6)
    np.testing.assert_allclose(load(out).transform(rows), expected.transform(rows), atol=1e-3)


def test_large_numbers_are_standardised_before_digits_are_lost(tmp_path):
    """Seconds since 1970 are 128 apart in float32."""
    X = np.random.default_rng(0).random((40, 3)) + np.array([1.7e9, 0, 5])
    np.save(tmp_path / "times.npy", X)
    saved, out = tmp_path / "m.safetensors", tmp_path / "c.npy"
    succeed("fit", tmp_path / "times.npy", "-o", saved, *TINY, "--standardize")
    expected = make_pipeline(StandardScaler(), make_estimator()).fit(X)
    succeed("transform", saved, tmp_path / "times.npy", "-o", out)
    np.testing.assert_allclose(np.load(out), expected.transform(X), atol=1e-5)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_standardize_names_the_row(value, rows, tmp_path, small_pieces):
    bad = np.array(rows)
    bad[31, 4] = value
    np.save(tmp_path / "bad.npy", bad)
    args = ["fit", tmp_path / "bad.npy", "-o", tmp_path / "m.safetensors", *TINY, "--standardize"]
    assert "DATA, row 31 (from 0), column 4" in fail(*args)


def test_standardize_takes_gaps_of_a_mapped_array(rows, tmp_path):
    bad, saved, out = np.array(rows), tmp_path / "m.safetensors", tmp_path / "c.npy"
    bad[31, 4] = np.nan
    np.save(tmp_path / "bad.npy", bad)
    options = [*TINY, "--standardize", "--set", "missing=mask"]
    succeed("fit", tmp_path / "bad.npy", "-o", saved, *options)
    succeed("transform", saved, tmp_path / "bad.npy", "-o", out)
    expected = make_pipeline(StandardScaler(), make_estimator(missing="mask")).fit(bad)
    np.testing.assert_allclose(np.load(out), expected.transform(bad), atol=1e-5)


# --- --scale -------------------------------------------------------------------------------------


def test_bytes_are_scaled_by_every_command(inputs, tmp_path):
    pixels = np.load(inputs / "bytes.npy")
    rows = RowArray(pixels, scale=255)[:]
    np.save(tmp_path / "scaled.npy", rows)
    results = []
    for source, more in ((inputs / "bytes.npy", ["--scale", 255]), (tmp_path / "scaled.npy", [])):
        saved, out = tmp_path / f"{len(more)}.safetensors", tmp_path / f"{len(more)}.npy"
        succeed("fit", source, "-o", saved, *TINY, *more)
        found = [saved.read_bytes()]
        for command in (
            ["transform", saved, source],
            ["denoise", saved, source, "--clean", source, "--components", 2],
            ["interpolate", saved, source, "--between", 0, 39],
        ):
            succeed(*command, "-o", out, "--force", *more)
            found.append(out.read_bytes())
        found.append(json.loads(succeed("score", saved, source, *more).stdout))
        results.append(found)
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_tables_are_scaled(name, inputs, rows, tmp_path):
    out = tmp_path / "c.npy"
    succeed("transform", inputs / "plain.safetensors", inputs / name, "-o", out, "--scale", 2)
    expected = load(inputs / "plain.safetensors").transform(rows / 2)
    np.testing.assert_array_equal(np.load(out), expected)


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf"])
@pytest.mark.parametrize("command", ["fit", "transform"])
def test_a_scale_that_cannot_be(scale, command, inputs, tmp_path, no_training):
    model = [] if command == "fit" else [inputs / "plain.safetensors"]
    out = tmp_path / ("m.safetensors" if command == "fit" else "c.npy")
    line = fail(command, *model, inputs / "rows.npy", "-o", out, "--scale", scale)
    assert f"--scale={float(scale)} must be a number in (0, inf)" in line


# --- memory --------------------------------------------------------------------------------------

MEASURE = """
import sys
from dkae.cli import main
main(sys.argv[1:], standalone_mode=False)
status = dict(line.split(":") for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux does")
@pytest.mark.parametrize("ending", [".npy", ".parquet"])
def test_memory_is_flat_in_the_number_of_rows(ending, inputs, tmp_path):
    source, out, peaks = tmp_path / f"large{ending}", tmp_path / "codes.npy", []
    for n in (2**20, 2**23):  # 25 and 201 megabytes; codes take two thirds of it
        rows = np.random.default_rng(0).random((n, 6), dtype=np.float32)
        if ending == ".npy":
            np.save(source, rows)
        else:
            pd.DataFrame(rows, columns=list("abcdef")).to_parquet(source)
        args = ["transform", inputs / "plain.safetensors", source, "-o", out, "--force"]
        command = [sys.executable, "-c", MEASURE, *map(str, args)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(int(result.stdout.split()[-1]))
        assert np.load(out, mmap_mode="r").shape == (n, 4)
    assert peaks[1] - peaks[0] < 120  # megabytes; the rows and codes of the larger take 335
