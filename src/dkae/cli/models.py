"""Models on the command line, and the tables that they take."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dkae.tables import TableReader


def load_model(path: Path) -> Any:
    """Return the map in a file, or the pipeline that ends in one."""
    from dkae.persistence import load

    return load(path, device="auto")


def map_of(fitted: Any) -> Any:
    """Return the map itself, without the steps of a pipeline before it."""
    return fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted


def input_names(fitted: Any) -> list[str]:
    """Return the names of the input features."""
    return list(getattr(fitted, "feature_names_in_", map(_unnamed, range(fitted.n_features_in_))))


def open_training(source: str, model: Any, layout: dict[str, Any], scale: float) -> TableReader:
    """Return the table to which a map is fitted."""
    return _open(source, model, layout, scale=scale)


def open_rows(source: str, fitted: Any, layout: dict[str, Any], scale: float) -> TableReader:
    """Return the features of a fitted model, by their names if both sides have them.

    Columns that the model does not use are named on standard error.
    """
    wanted: Any = getattr(fitted, "feature_names_in_", None)
    if wanted is not None:
        wanted = list(wanted)
    elif len(map_of(fitted).row_shape_) == 1:  # tables hold no images
        wanted = int(fitted.n_features_in_)
    return _open(source, map_of(fitted), layout, scale=scale, wanted=wanted)


def open_codes(source: str, fitted: Any, layout: dict[str, Any]) -> TableReader:
    """Return codes, by their names if the file has them, else in the order of the columns."""
    wanted = list(fitted.get_feature_names_out())
    return _open(source, None, layout, wanted=wanted, by_order=True)


def read_rows(source: str, fitted: Any, layout: dict[str, Any], scale: float) -> Any:
    """Return the features of a fitted model, all rows of them."""
    return open_rows(source, fitted, layout, scale).read().rows


def read_matrix(source: str) -> Any:
    """Return a table of numbers with all its columns, such as a Gram matrix."""
    from dkae.tables import read_table

    return read_table(source).rows


def _open(source: str, model: Any, layout: dict[str, Any], **wishes: Any) -> TableReader:
    from dkae.tables import Layout, TableReader

    gaps = getattr(model, "missing", "error") == "mask"
    reader = TableReader(source, Layout(**layout), gaps=gaps, **wishes)
    if reader.unused:
        from dkae.tables.columns import listed

        click.echo(f"{source}: the model does not use {listed(reader.unused)}", err=True)
    return reader


def _unnamed(i: int) -> str:
    return f"x{i}"
