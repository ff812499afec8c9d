"""Options that commands share, and examples in the help."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))

DATA_HELP = """DATA is a file (.csv, .tsv, .parquet, .npy, .npz, file.npz:name, IDX) or a built-in
data set: mnist20k, mnist20k:train, mnist20k:validation, mnist20k:test, digits. A first line of a
.csv or .tsv file is its header if it has no number in it."""

#: The fate of label and index in the output of most commands.
COPIED = {"label": "copied to a table as its last column", "index": "copied as its first"}


def example(*commands: str, note: str = "") -> str:
    """Return an epilog with example commands, which click does not wrap."""
    return "\n\n".join(["\b\nExample:\n" + "\n".join(f"  {c}" for c in commands), note])


def column_options(label: str = "", index: str = "") -> Callable[[Command], Command]:
    """Add --columns, --drop, --label and --index, which a command gets as the dict `layout`.

    The arguments describe the fate of the label and of the index, which are no features.
    """
    columns = "such as a,b,c, by name or by position from 0"
    texts = {
        "columns": f"The features, {columns}.",
        "drop": f"Columns that are no features, {columns}.",
        "label": f"Column of labels: no feature{label and ', but ' + label}.",
        "index": f"Column that identifies the rows: no feature{index and ', but ' + index}.",
    }
    options = [click.option(f"--{name}", help=text) for name, text in texts.items()]

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_layout(**values: Any) -> Any:
            layout = {name: values.pop(name) for name in texts}
            return command(layout=layout, **values)

        return reduce(lambda f, option: option(f), reversed(options), with_layout)  # type: ignore[return-value]

    return decorate


scale_option = click.option(
    "--scale",
    type=float,
    default=1.0,
    show_default=True,
    help="Divide rows by this number, such as 255 for pixels that are bytes. It is not part of the "
    "model: give the same to each command.",
)
