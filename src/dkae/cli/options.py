"""Options that commands share, checks of the files that they write, and examples in the help.

No file is overwritten without --force. A file that the same command reads, or resumes from, is
never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from dkae._support.files import check_writable

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))

DATA_HELP = """DATA is a file (.csv, .tsv, .parquet, .npy, .npz, file.npz:name, IDX) or a built-in
data set: mnist20k, mnist20k:train, mnist20k:validation, mnist20k:test, digits. A first line of a
.csv or .tsv file is its header if it has no number in it."""

#: The fate of label and index in the output of most commands.
COPIED = {"label": "copied to a table as its last column", "index": "copied as its first"}
#: Endings of files of rows.
ROW_ENDINGS = (".npy", ".csv", ".tsv", ".tab", ".parquet")
#: For click, which names the option before the problem.
_OUT = "'-o' / '--out'"


def example(*commands: str, note: str = "") -> str:
    """Return an epilog with example commands, which click does not wrap."""
    return "\n\n".join(["\b\nExample:\n" + "\n".join(f"  {c}" for c in commands), note])


def column_options(label: str = "", index: str = "") -> Callable[[Command], Command]:
    """Add --columns, --drop, --label and --index.

    The arguments describe how the label and the index are treated, which are not features.
    """
    columns = "such as a,b,c, by name or by position from 0"
    texts = {
        "columns": f"The features, {columns}.",
        "drop": f"Columns that are no features, {columns}.",
        "label": f"Column of labels: no feature{label and ', but ' + label}.",
        "index": f"Column that identifies the rows: no feature{index and ', but ' + index}.",
    }
    options = [click.option(f"--{name}", help=text) for name, text in texts.items()]
    return lambda command: reduce(lambda f, option: option(f), reversed(options), command)


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
        def checked(*, force: bool, **options: Any) -> Any:
            for name in ("out", *kept):
                _check_other_files(click.get_current_context(), name)
            check_output(options["out"], force=force)
            return command(**options)

        return out(force_option(checked))  # type: ignore[return-value]

    return decorate


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
    stem, _, key = str(source).partition(".npz:")
    source = f"{stem}.npz" if key else source
    try:
        return path.samefile(source)
    except FileNotFoundError:  # such as two files that are yet to be written
        return os.path.realpath(path) == os.path.realpath(source)
    except (OSError, ValueError):  # not a possible name
        return False
