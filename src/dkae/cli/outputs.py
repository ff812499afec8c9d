"""Outputs of commands: checked before any work.

No file is overwritten without --force. A file that the same command reads, or resumes from, is
never overwritten.
"""

import os
import tempfile
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from dkae.cli.options import Command

#: Endings of files of columns, which pyarrow writes.
COLUMN_ENDINGS = (".csv", ".tsv", ".tab", ".parquet")
#: Endings of files of rows.
ROW_ENDINGS = (".npy", *COLUMN_ENDINGS)
#: For click, which names the option before the problem.
_OUT = "'-o' / '--out'"

force_option = click.option("--force", is_flag=True, help="Overwrite a file that exists.")


def output(endings: Sequence[str], *, kept: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add -o, for a file of one of the endings, and --force.

    `kept` names options with files that a command writes and later reads, such as a checkpoint:
    they may exist, but must not be another file of the call.
    """

    def check(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
        if value.suffix not in endings:
            raise click.BadParameter(f"{value} must end in {' or '.join(endings)}")
        if value.suffix in COLUMN_ENDINGS and find_spec("pyarrow") is None:
            raise click.BadParameter(f"{value} needs pyarrow: pip install 'dkae[table]'")
        return value

    path = click.Path(dir_okay=False, writable=True, path_type=Path)
    out = click.option(
        "-o", "--out", required=True, type=path, callback=check, help="File to write."
    )

    def decorate(command: Command) -> Command:
        @wraps(command)
        def checked(*, force: bool, **options: Any) -> Any:
            context = click.get_current_context()
            for name in ("out", *kept):
                _check_other_files(context, name)
            check_output(options["out"], force=force)
            for name in kept:
                if options[name] is not None:
                    check_folder(Path(os.path.realpath(options[name])), f"'--{name}'")
            return command(**options)

        return out(force_option(checked))  # type: ignore[return-value]

    return decorate


def check_output(path: Path, *, force: bool) -> None:
    """Raise if a file exists and `force` is not set, or if it cannot be written."""
    if path.exists() and not path.is_file():  # a device, for example
        raise click.BadParameter(f"{path} is not a regular file: pass another", param_hint=_OUT)
    if path.exists() and not force:
        raise click.BadParameter(
            f"{path} exists: pass another name, or --force to overwrite it", param_hint=_OUT
        )
    target = Path(os.path.realpath(path))  # the end of a link
    if target.is_symlink():
        raise click.BadParameter(f"{path} is a link to itself: remove it", param_hint=_OUT)
    check_folder(target)


def check_folder(path: Path, option: str = _OUT) -> None:
    """Raise if the folder takes no file of this name: one like it is made there, and removed."""
    folder = path.parent
    if not folder.is_dir():
        raise click.BadParameter(
            f"folder {folder} does not exist: make it, or pass another", param_hint=option
        )
    try:
        # Named like the temporary file that replaces the output in the end.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=path.suffix):
            pass
    except OSError as error:
        raise click.BadParameter(
            f"{path} is not writable ({error.strerror}): pass a file in another folder",
            param_hint=option,
        ) from error


def refuse_input(path: Path, source: str | Path, what: str, option: str = _OUT) -> None:
    """Raise if an output is a file that is read: it would be lost."""
    if _is_same_file(path, source):
        raise click.BadParameter(
            f"{path} is the file of {what} too, which would be lost: pass another name",
            param_hint=option,
        )


def _check_other_files(context: click.Context, name: str) -> None:
    """Raise if any other argument of the call names the same file."""
    parameters = {p.name: p.get_error_hint(context) for p in context.command.params}
    path = context.params[name]
    for other, value in context.params.items():
        if path is not None and other != name and isinstance(value, str | Path):
            refuse_input(Path(path), value, parameters[other], parameters[name])


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
