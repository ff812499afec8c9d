"""Tables that flow from a file through a model to a file; memory holds a piece of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dkae.cli.tables import model_of, saying_what_masks

if TYPE_CHECKING:
    from dkae.datasets.tables import Table, TableReader

Map = Callable[[Any], Any]


def stream(
    out: Path, reader: TableReader, fitted: Any, apply: Map, names: Sequence[str], what: str
) -> None:
    """Write what a map makes of the rows of a table, piece by piece, and say so."""
    from dkae.datasets.writers import writing

    n_rows = 0
    with saying_what_masks(model_of(fitted)), writing(out) as writer, _bar(reader) as advance:
        for piece in reader:
            with _counting_from(n_rows, reader.source):
                rows = apply(piece.rows)
            writer.append(piece.with_rows(rows, names))
            n_rows += len(rows)
            advance(len(rows))
    _say(out, what, (n_rows, *rows.shape[1:]))


def write(out: Path, table: Table, what: str) -> None:
    """Write a table, and say so."""
    from dkae.datasets.tables import write_table

    write_table(out, table)
    _say(out, what, table.rows.shape)


def _say(out: Path, what: str, shape: tuple[int, ...]) -> None:
    click.echo(f"{click.format_filename(out)}: {what} of shape {shape}")


@contextmanager
def _counting_from(start: int, source: str) -> Iterator[None]:
    """Say which row of a file is the first of a piece: a model counts from there."""
    try:
        yield
    except ValueError as error:
        if start == 0:
            raise
        raise ValueError(f"{error}; its row 0 is row {start} of {source}") from error


@contextmanager
def _bar(reader: TableReader) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, on a terminal; how many there are may not be known."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    # Standard error: what a command prints can be piped while the bar is seen.
    console = Console(stderr=True)
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task("", total=reader.n_rows)
        yield lambda n: bar.advance(task, n)
