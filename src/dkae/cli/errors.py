"""Every failure of a command is one line and an exit code; a traceback is shown on request."""

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Iterator

import click

#: If this variable is set, the traceback of an error is shown too.
TRACEBACK = "DKAE_TRACEBACK"
#: Characters at both ends of an error that are shown; a field of a table may have a megabyte.
_SHOWN = 500


class Interrupted(click.ClickException):
    """Ctrl-C; a shell expects this exit code."""

    exit_code = 130


@contextlib.contextmanager
def clear_errors() -> Iterator[None]:
    """Turn any error into one line; warnings are one line each, too."""
    try:
        with warnings.catch_warnings():
            # Columns are matched by name when a table is read; models get arrays.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            # A command does not save a model that has learned only a part.
            warnings.filterwarnings("ignore", message="training was interrupted")
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # takes any
            yield
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise  # click handles them; a broken pipe has no reader
    except Exception as error:
        if os.environ.get(TRACEBACK):
            traceback.print_exc(file=sys.stderr)
        raise click.ClickException(_rank() + _describe(error)) from error


def _rank() -> str:
    """Return the rank of this process under torchrun, where each process reports its errors."""
    rank, size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    return f"rank {rank}: " if rank and size not in ("", "1") else ""


def one_line(text: object) -> str:
    """Return text without line breaks and control characters, which a file name may have."""
    words = " ".join(str(text).split())
    if len(words) > 2 * _SHOWN:
        words = f"{words[:_SHOWN]} … {words[-_SHOWN:]}"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def _describe(error: Exception) -> str:
    """Return the message for an error; one that no check has raised is a bug."""
    text = one_line(error)
    if isinstance(error, MemoryError) or _is_of_memory(error):
        return (
            f"this needs more memory than there is ({text[:200]}): pass fewer rows, a smaller "
            "--batch-size, or narrower layers"
        )
    # The last one without importing torch for it.
    expected = isinstance(error, ValueError | OSError | FloatingPointError)
    if expected or type(error).__name__ == "LostProcessError":
        return text
    return (
        f"{type(error).__name__}: {text}; this is a bug of dkae: please report it, with the output "
        f"of {TRACEBACK}=1"
    )


def _is_of_memory(error: Exception) -> bool:
    """Return whether torch lacks memory, or cannot count how much it would need."""
    signs = ("allocate", "out of memory", "overflowed", "overflow when unpacking")
    text = str(error).lower()
    return isinstance(error, RuntimeError | TypeError) and any(sign in text for sign in signs)


def _show_warning(message: Warning | str, *_: object) -> None:
    """Show a warning as one line, without its line of code."""
    click.echo(f"Warning: {one_line(message)}", err=True)
