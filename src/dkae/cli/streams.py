"""Tables that flow from a file through a model to a file; memory holds a piece of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dkae.cli.errors import naming_file

if TYPE_CHECKING:
    from dkae.tables import Table, TableReader


def stream(
    out: Path, reader: TableReader, apply: Callable[[Any], Any], names: Sequence[str], what: str
) -> None:
    """Write the rows that a map returns for the rows of a table, piece by piece."""
    n_rows = 0
    with _writing(out) as append, _bar(reader) as advance:
        for piece in reader:
            with _counting_from(n_rows, reader.source):
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

    with naming_file(out), replacing(out) as temporary:
        writer = open_writer(temporary)
        try:
            yield writer.append
        finally:
            writer.close()


def _report(out: Path, what: str, shape: tuple[int, ...]) -> None:
    click.echo(f"{click.format_filename(out)}: {what} of shape {shape}")


@contextmanager
def _counting_from(start: int, source: str) -> Iterator[None]:
    """Name the row of a file at which a piece starts: a model counts from there."""
    try:
        yield
    except ValueError as error:
        if start == 0:
            raise
        raise ValueError(f"{error}; its row 0 is row {start} of {source}") from error


@contextmanager
def _bar(reader: TableReader) -> Iterator[Callable[[int], None]]:
    """Show how many rows are done, on a terminal; their total may be unknown."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    # Standard error: the output of a command can be piped while the bar is seen.
    console = Console(stderr=True)
    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), Remaining())
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        task = bar.add_task("", total=reader.n_rows)
        yield lambda n: bar.advance(task, n)
