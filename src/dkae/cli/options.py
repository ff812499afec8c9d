"""What the commands share: options, examples in the help, and one-line errors."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

DATA_HELP = """DATA is a file (.npy, .npz, file.npz:name, .csv, IDX) or a built-in data set:
mnist20k, mnist20k:train, mnist20k:validation, mnist20k:test, digits, mnist (downloaded)."""


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
        yield
    except (ValueError, OSError, FloatingPointError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error
