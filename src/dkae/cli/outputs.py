"""Outputs of commands: checked before any work, and never at the cost of a file.

A file that exists is replaced with --force alone. One that the same command reads, or resumes from,
is never replaced.
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

#: For click, which names the option before what is wrong with it.
_OUT = "'-o' / '--out'"

force_option = click.option("--force", is_flag=True, help="Replace a file that exists.")


def output(endings: str, *, kept: Sequence[str] = ()) -> Callable[[Command], Command]:
    """Add -o, for a file of one of the endings, and --force.

    `kept` names options with files that a command writes and later reads, such as a checkpoint:
    they may exist, but must be no other file of the call.
    """

    def check(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
        if value.suffix not in endings.split():
            raise click.BadParameter(f"{value} must end in one of {endings}")
        if value.suffix == ".parquet" and None in map(find_spec, ("pandas", "pyarrow")):
            raise click.BadParameter(f"{value} needs pandas: pip install 'dkae[table]'")
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
                _refuse_other_files_of(context, name)
            check_output(options["out"], force=force)
            for name in kept:
                if options[name] is not None:
                    check_folder(Path(os.path.realpath(options[name])), f"'--{name}'")
            return command(**options)

        return out(force_option(checked))  # type: ignore[return-value]

    return decorate


def check_output(path: Path, *, force: bool) -> None:
    """Refuse a file that is there already, or that cannot be written."""
    if path.exists() and not path.is_file():  # a device, for example
        raise click.BadParameter(f"{path} is no ordinary file: pass another", param_hint=_OUT)
    if path.exists() and not force:
        raise click.BadParameter(
            f"{path} exists: pass another name, or --force to replace it", param_hint=_OUT
        )
    target = Path(os.path.realpath(path))  # what a link leads to
    if target.is_symlink():
        raise click.BadParameter(f"{path} is a link to itself: remove it", param_hint=_OUT)
    check_folder(target)


def check_folder(path: Path, option: str = _OUT) -> None:
    """Refuse a file that its folder does not take: one like it is made there, and removed."""
    folder = path.parent
    if not folder.is_dir():
        raise click.BadParameter(
            f"folder {folder} does not exist: make it, or pass another", param_hint=option
        )
    try:
        # Named as the file that will replace the output once all is written.
        with tempfile.NamedTemporaryFile(dir=folder, prefix=f".{path.name}.", suffix=path.suffix):
            pass
    except OSError as error:
        raise click.BadParameter(
            f"{path} is not writable ({error.strerror}): pass a file in another folder",
            param_hint=option,
        ) from error


def refuse_input(path: Path, source: str | Path, what: str, option: str = _OUT) -> None:
    """Refuse to write to a file that is read: it would be lost."""
    if _is_same_file(path, source):
        raise click.BadParameter(
            f"{path} is the file of {what} too, which would be lost: pass another name",
            param_hint=option,
        )


def _refuse_other_files_of(context: click.Context, name: str) -> None:
    """Refuse an output that any other argument of the call names, whatever it is for."""
    parameters = {p.name: p.get_error_hint(context) for p in context.command.params}
    path = context.params[name]
    for other, value in context.params.items():
        if path is not None and other != name and isinstance(value, str | Path):
            refuse_input(Path(path), value, parameters[other], parameters[name])


def _is_same_file(path: Path, source: str | Path) -> bool:
    """Compare files by what they are: a link, or another way to write a path, is the same one."""
    stem, _, key = str(source).partition(".npz:")
    source = f"{stem}.npz" if key else source
    try:
        return path.samefile(source)
    except FileNotFoundError:  # such as two files that are yet to be written
        return os.path.realpath(path) == os.path.realpath(source)
    except (OSError, ValueError):  # no name that a file could have
        return False
