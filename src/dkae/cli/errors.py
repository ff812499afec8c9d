"""Every failure of a command is one line and an exit code; a traceback is for those who ask."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator

import click

#: Set to anything, it shows where an error came from.
TRACEBACK = "DKAE_TRACEBACK"
#: Characters at both ends of an error that are shown; a field of a table may have a megabyte.
_SHOWN = 500


class Interrupted(click.ClickException):
    """Ctrl-C; a shell expects this number of it."""

    exit_code = 130


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turn whatever is raised into one line; warnings are one line each, too."""
    try:
        with warnings.catch_warnings():
            # Columns are matched by name when a table is read; what a model gets is an array.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # takes any
            yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # for click; nobody reads what is written to a broken pipe
    except Exception as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc(file=sys.stderr)
        raise click.ClickException(_who() + _describe(error)) from error


def _who() -> str:
    """Return who speaks, where torchrun has started several: all of them say what went wrong."""
    rank, size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    return f"rank {rank}: " if rank and size not in ("", "1") else ""


def one_line(text: object) -> str:
    """Return text without line breaks and control characters, which a file name may have."""
    words = " ".join(str(text).split())
    if len(words) > 2 * _SHOWN:
        words = f"{words[:_SHOWN]} … {words[-_SHOWN:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def _describe(error: Exception) -> str:
    """Say what went wrong; what no check has foreseen is a bug."""
    text = one_line(error)
    if isinstance(error, MemoryError) or _is_of_memory(error):
        return (
            f"this needs more memory than there is ({text[:200]}): pass fewer rows, a smaller "
            "--batch-size, or narrower layers"
        )
    if isinstance(error, ValueError | OSError | FloatingPointError) or _is_of_another(error):
        return text
    return (
        f"{type(error).__name__}: {text}; this is a bug of dkae: please report it, with what "
        f"{TRACEBACK}=1 shows"
    )


def _is_of_another(error: Exception) -> bool:
    """Say whether another process of the run has failed; without importing torch for it."""
    return type(error).__name__ == "LostProcessError"


def _is_of_memory(error: Exception) -> bool:
    """Say whether torch lacks memory, or cannot even count how much it would need."""
    signs = ("allocate", "out of memory", "overflowed", "overflow when unpacking")
    text = str(error).lower()
    return isinstance(error, RuntimeError | TypeError) and any(sign in text for sign in signs)


def _show_warning(message: Warning | str, *_: object) -> None:
    """Show a warning as one line, without a line of code that says nothing to a user."""
    click.echo(f"Warning: {one_line(message)}", err=True)
