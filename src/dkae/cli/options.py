"""What the commands share: the model, examples in the help, and the log."""

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))

DATA_HELP = """DATA is a file (.csv, .tsv, .parquet, .npy, .npz, file.npz:name, IDX) or a built-in
data set: mnist20k, mnist20k:train, mnist20k:validation, mnist20k:test, digits, mnist (downloaded).
A first line of a .csv or .tsv file is its header if it has no number in it."""


def example(*commands: str, note: str = "") -> str:
    """Return an epilog with example commands, which click does not wrap."""
    return "\n\n".join(["\b\nExample:\n" + "\n".join(f"  {c}" for c in commands), note])


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
