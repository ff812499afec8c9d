"""The command line takes tables: names are kept, columns are chosen, and units are the user's."""

import json
import re
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dkae import DeepKernelizedAutoencoder, codespace, load
from dkae.cli import options, outputs
from tests.cli.helpers import TINY, fail, make_estimator, refuse, run_python, succeed

# Columns of these tables are of several sizes.
pytestmark = pytest.mark.filterwarnings("ignore:feature .* of the squared distances")

FEATURES = ["length", "width, cm", "größe", "mass"]
CODES = [f"deepkernelizedautoencoder{i}" for i in range(4)]
BESIDE = ["--index", "id", "--label", "species"]
ENDINGS = [".csv", ".tsv", ".parquet"]


@pytest.fixture(scope="module")
def frame():
    """Return a table in which the features are of different size, between an index and a label."""
    rng = np.random.default_rng(0)
    values = (rng.random((40, 4)) * [1, 10, 1000, 0.01] + [0, 5, -300, 7]).astype(np.float32)
    table = pd.DataFrame(values, columns=FEATURES)
    table.insert(0, "id", [f"{i:03}" for i in range(40)])
    table["species"] = ["cat", "dog"] * 20
    return table


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """Return a folder with the table in every format, a plain and a standardised model of it."""
    folder = tmp_path_factory.mktemp("tables")
    for ending in ENDINGS:
        write_frame(frame, folder / f"rows{ending}")
    for name, more in {"plain": [], "scaled": ["--standardize"]}.items():
        out = folder / f"{name}.safetensors"
        succeed("fit", folder / "rows.csv", "-o", out, *TINY, *BESIDE, *more)
    return folder


@pytest.fixture(scope="module")
def scaled(frame):
    """Return what scikit-learn and the Python API make of the same rows."""
    return make_pipeline(StandardScaler(), make_estimator()).fit(frame[FEATURES])


def write_frame(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    else:
        frame.to_csv(path, index=False, sep="\t" if path.suffix == ".tsv" else ",")
    return path


def read_frame(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="\t" if path.suffix == ".tsv" else ",", dtype={"id": str})


def hide_pandas(patch):
    """Let imports of pandas fail, as where it is not installed."""

    class Hidden:
        @staticmethod
        def find_spec(name, path=None, target=None):
            if name == "pandas":
                raise ModuleNotFoundError(name)

    # Taken away, because scikit-learn looks for it among the modules.
    patch.delitem(sys.modules, "pandas")
    patch.setattr(sys, "meta_path", [Hidden, *sys.meta_path])
    patch.setattr(outputs, "find_spec", lambda name: None)


# --- names there and back ------------------------------------------------------------------------


@pytest.mark.parametrize("source", ENDINGS)
def test_fit_keeps_the_names(source, frame, folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / f"rows{source}", "-o", out, *TINY, *BESIDE)
    loaded, expected = load(out), make_estimator().fit(frame[FEATURES])
    assert list(loaded.feature_names_in_) == FEATURES
    np.testing.assert_array_equal(
        loaded.transform(frame[FEATURES]), expected.transform(frame[FEATURES])
    )


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ["plain", "scaled"])
def test_there_and_back(name, ending, frame, folder, tmp_path):
    saved, codes, back = folder / f"{name}.safetensors", tmp_path / f"c{ending}", tmp_path / "b.csv"
    succeed("transform", saved, folder / f"rows{ending}", "-o", codes, *BESIDE)
    written = read_frame(codes)
    assert list(written.columns) == ["id", *CODES, "species"]
    assert list(written["id"]) == list(frame["id"])
    assert list(written["species"]) == list(frame["species"])
    expected = load(saved).transform(frame[FEATURES])
    np.testing.assert_array_equal(written[CODES].to_numpy(np.float32), expected)
    succeed("inverse", saved, codes, "-o", back, *BESIDE)
    rows = read_frame(back)
    assert list(rows.columns) == list(frame.columns)
    assert list(rows["id"]) == list(frame["id"])
    expected = load(saved).inverse_transform(expected)
    np.testing.assert_array_equal(rows[FEATURES].to_numpy(np.float32), expected)


def test_columns_are_found_by_name_in_any_order(frame, folder, tmp_path):
    turned = write_frame(frame[frame.columns[::-1]], tmp_path / "turned.csv")
    for name, source in {"turned.npy": turned, "plain.npy": folder / "rows.csv"}.items():
        out = tmp_path / name
        succeed("transform", folder / "plain.safetensors", source, "-o", out, *BESIDE)
        codes = np.load(out)
        expected = load(folder / "plain.safetensors").transform(frame[FEATURES])
        np.testing.assert_array_equal(codes, expected)


def test_columns_choose_features(frame, folder, tmp_path):
    out = tmp_path / "m.safetensors"
    succeed("fit", folder / "rows.csv", "-o", out, *TINY, "--columns", 'mass,"width, cm"')
    assert list(load(out).feature_names_in_) == ["mass", "width, cm"]
    succeed("transform", out, folder / "rows.csv", "-o", tmp_path / "c.npy", "--columns", "2,4")
    expected = load(out).transform(frame[["mass", "width, cm"]].copy())
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), expected)


def test_codes_of_other_names_are_taken_in_their_order(frame, folder, tmp_path):
    saved = folder / "plain.safetensors"
    codes = load(saved).transform(frame[FEATURES])
    pd.DataFrame(codes, columns=list("abcd")).to_csv(tmp_path / "c.csv", index=False)
    succeed("inverse", saved, tmp_path / "c.csv", "-o", tmp_path / "b.npy")
    expected = load(saved).inverse_transform(codes)
    np.testing.assert_allclose(np.load(tmp_path / "b.npy"), expected, rtol=1e-6)


def test_names_are_kept_without_pandas(frame, folder, tmp_path, monkeypatch):
    saved, codes = tmp_path / "m.safetensors", tmp_path / "c.tsv"
    with monkeypatch.context() as patch:
        hide_pandas(patch)
        succeed("fit", folder / "rows.tsv", "-o", saved, *TINY, *BESIDE, "--standardize")
        succeed("transform", saved, folder / "rows.csv", "-o", codes, *BESIDE)
        succeed("inverse", saved, codes, "-o", tmp_path / "b.csv", *BESIDE)
        line = fail("transform", saved, folder / "rows.parquet", "-o", codes, *BESIDE, "--force")
        assert "rows.parquet needs pandas: pip install 'dkae[table]'" in line
        message = refuse("transform", saved, folder / "rows.csv", "-o", tmp_path / "c.parquet")
    assert "pip install 'dkae[table]'" in " ".join(message.split())
    assert list(read_frame(tmp_path / "b.csv").columns) == list(frame.columns)
    expected = load(folder / "scaled.safetensors").transform(frame[FEATURES])
    np.testing.assert_allclose(read_frame(codes)[CODES], expected, rtol=1e-5)


def test_labels_reach_fit(folder, frame, tmp_path, monkeypatch):
    seen, fit = [], DeepKernelizedAutoencoder.fit

    def spy(self, X, y=None, **options):
        seen.append(y)
        return fit(self, X, y, **options)

    monkeypatch.setattr(DeepKernelizedAutoencoder, "fit", spy)
    succeed("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *TINY, *BESIDE)
    assert list(seen[0]) == list(frame["species"])


# --- other commands ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "scaled"])
def test_denoise_and_interpolate_take_tables(name, frame, folder, tmp_path):
    saved, out = folder / f"{name}.safetensors", tmp_path / "out.csv"
    clean = write_frame(frame[FEATURES], tmp_path / "clean.csv")
    args = ["--clean", clean, "--components", 2, "-o", out, *BESIDE]
    succeed("denoise", saved, folder / "rows.csv", *args)
    written, model = read_frame(out), load(saved)
    assert list(written.columns) == list(frame.columns)
    X = frame[FEATURES]
    expected = codespace.denoise(model, X, X, 2)
    np.testing.assert_allclose(written[FEATURES], expected, rtol=1e-5)
    args = ["--between", 1, 3, "-o", out, "--force", *BESIDE]
    succeed("interpolate", saved, folder / "rows.csv", *args)
    written = read_frame(out)
    assert list(written.columns) == FEATURES
    expected = codespace.interpolate(model, X.iloc[[1]], X.iloc[[3]])
    np.testing.assert_allclose(written, expected, rtol=1e-5)


# --- standardize ---------------------------------------------------------------------------------


def test_standardize_is_a_pipeline_with_a_scaler(frame, folder, scaled):
    loaded = load(folder / "scaled.safetensors")
    np.testing.assert_array_equal(loaded[0].mean_, scaled[0].mean_)
    np.testing.assert_array_equal(
        loaded.transform(frame[FEATURES]), scaled.transform(frame[FEATURES])
    )


def test_standardize_is_seen_by_the_kernel(folder, frame):
    gamma = {n: load(folder / f"{n}.safetensors") for n in ("plain", "scaled")}
    X = StandardScaler().fit_transform(frame[FEATURES])
    expected = make_estimator().fit(X).kernel_.gamma_
    assert gamma["scaled"][-1].kernel_.gamma_ == expected
    assert gamma["plain"].kernel_.gamma_ < expected / 1000


def test_score_is_in_the_units_of_the_user(frame, folder, scaled):
    args = ["score", folder / "scaled.safetensors", folder / "rows.parquet", *BESIDE]
    printed = json.loads(succeed(*args).stdout)
    X = frame[FEATURES]
    back = scaled.inverse_transform(scaled.transform(X))
    assert printed["alignment"] == pytest.approx(scaled.score(X), rel=1e-6)
    expected = float(np.mean((back - X.to_numpy()) ** 2))
    assert printed["reconstruction_mse"] == pytest.approx(expected, rel=1e-5)


def test_arrays_of_whole_numbers_are_standardised(tmp_path):
    rows = np.random.default_rng(0).integers(0, 255, (30, 5), dtype=np.uint8)
    np.save(tmp_path / "rows.npy", rows)
    succeed("fit", tmp_path / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY, "--standardize")
    np.testing.assert_allclose(load(tmp_path / "m.safetensors")[0].mean_, rows.mean(axis=0))


# --- one clear line ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "line 2, column 'species': 'cat' is not a number; encode the column as numbers"),
        (
            ["--label", "species", "--index", "ID"],
            "--index 'ID' is not there: .*rows.csv has the columns 'id', ",
        ),
        (["--label", "specie", "--index", "id"], r"did you mean 'species'\?"),
        (["--columns", ""], "--columns is empty: name the features, such as --columns a,b,c"),
        (["--columns", "mass,-2"], "--columns -2: positions count from 0, and are not negative"),
        (
            ["--columns", "mass,17"],
            r"--columns '17' is not there: .*rows\.csv has the columns 0 to",
        ),
    ],
    ids=str,
)
def test_fit_refuses_columns_before_the_training(args, message, folder, tmp_path, no_training):
    line = fail("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *TINY, *args)
    assert re.search(message, line)


@pytest.mark.parametrize("command", ["transform", "score"])
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["species"], "has 'species', which the model was not fitted to: name it with --label or"),
        (["species", "id"], "has 'id', 'species', which the model was not fitted to"),
    ],
)
def test_columns_that_the_model_does_not_know_are_named(
    command, columns, message, frame, folder, tmp_path
):
    source = write_frame(
        frame[[c for c in frame if c in [*columns, *FEATURES]]], tmp_path / "r.csv"
    )
    out = ["-o", tmp_path / "c.csv"] if command == "transform" else []
    assert message in fail(command, folder / "plain.safetensors", source, *out)


def test_columns_that_are_missing_are_named(frame, folder, tmp_path):
    source = write_frame(frame[FEATURES].rename(columns={"mass": "mas"}), tmp_path / "r.csv")
    line = fail("transform", folder / "plain.safetensors", source, "-o", tmp_path / "c.csv")
    assert "lacks 'mass', which the model was fitted to; did you mean 'mas'?" in line


def test_inverse_names_what_is_no_code(folder, tmp_path):
    saved, codes = folder / "plain.safetensors", tmp_path / "c.csv"
    succeed("transform", saved, folder / "rows.csv", "-o", codes, *BESIDE)
    line = fail("inverse", saved, codes, "-o", tmp_path / "b.csv")
    assert "has 'id', 'species', which the model was not fitted to: name it with --label" in line


def test_a_table_of_another_width_is_refused_for_a_model_without_names(frame, folder, tmp_path):
    np.save(tmp_path / "rows.npy", frame[FEATURES].to_numpy())
    succeed("fit", tmp_path / "rows.npy", "-o", tmp_path / "m.safetensors", *TINY)
    source = write_frame(frame, tmp_path / "r.csv")
    line = fail("transform", tmp_path / "m.safetensors", source, "-o", tmp_path / "c.csv")
    assert "has 6 columns of features, and the model expects 4: choose them with --columns" in line


def test_gaps_are_filled_by_a_model_that_masks_them(tmp_path):
    (tmp_path / "r.csv").write_text("a,b\n1,2\n3,\n5,6\n2,3\n4,5\n", encoding="utf-8")
    model, codes = tmp_path / "m.safetensors", tmp_path / "codes.csv"
    args = ["fit", tmp_path / "r.csv", "-o", model, *TINY]
    assert fail(*args).endswith("or its column with --columns; or train with --set missing=mask")
    succeed(*args, "--set", "missing=mask")
    succeed("transform", model, tmp_path / "r.csv", "-o", codes)
    succeed("inverse", model, codes, "-o", tmp_path / "filled.csv")
    filled = np.loadtxt(tmp_path / "filled.csv", delimiter=",", skiprows=1)
    assert np.isfinite(filled).all()


# --- progress ------------------------------------------------------------------------------------


def test_redirected_progress_is_a_log_with_the_time(folder, tmp_path):
    args = [option for option in TINY if option != "--quiet"]
    result = succeed("fit", folder / "rows.csv", "-o", tmp_path / "m.safetensors", *args, *BESIDE)
    lines = result.stderr.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d (fine-tuning|decoder): ", line) for line in lines)
    assert len(lines) == 4
    assert result.stdout.count("\n") == 1


def test_the_log_is_left_as_it_was(capsys):
    logger = options.logging.getLogger("dkae")
    before = (list(logger.handlers), logger.level)
    with options.log_to_stderr():
        logger.info("hello")
    assert capsys.readouterr().err.endswith(" hello\n")
    assert (logger.handlers, logger.level) == before


@pytest.mark.slow
def test_a_process_of_its_own_warns_of_nothing(folder, tmp_path):
    args = [
        "transform",
        folder / "scaled.safetensors",
        folder / "rows.csv",
        "-o",
        tmp_path / "c.csv",
    ]
    result = run_python("from dkae.cli import main; main()", *map(str, args), *BESIDE)
    assert (result.returncode, result.stderr) == (0, "")
