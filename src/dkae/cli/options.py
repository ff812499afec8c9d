"""What commands share: options, models, and the files that they read and write.

No file is overwritten without --force. A file that the same command reads, or resumes from, is
never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dkae.files import check_writable

if TYPE_CHECKING:
    from dkae.tables import Table, TableReader

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))

DATA_HELP = """DATA is a file (.csv, .tsv, .parquet, .npy) or a built-in data set: mnist20k,
mnist20k:train, mnist20k:validation, mnist20k:test, digits. A first line of a .csv or .tsv file is
its header if it has no number in it."""

#: Endings of files of rows.
ROW_ENDINGS = (".npy", ".csv", ".tsv", ".parquet")
#: For click, which names the option before the problem.
_OUT = "'-o' / '--out'"

# --- options -------------------------------------------------------------------------------------


def example(*commands: str, note: str = "") -> str:
    """Return an epilog with example commands, which click does not wrap."""
    return "\n\n".join(["\b\nExample:\n" + "\n".join(f"  {c}" for c in commands), note])


def options(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add several options, which the help shows in this order."""
    return lambda command: reduce(lambda f, option: option(f), reversed(decorators), command)


column_options = options(
    click.option("--columns", help="The features, such as a,b,c, by name or by position from 0."),
    click.option("--drop", help="Columns that are no features, such as a,b,c."),
    click.option(
        "--label", help="Column that is no feature: labels to fit, or copied as the last column."
    ),
    click.option("--index", help="Column that is no feature: copied as the first column."),
)

scale_option = click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="Divide rows by this number, such as 255 for pixels that are bytes. It is not part of the "
    "model: give the same to each command.",
)

force_option = click.option("--force", is_flag=True, help="Overwrite a file that exists.")


def output(endings: Sequence[str], *, kept: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add -o, for a file of one of the endings, and --force.

    `kept` names options with files that a command writes and later reads, such as a checkpoint:
    they may exist, but must not be another file of the call.
    """

    def check(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
        if value.suffix not in endings:
            raise click.BadParameter(f"{value} must end in {' or '.join(endings)}")
        return value

    path = click.Path(dir_okay=False, path_type=Path)
    out = click.option(
        "-o", "--out", required=True, type=path, callback=check, help="File to write."
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def checked(*, force: bool, **given: Any) -> Any:
            for name in ("out", *kept):
                _check_other_files(click.get_current_context(), name)
            check_output(given["out"], force=force)
            return command(**given)

        return out(force_option(checked))  # type: ignore[return-value]

    return decorate


# --- files that are written ----------------------------------------------------------------------


def check_output(path: Path, *, force: bool) -> None:
    """Raise if a file exists and `force` is not set, or if it cannot be written."""
    if path.is_file() and not force:
        raise click.BadParameter(
            f"{path} exists: pass another name, or --force to overwrite it", param_hint=_OUT
        )
    if Path(os.path.realpath(path)).is_symlink():
        raise click.BadParameter(f"{path} is a link to itself: remove it", param_hint=_OUT)
    check_writable(path, "--out")


def refuse_input(path: Path, source: str | Path, what: str, option: str = _OUT) -> None:
    """Raise if an output is a file that is read: it would be lost."""
    if _is_same_file(path, source):
        raise click.BadParameter(
            f"{path} is the file of {what} too, which would be lost: pass another name",
            param_hint=option,
        )


def _check_other_files(context: click.Context, name: str) -> None:
    """Raise if any other argument of the call names the same file."""
    hints = {p.name: p.get_error_hint(context) for p in context.command.params}
    path = context.params[name]
    for other, value in context.params.items():
        if path is not None and other != name and isinstance(value, str | Path):
            refuse_input(Path(path), value, hints[other], hints[name])


def _is_same_file(path: Path, source: str | Path) -> bool:
    """Return whether two paths lead to one file, by links or another spelling."""
    try:
        return path.samefile(source)
    except FileNotFoundError:  # such as two files that are yet to be written
        return os.path.realpath(path) == os.path.realpath(source)
    except (OSError, ValueError):  # not a possible name
        return False


def write(out: Path, tables: Iterable[Table], what: str) -> None:
    """Write tables below each other; the file appears when it is complete."""
    from dkae.tables import write as write_tables

    n_rows = write_tables(out, tables)
    click.echo(f"{click.format_filename(out)}: {n_rows} {what}")


# --- models, and the tables that they read -------------------------------------------------------


def map_of(fitted: Any) -> Any:
    """Return the map itself, without the steps of a pipeline before it."""
    return fitted.steps[-1][1] if hasattr(fitted, "steps") else fitted


def open_table(source: str, model: Any = None, *, wanted: Any = None, **given: Any) -> TableReader:
    """Return a table for a map; columns that it does not use are named on standard error."""
    from dkae.tables import TableReader, listed

    gaps = getattr(model, "missing", "error") == "mask"
    reader = TableReader(source, wanted=wanted, gaps=gaps, **given)
    if reader.unused:
        click.echo(f"{source}: the model does not use {listed(reader.unused)}", err=True)
    return reader


def open_rows(source: str, fitted: Any, **given: Any) -> TableReader:
    """Return the features of a fitted model, by their names if both sides have them."""
    model = map_of(fitted)
    wanted: Any = getattr(fitted, "feature_names_in_", None)
    if wanted is not None:
        wanted = list(wanted)
    elif len(model.row_shape_) == 1:  # tables hold no images
        wanted = int(fitted.n_features_in_)
    return open_table(source, model, wanted=wanted, **given)
