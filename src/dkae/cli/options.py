"""What the commands share: options, examples in the help, and one-line errors."""

import contextlib
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

DATA_HELP = """DATA is a file (.csv, .tsv, .parquet, .npy, .npz, file.npz:name, IDX) or a built-in
data set: mnist20k, mnist20k:train, mnist20k:validation, mnist20k:test, digits, mnist (downloaded).
A first line of a .csv or .tsv file is its header if it has no number in it."""


def example(*commands: str, note: str = "") -> str:
    """Return an epilog with example commands, which click does not wrap."""
    return "\n\n".join(["\b\nExample:\n" + "\n".join(f"  {c}" for c in commands), note])


def check_folder(
    context: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    """Reject a file that cannot be written, before any work is done."""
    if value is not None and not value.parent.is_dir():
        raise click.BadParameter(f"folder {value.parent} does not exist")
    if value is not None and not os.access(value.parent, os.W_OK):
        raise click.BadParameter(f"folder {value.parent} cannot be written to")
    return value


def output(endings: str) -> Callable[[Command], Command]:
    """Return an option -o for a file that can be written, checked before any work is done."""

    def check(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
        if value.suffix not in endings.split():
            raise click.BadParameter(f"{value} must end in one of {endings}")
        if value.suffix == ".parquet" and None in map(find_spec, ("pandas", "pyarrow")):
            raise click.BadParameter(f"{value} needs pandas: pip install 'dkae[table]'")
        check_folder(context, parameter, value)
        return value

    path = click.Path(dir_okay=False, writable=True, path_type=Path)
    return click.option(
        "-o", "--out", required=True, type=path, callback=check, help="File to write."
    )


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turn errors that a user can fix into one line; a bug keeps its traceback."""
    try:
        with warnings.catch_warnings():
            # Columns are matched by name when a table is read; what a model gets is an array.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # takes any
            yield
    except (ValueError, OSError, FloatingPointError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error


def _show_warning(message: Warning | str, *_: object) -> None:
    """Show a warning as one line, without a line of code that says nothing to a user."""
    click.echo(f"Warning: {' '.join(str(message).split())}", err=True)


@contextlib.contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write what the library logs to standard error meanwhile."""
    logger, handler = logging.getLogger("dkae"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
