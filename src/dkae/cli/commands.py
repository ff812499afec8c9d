"""Commands that apply a fitted map to a table, or show what a model file holds."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dkae.cli.errors import one_line
from dkae.cli.options import (
    DATA_HELP,
    MODEL,
    ROW_ENDINGS,
    column_options,
    example,
    map_of,
    open_rows,
    open_table,
    output,
    scale_option,
    write,
)

if TYPE_CHECKING:
    from dkae.tables import Table, TableReader

#: Longer values of a model file are cut.
WIDTH = 60


def _load(path: Path) -> Any:
    """Return the map in a file, or the pipeline that ends in one."""
    from dkae.persistence import load

    return load(path, device="auto")


def _mapped(reader: TableReader, apply: Callable[[Any], Any], names: Any) -> Iterator[Table]:
    """Yield what a map makes of the pieces of a table; a terminal shows a bar."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    # Standard error: the output of a command can be piped while the bar is seen.
    console = Console(stderr=True)
    shown = (TextColumn("rows"), BarColumn(), MofNCompleteColumn())
    with Progress(*shown, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=reader.n_rows)
        for piece in reader:
            yield dataclasses.replace(piece, rows=apply(piece.rows), names=names)
            bar.advance(task, len(piece.rows))


def _input_names(fitted: Any) -> Any:
    return getattr(fitted, "feature_names_in_", None)


# --- maps of rows --------------------------------------------------------------------------------


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
@column_options
@scale_option
def transform(model: Path, data: str, out: Path, **given: Any) -> None:
    """Map the rows of DATA into kernel space; they are read and written a piece at a time.

    If the model was fitted to a table with a header, columns are found by their names.
    """
    fitted = _load(model)
    rows = open_rows(data, fitted, **given)
    write(out, _mapped(rows, fitted.transform, fitted.get_feature_names_out()), "codes")


@click.command(
    epilog=example(
        "dkae inverse model.safetensors codes.npy -o rows.csv",
        "dkae inverse model.safetensors codes.csv -o rows.csv --index id --label species",
    )
)
@MODEL
@click.argument("codes")
@output(ROW_ENDINGS)
@column_options
def inverse(model: Path, codes: str, out: Path, **given: Any) -> None:
    """Map CODES (a file, as transform writes it) back to input space."""
    fitted = _load(model)
    read = open_table(codes, wanted=list(fitted.get_feature_names_out()), **given)
    write(out, _mapped(read, fitted.inverse_transform, _input_names(fitted)), "rows")


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
@column_options
@scale_option
def denoise(
    model: Path, noisy: str, clean: str, components: int | None, out: Path, **given: Any
) -> None:
    """Remove from the rows of NOISY the directions that codes of clean rows lack."""
    from dkae import codespace

    fitted = _load(model)
    rows = open_rows(noisy, fitted, **given)
    shared = {name: given[name] for name in ("columns", "scale")}
    clean_rows = open_rows(clean, fitted, **shared).read().rows
    cleaner = codespace.code_pca(fitted, clean_rows, components)
    cleaned = _mapped(
        rows, lambda X: cleaner.inverse_transform(cleaner.transform(X)), _input_names(fitted)
    )
    write(out, cleaned, "rows")


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
@column_options
@scale_option
def interpolate(
    model: Path, data: str, between: tuple[int, int], steps: int, out: Path, **given: Any
) -> None:
    """Write the rows on the straight line through kernel space between two rows of DATA."""
    from dkae import codespace
    from dkae.tables import Table

    fitted = _load(model)
    table = open_rows(data, fitted, **given).read().rows
    for row in between:
        if not 0 <= row < len(table):
            raise ValueError(f"--between {row}: DATA has rows 0 to {len(table) - 1}")
    x, y = (table[[row]] for row in between)
    rows = codespace.interpolate(fitted, x, y, steps)
    write(out, [Table(rows, _input_names(fitted))], "rows")


# --- measures ------------------------------------------------------------------------------------


@click.command(
    epilog=example(
        "dkae score model.safetensors mnist20k:test",
        "dkae score model.safetensors mnist20k:test --baselines mnist20k:train",
        note=DATA_HELP,
    )
)
@MODEL
@click.argument("data")
@click.option("--gram", help="File with the Gram matrix of the rows, if the model has no kernel.")
@click.option(
    "--baselines",
    metavar="ROWS",
    help="Also Nystroem, PCA and kernel PCA of this width, fitted to these rows.",
)
@column_options
@scale_option
def score(model: Path, data: str, gram: str | None, baselines: str | None, **given: Any) -> None:
    """Measure on DATA how well codes represent the kernel and reconstruct the rows.

    Prints JSON: the alignment A in [0, 1] and that of a constant kernel, which is its floor; the
    loss L_c; the centred alignment, whose floor is 0; the mean squared error; and R2, the share of
    the variance that is reconstructed. Gaps do not count. With --baselines the same for the
    methods that the model must beat.
    """
    from dkae.baselines import compare_with_baselines
    from dkae.kernels import gram_of

    fitted = _load(model)
    rows = open_rows(data, fitted, **given).read().rows
    matrix = None if gram is None else open_table(gram).read().rows
    # First, because it raises if the kernel is missing.
    prior = _prior_gram(fitted, rows) if matrix is None else gram_of(matrix, rows)
    result = _measure(fitted, rows, prior)
    if baselines is not None:
        train = open_rows(baselines, fitted, **given).read().rows
        found = compare_with_baselines(fitted, rows, train, gram=matrix)
        result["baselines"] = [row._asdict() for row in found]
    click.echo(json.dumps(result, indent=2))
    if getattr(map_of(fitted), "center", False):
        click.echo(
            "The codes of this model are centred: judge them by centered_alignment, because "
            "alignment counts the mean and may lie below constant_kernel",
            err=True,
        )


def _prior_gram(fitted: Any, rows: Any) -> Any:
    """Return the Gram matrix of the model's kernel, which sees rows after a pipeline's steps."""
    model = map_of(fitted)
    return model.prior_gram(rows if model is fitted else fitted[:-1].transform(rows))


def _measure(fitted: Any, rows: Any, prior: Any) -> dict[str, Any]:
    from dkae import metrics

    codes = fitted.transform(rows)
    comparison = metrics.compare_grams(metrics.code_gram(codes), prior, ("codes", "prior"))
    back = fitted.inverse_transform(codes)
    return {
        "rows": len(rows),
        "alignment": max(0.0, comparison.alignment),
        "constant_kernel": max(0.0, comparison.constant_alignment),
        "alignment_loss": comparison.alignment_loss,
        "centered_alignment": max(0.0, comparison.centered_alignment),
        "reconstruction_mse": metrics.reconstruction_error(rows, back),
        "r2": metrics.reconstruction_r2(rows, back),
    }


# --- model files ---------------------------------------------------------------------------------


@click.command(epilog=example("dkae info model.safetensors"))
@click.argument("model")
def info(model: str) -> None:
    """Show what the file MODEL holds, without loading it; nothing in it is executed."""
    from dkae.persistence import info as read_info

    found = read_info(model)
    kind, version, form = (one_line(found[name]) for name in ("kind", "dkae", "format"))
    shapes = [shape for _, shape in found["tensors"].values()]
    click.echo(f"{one_line(model)}: {kind}, written by dkae {version} ({form})")
    click.echo(f"  tensors    {len(shapes)}, of {sum(map(math.prod, shapes)):,} numbers")
    click.echo(f"  sha256     {found['checksum']}")
    for kind, fields in _objects(found["state"]):
        click.echo(f"  {one_line(kind)}")
        for name, value in sorted(fields.items()):
            if (text := _shown(value)) is not None:
                click.echo(f"    {one_line(name):<24} {text}")


def _objects(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the kind and the fields of every object, from the outside in."""
    content = value.get("object") if isinstance(value, dict) else None
    if isinstance(content, list) and len(content) == 2 and isinstance(content[1], dict):
        yield str(content[0]), content[1]
        value = content[1]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in parts:
        yield from _objects(part)


def _shown(value: Any) -> str | None:
    """Return a value on a line; None if it is nested."""
    value = value.get("tuple", value) if isinstance(value, dict) else value
    parts = value if isinstance(value, list) else [value]
    if any(isinstance(part, dict | list) for part in parts):
        return None
    text = one_line(value if isinstance(value, str) else repr(value))
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
