"""Tables on the command line: which columns a command takes, and what a model makes of them.

A model is a `DeepKernelizedAutoencoder`, or a pipeline of a `StandardScaler` and one; rows are in
the units of the user's file, before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dkae.cli.options import Command

if TYPE_CHECKING:
    from dkae.datasets.tables import Table


#: What becomes of both columns in the output of a command.
COPIED = {"label": "copied to a table as its last column", "index": "copied as its first"}


def column_options(label: str = "", index: str = "") -> Callable[[Command], Command]:
    """Add --columns, --label and --index, which a command gets as the dictionary `layout`.

    The arguments say what becomes of the label and of the index, which are no features.
    """

    def option(name: str, text: str, fate: str) -> Callable[[Command], Command]:
        return click.option(name, help=f"{text}: no feature{fate and ', but ' + fate}.")

    columns = click.option(
        "--columns", help="The features, such as a,b,c, by name or by position from 0."
    )
    of_label = option("--label", "Column of labels", label)
    of_index = option("--index", "Column that identifies the rows", index)

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_layout(
            *, columns: str | None, label: str | None, index: str | None, **options: Any
        ) -> Any:
            layout = {"columns": columns, "label": label, "index": index}
            return command(layout=layout, **options)

        return columns(of_label(of_index(with_layout)))  # type: ignore[return-value]

    return decorate


def load_model(path: Path) -> Any:
    """Return the autoencoder in a file, or the pipeline that ends in one."""
    from dkae import DeepKernelizedAutoencoder
    from dkae.persistence import load

    fitted = load(path, device="auto")
    if not isinstance(_model_of(fitted), DeepKernelizedAutoencoder):
        raise ValueError(
            f"{path} holds a {type(_model_of(fitted)).__name__}, and the command takes a "
            "DeepKernelizedAutoencoder, as `dkae fit` writes it: use dkae.load in Python"
        )
    return fitted


def read_training(source: str, model: Any, layout: dict[str, Any]) -> Table:
    """Return the table that a model is to be fitted to."""
    return _read(source, model, layout)


def read_rows(source: str, fitted: Any, layout: dict[str, Any]) -> Table:
    """Return the features that a fitted model wants, by their names if both sides have them."""
    wanted: Any = getattr(fitted, "feature_names_in_", None)
    model = _model_of(fitted)
    if wanted is not None:
        wanted = list(wanted)
    elif len(model.row_shape_) == 1:  # else rows are images, and no table
        wanted = int(model.n_features_in_)
    return _read(source, model, layout, wanted=wanted)


def read_codes(source: str, fitted: Any, layout: dict[str, Any]) -> Table:
    """Return codes, by their names if the file has them, else in the order of the columns."""
    wanted = list(fitted.get_feature_names_out())
    return _read(source, _model_of(fitted), layout, wanted=wanted, or_by_order=True)


def read_matrix(source: str) -> Any:
    """Return a table of numbers without any choice of columns, such as a Gram matrix."""
    from dkae.datasets.tables import read_table

    return read_table(source).rows


def train(model: Any, table: Table, standardize: bool, **options: Any) -> Any:
    """Fit a model to a table, after a scaler if asked for, and return both as one."""
    import numpy as np
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rows, fitted = table.rows, model
    if standardize:
        if rows.dtype.kind in "bui":  # scikit-learn would make float64 of it
            rows = rows.astype(np.float32)
        fitted = make_pipeline(StandardScaler(), model)
        rows = fitted[0].fit_transform(rows)
    model.fit(rows, table.labels(), **options)
    if table.names is not None:
        # As scikit-learn has it from a data frame, which needs pandas.
        first = fitted[0] if standardize else model
        first.feature_names_in_ = np.array(table.names, dtype=object)
    return fitted


def prior_gram(fitted: Any, rows: Any) -> Any:
    """Return the Gram matrix of the model's kernel, which sees the rows as the network does."""
    model = _model_of(fitted)
    return model.prior_gram(rows if model is fitted else fitted[:-1].transform(rows))


def write(out: Path, table: Table, what: str) -> None:
    """Write a table, and say so."""
    from dkae.datasets.tables import write_table

    write_table(out, table)
    click.echo(f"{click.format_filename(out)}: {what} of shape {table.rows.shape}")


def input_names(fitted: Any, rows: Any) -> list[str]:
    """Return the names of the input features."""
    return list(getattr(fitted, "feature_names_in_", [f"x{i}" for i in range(rows.shape[1])]))


def _read(source: str, model: Any, layout: dict[str, Any], **wishes: Any) -> Table:
    from dkae.datasets.tables import GapError, Layout, read_table

    gaps = getattr(model, "missing", "error") == "mask"
    try:
        return read_table(source, Layout(**layout), gaps=gaps, **wishes)
    except GapError as error:
        if not hasattr(model, "missing"):
            raise
        raise GapError(f"{error}; or train with --set missing=mask") from error


def _model_of(fitted: Any) -> Any:
    """Return the model itself, without a scaler before it."""
    from sklearn.pipeline import Pipeline

    return fitted[-1] if isinstance(fitted, Pipeline) else fitted
