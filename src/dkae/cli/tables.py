"""Tables on the command line: which columns a command takes, and what a model makes of them.

A model is a `DeepKernelizedAutoencoder`, or a pipeline of a `StandardScaler` and one; rows are in
the units of the user's file, before and after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dkae.cli.options import Command

if TYPE_CHECKING:
    from dkae.datasets.tables import Table, TableReader


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


scale_option = click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="Rows are divided by it, such as 255 for pixels that are bytes. A model does not know it: "
    "give the same to each command.",
)


def load_model(path: Path) -> Any:
    """Return the autoencoder in a file, or the pipeline that ends in one."""
    from dkae import DeepKernelizedAutoencoder
    from dkae.persistence import load

    fitted = load(path, device="auto")
    if not isinstance(model_of(fitted), DeepKernelizedAutoencoder):
        raise ValueError(
            f"{path} holds a {type(model_of(fitted)).__name__}, and the command takes a "
            "DeepKernelizedAutoencoder, as `dkae fit` writes it: use dkae.load in Python"
        )
    return fitted


def read_training(source: str, model: Any, layout: dict[str, Any], scale: float) -> Table:
    """Return the table that a model is to be fitted to; rows of large files stay on a disk."""
    with saying_what_masks(model):
        return _reader(source, model, layout, scale=scale).read_or_map()


def open_rows(source: str, fitted: Any, layout: dict[str, Any], scale: float) -> TableReader:
    """Return the features that a fitted model wants, by their names if both sides have them.

    They are read a piece at a time.
    """
    wanted: Any = getattr(fitted, "feature_names_in_", None)
    model = model_of(fitted)
    if wanted is not None:
        wanted = list(wanted)
    elif len(model.row_shape_) == 1:  # else rows are images, and no table
        wanted = int(model.n_features_in_)
    return _reader(source, model, layout, scale=scale, wanted=wanted)


def read_rows(source: str, fitted: Any, layout: dict[str, Any], scale: float) -> Any:
    """Return the same features, all of them."""
    with saying_what_masks(model_of(fitted)):
        return open_rows(source, fitted, layout, scale).read().rows


def map_rows(source: str, fitted: Any, layout: dict[str, Any], scale: float) -> Any:
    """Return the same features; those of large files stay on a disk."""
    with saying_what_masks(model_of(fitted)):
        return open_rows(source, fitted, layout, scale).read_or_map().rows


def open_codes(source: str, fitted: Any, layout: dict[str, Any]) -> TableReader:
    """Return codes, by their names if the file has them, else in the order of the columns."""
    wanted = list(fitted.get_feature_names_out())
    return _reader(source, model_of(fitted), layout, wanted=wanted, or_by_order=True)


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
        fitted = make_pipeline(StandardScaler(), model)
        rows = _standardized(rows, *fitted)
    model.fit(rows, table.labels(), **options)
    if table.names is not None:
        # As scikit-learn has it from a data frame, which needs pandas.
        first = fitted[0] if standardize else model
        first.feature_names_in_ = np.array(table.names, dtype=object)
    return fitted


def _standardized(rows: Any, scaler: Any, model: Any) -> Any:
    """Fit a scaler, and return what it makes of the rows; those on a disk stay there."""
    from dkae.datasets.lazy import ChangedRows, floats
    from dkae.datasets.tables import checked_pieces
    from dkae.rows import is_row_array

    if not is_row_array(rows):
        return scaler.fit_transform(rows if rows.dtype.kind == "f" else floats(rows))
    with saying_what_masks(model):
        for piece in checked_pieces("DATA", rows, gaps=_takes_gaps(model)):
            scaler.partial_fit(floats(piece))
    return ChangedRows(rows, lambda part: scaler.transform(floats(part)))


def prior_gram(fitted: Any, rows: Any) -> Any:
    """Return the Gram matrix of the model's kernel, which sees the rows as the network does."""
    model = model_of(fitted)
    return model.prior_gram(rows if model is fitted else fitted[:-1].transform(rows))


def input_names(fitted: Any) -> list[str]:
    """Return the names of the input features."""
    n = model_of(fitted).row_shape_[0]
    return list(getattr(fitted, "feature_names_in_", [f"x{i}" for i in range(n)]))


@contextmanager
def saying_what_masks(model: Any) -> Iterator[None]:
    """Say of a gap what takes it."""
    from dkae.datasets.tables import GapError

    try:
        yield
    except GapError as error:
        if not hasattr(model, "missing"):
            raise
        raise GapError(f"{error}; or train with --set missing=mask") from error


def model_of(fitted: Any) -> Any:
    """Return the model itself, without a scaler before it."""
    from sklearn.pipeline import Pipeline

    return fitted[-1] if isinstance(fitted, Pipeline) else fitted


def _reader(
    source: str, model: Any, layout: dict[str, Any], *, scale: float = 1.0, **wishes: Any
) -> TableReader:
    from dkae._support.checks import check_number
    from dkae.datasets.tables import Layout, TableReader

    wishes["scale"] = check_number("--scale", scale, 0, open_low=True)
    return TableReader(source, Layout(**layout), gaps=_takes_gaps(model), **wishes)


def _takes_gaps(model: Any) -> bool:
    return getattr(model, "missing", "error") == "mask"
