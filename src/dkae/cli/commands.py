"""Commands that apply a fitted map to a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dkae.cli.models import input_names, load_model, map_of, open_rows, open_table, stream, write
from dkae.cli.options import (
    COPIED,
    DATA_HELP,
    MODEL,
    ROW_ENDINGS,
    column_options,
    example,
    output,
    scale_option,
)  # fmt: skip


@click.command(
    epilog=example(
        "dkae transform model.safetensors mnist20k:test -o codes.npy",
        "dkae transform model.safetensors rows.csv -o codes.csv --index id --label species",
        "dkae transform model.safetensors pixels.npy -o codes.npy --scale 255",
        note=DATA_HELP,
    )
)
@MODEL
@click.argument("data")
@output(ROW_ENDINGS)
@column_options(**COPIED)
@scale_option
def transform(model: Path, data: str, out: Path, **reading: Any) -> None:
    """Map the rows of DATA into kernel space; they are read and written a piece at a time.

    If the model was fitted to a table with a header, columns are found by their names.
    """
    fitted = load_model(model)
    rows = open_rows(data, fitted, **reading)
    stream(out, rows, fitted.transform, fitted.get_feature_names_out(), "codes")


@click.command(
    epilog=example(
        "dkae inverse model.safetensors codes.npy -o rows.csv",
        "dkae inverse model.safetensors codes.csv -o rows.csv --index id --label species",
    )
)
@MODEL
@click.argument("codes")
@output(ROW_ENDINGS)
@column_options(**COPIED)
def inverse(model: Path, codes: str, out: Path, **columns: Any) -> None:
    """Map CODES (a file, as transform writes it) back to input space."""
    fitted = load_model(model)
    # By their names if the file has them, else in the order of the columns.
    read = open_table(codes, None, wanted=list(fitted.get_feature_names_out()), **columns)
    stream(out, read, fitted.inverse_transform, input_names(fitted), "rows")


@click.command(
    epilog=example(
        "dkae denoise model.safetensors noisy.npy --clean mnist20k:train -o clean.npy",
        note=DATA_HELP,
    )
)
@MODEL
@click.argument("noisy")
@click.option(
    "--clean",
    required=True,
    help="Rows without noise, such as the training rows; only --columns and --scale count there.",
)
@click.option(
    "--components",
    type=int,
    help="Principal components to keep; 32 by default, or half of the code if it is narrower "
    "than 64.",
)
@output(ROW_ENDINGS)
@column_options(**COPIED)
@scale_option
def denoise(
    model: Path, noisy: str, clean: str, components: int | None, out: Path, **reading: Any
) -> None:
    """Remove from the rows of NOISY the directions that codes of clean rows lack."""
    from dkae import codespace

    fitted = load_model(model)
    if components is None:
        components = min(32, (map_of(fitted).n_components_ + 1) // 2)
    rows = open_rows(noisy, fitted, **reading)
    shared = {name: reading[name] for name in ("columns", "scale")}
    clean_rows = open_rows(clean, fitted, **shared).read().rows
    cleaner = codespace.code_pca(fitted, clean_rows, components)
    stream(out, rows, partial(codespace.denoise, cleaner), input_names(fitted), "rows")


@click.command(
    epilog=example(
        "dkae interpolate model.safetensors mnist20k:test --between 0 5 -o path.npy",
        note=DATA_HELP,
    )
)
@MODEL
@click.argument("data")
@click.option("--between", required=True, type=(int, int), help="Ids of two rows, from 0.")
@click.option(
    "--steps",
    default=9,
    show_default=True,
    type=click.IntRange(2, 1_000_000),
    help="Points, both ends included.",
)
@output(ROW_ENDINGS)
@column_options()
@scale_option
def interpolate(
    model: Path, data: str, between: tuple[int, int], steps: int, out: Path, **reading: Any
) -> None:
    """Write the rows on the straight line through kernel space between two rows of DATA."""
    from dkae import codespace
    from dkae.tables import Table

    fitted = load_model(model)
    table = open_rows(data, fitted, **reading).read().rows
    for row in between:
        if not 0 <= row < len(table):
            raise ValueError(f"--between {row}: DATA has rows 0 to {len(table) - 1}")
    x, y = (table[[row]] for row in between)
    rows = codespace.interpolate(fitted, x, y, steps)
    write(out, Table(rows, input_names(fitted)), "rows")
