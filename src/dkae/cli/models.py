"""Models on the command line, and the tables that flow through them from a file to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dkae.tables import Table, TableReader


def load_model(path: Path) -> Any:
    """Return the map in a file, or the pipeline that ends in one."""
    from dkae.persistence import load

    return load(path, device="auto")


def map_of(fitted: Any) -> Any:
    """Return the map itself, without the steps of a pipeline before it."""
    return fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted


def input_names(fitted: Any) -> list[str]:
    """Return the names of the input features."""
    unnamed = (f"x{i}" for i in range(fitted.n_features_in_))
    return list(getattr(fitted, "feature_names_in_", unnamed))


# --- tables in -----------------------------------------------------------------------------------


def open_table(
    source: str, model: Any, *, scale: float = 1.0, wanted: Any = None, **columns: Any
) -> TableReader:
    """Return a table for a map; columns that it does not use are named on standard error."""
    from dkae.tables import Layout, TableReader, listed

    gaps = getattr(model, "missing", "error") == "mask"
    by_order = model is None  # codes may have other names
    reader = TableReader(
        source, Layout(**columns), wanted=wanted, by_order=by_order, gaps=gaps, scale=scale
    )
    if reader.unused:
        click.echo(f"{source}: the model does not use {listed(reader.unused)}", err=True)
    return reader


def open_rows(source: str, fitted: Any, **reading: Any) -> TableReader:
    """Return the features of a fitted model, by their names if both sides have them."""
    model = map_of(fitted)
    wanted: Any = getattr(fitted, "feature_names_in_", None)
    if wanted is not None:
        wanted = list(wanted)
    elif len(model.row_shape_) == 1:  # tables hold no images
        wanted = int(fitted.n_features_in_)
    return open_table(source, model, wanted=wanted, **reading)


# --- tables out ----------------------------------------------------------------------------------


def stream(
    out: Path, reader: TableReader, apply: Callable[[Any], Any], names: Sequence[str], what: str
) -> None:
    """Write the rows that a map returns for the rows of a table, piece by piece."""
    n_rows = 0
    with _writing(out) as append, _bar(reader) as advance:
        for piece in reader:
            rows = apply(piece.rows)
            append(piece.with_rows(rows, names))
            n_rows += len(rows)
            advance(len(rows))
    _report(out, what, (n_rows, *rows.shape[1:]))


def write(out: Path, table: Table, what: str) -> None:
    """Write a table."""
    with _writing(out) as append:
        append(table)
    _report(out, what, table.rows.shape)


@contextmanager
def _writing(out: Path) -> Iterator[Callable[[Table], None]]:
    """Yield a function that appends to a file, which appears if all pieces are written."""
    from dkae.persistence import replacing
    from dkae.tables import open_writer

    with replacing(out) as temporary:
        writer = open_writer(temporary)
        try:
            yield writer.append
        finally:
            writer.close()


def _report(out: Path, what: str, shape: tuple[int, ...]) -> None:
    click.echo(f"{click.format_filename(out)}: {what} of shape {shape}")


@contextmanager
def _bar(reader: TableReader) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, on a terminal; their total may be unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # Standard error: the output of a command can be piped while the bar is seen.
    console = Console(stderr=True)
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=reader.n_rows)
        yield lambda n: bar.advance(task, n)
