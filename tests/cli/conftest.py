"""Files in every format, and fitted models."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from dkae import DeepKernelizedAutoencoder
from tests.cli.helpers import NAMES, TINY, make_estimator, succeed


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((40, 4), dtype=np.float32)


@pytest.fixture(scope="module")
def folder(rows, tmp_path_factory):
    """Return a folder with the same rows in every format, and fitted models.

    Tables have an index and a label too, and their columns stand in another order.
    """
    folder = tmp_path_factory.mktemp("inputs")
    np.save(folder / "rows.npy", rows)
    np.save(folder / "gram.npy", rows @ rows.T)
    columns = dict(zip(NAMES, rows.T, strict=True))
    columns = dict(reversed(columns.items()))
    ids, kinds = [f"{i:03}" for i in range(len(rows))], ["cat", "a\rdog"] * (len(rows) // 2)
    table = pa.table({"id": ids} | columns | {"kind": kinds})
    pa.parquet.write_table(table, folder / "rows.parquet")
    pa.csv.write_csv(table, folder / "rows.csv")
    options = pa.csv.WriteOptions(delimiter="\t")
    pa.csv.write_csv(table.select(NAMES), folder / "clean.tsv", options)
    named = ["--columns", "length,3,größe,mass"]  # the name of column 3 has a comma
    succeed("fit", folder / "rows.npy", "-o", folder / "model.safetensors", *TINY)
    succeed("fit", folder / "rows.csv", "-o", folder / "named.safetensors", *TINY, *named)
    gaps = np.array(rows)
    gaps[31, 2] = np.nan
    np.save(folder / "gaps.npy", gaps)
    missing = ["--set", "missing=mask"]
    succeed("fit", folder / "gaps.npy", "-o", folder / "gaps.safetensors", *TINY, *missing)
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
