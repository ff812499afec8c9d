"""Commands that fit models and use them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from dkae.cli.errors import Interrupted
from dkae.cli.info import info
from dkae.cli.options import DATA_HELP, MODEL, example, log_to_stderr
from dkae.cli.outputs import output
from dkae.cli.parameters import parse_options
from dkae.cli.score import score
from dkae.cli.streams import stream, write
from dkae.cli.tables import (
    COPIED,
    column_options,
    input_names,
    load_model,
    map_rows,
    open_codes,
    open_rows,
    read_matrix,
    read_rows,
    read_training,
    scale_option,
    train,
)

_ARRAYS = ".npy .npz .csv .tsv .parquet"


@click.command(
    epilog=example(
        "dkae fit mnist20k:train -o model.safetensors --kernel rbf --gamma median",
        "dkae fit mnist20k:train -o model.safetensors --kernel pck --components 2000",
        "dkae fit rows.csv -o model.safetensors --index id --label species --standardize",
        "dkae fit rows.csv -o model.safetensors --gram gram.npy --set tied_weights=false",
        note=DATA_HELP,
    )
)
@click.argument("data")
@output(".safetensors", kept=["checkpoint"])
@column_options(label="passed to kernels that use labels")
@scale_option
@click.option(
    "--standardize",
    is_flag=True,
    help="Give each feature mean 0 and variance 1, for the kernel too; codes decode to the units "
    "of DATA.",
)
@click.option(
    "--recipe",
    default="default",
    show_default=True,
    help="Or kernel_layer, network, paper.",
)
@click.option("--components", "n_components", type=int, help="Width of the code, N_c.")
@click.option("--hidden", "hidden_layer_sizes", help="Hidden layers, such as 500,500,2000.")
@click.option("--kernel", help="rbf, pck, forest, linear, poly, cosine, laplacian, chi2, ...")
@click.option("--gamma", help="median, scale, or a number.")
@click.option("--gram", help="File with the Gram matrix of the rows, instead of a kernel.")
@click.option("--alignment", help="frobenius, offdiagonal, centered, logdet, bures, ...")
@click.option("--alignment-weight", type=float, help="Lambda, from 0 to 1.")
@click.option("--max-iter", type=int, help="Epochs.")
@click.option("--steps-per-epoch", help="Batches of an epoch: auto, samples, pairs, or a number.")
@click.option("--epoch", hidden=True, help="The former name of --steps-per-epoch.")
@click.option("--batch-size", type=int, help="Rows of a batch, k.")
@click.option("--input-noise", type=float, help="Largest noise on the encoder's input.")
@click.option("--device", help="auto, cpu, cuda:0, ...")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="Any other parameter.")
@click.option("--quiet", is_flag=True, help="No progress bar, and no log of it.")
@click.option("--checkpoint", help="File to resume from after an interruption.")
def fit(
    data: str,
    out: Path,
    layout: dict[str, Any],
    scale: float,
    standardize: bool,
    recipe: str,
    gram: str | None,
    extra: tuple[str, ...],
    quiet: bool,
    checkpoint: str | None,
    **options: Any,
) -> None:
    """Learn a feature map from DATA and save it as one file.

    In several processes: torchrun --nproc-per-node 2 -m dkae fit DATA -o FILE.
    """
    from dkae._support.checks import check_choice
    from dkae._support.processes import speaks
    from dkae.persistence import save
    from dkae.recipes import RECIPES
    from dkae.training import remove_checkpoint

    params = {"verbose": int(not quiet)} | parse_options(options, extra)
    model = RECIPES[check_choice("recipe", recipe, RECIPES)]()
    for name in params:
        check_choice("parameter", name, model.get_params(deep=False))
    model.set_params(**params)
    table = read_training(data, model, layout, scale)
    prior = None if gram is None else read_matrix(gram)
    with nullcontext() if quiet else log_to_stderr(), _saying_how_to_go_on(checkpoint):
        fitted = train(model, table, standardize, gram=prior, checkpoint=checkpoint)
    if not speaks(model.engine):  # all have the same model, and the first one writes it
        return
    save(fitted, out)
    if checkpoint is not None:
        remove_checkpoint(checkpoint)
    # While only the decoder trains, codes do not change: L_c is that of the last record with one.
    last = {name: value for record in model.history_ for name, value in record.items()}
    losses = "  ".join(f"{name} {last[name]:.5g}" for name in last if name.endswith("loss"))
    name = click.format_filename(out)
    click.echo(f"{name}: {len(table.rows)} rows -> {model.n_components_} components  {losses}")


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
@output(_ARRAYS)
@column_options(**COPIED)
@scale_option
def transform(model: Path, data: str, out: Path, layout: dict[str, Any], scale: float) -> None:
    """Map the rows of DATA into kernel space; they are read and written a piece at a time.

    If the model was fitted to a table with a header, columns are found by their names.
    """
    fitted = load_model(model)
    rows, names = open_rows(data, fitted, layout, scale), fitted.get_feature_names_out()
    stream(out, rows, fitted, fitted.transform, names, "codes")


@click.command(
    epilog=example(
        "dkae inverse model.safetensors codes.npy -o rows.csv",
        "dkae inverse model.safetensors codes.csv -o rows.csv --index id --label species",
    )
)
@MODEL
@click.argument("codes")
@output(_ARRAYS)
@column_options(**COPIED)
def inverse(model: Path, codes: str, out: Path, layout: dict[str, Any]) -> None:
    """Map CODES (a file, as transform writes it) back to input space."""
    fitted = load_model(model)
    read = open_codes(codes, fitted, layout)
    stream(out, read, fitted, fitted.inverse_transform, input_names(fitted), "rows")


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
    help="Rows without noise, such as the training rows; they may lack --label and --index.",
)
@click.option("--components", default=32, show_default=True, help="Principal components to keep.")
@output(_ARRAYS)
@column_options(**COPIED)
@scale_option
def denoise(
    model: Path,
    noisy: str,
    clean: str,
    components: int,
    out: Path,
    layout: dict[str, Any],
    scale: float,
) -> None:
    """Remove from the rows of NOISY what the codes of clean rows do not have."""
    from dkae import codespace

    fitted = load_model(model)
    rows = open_rows(noisy, fitted, layout, scale)
    clean_rows = read_rows(clean, fitted, layout | {"is_partial": True}, scale)
    cleaner = codespace.code_pca(fitted, clean_rows, components)
    stream(out, rows, fitted, partial(codespace.denoise, cleaner), input_names(fitted), "rows")


@click.command(
    epilog=example(
        "dkae interpolate model.safetensors mnist20k:test --between 0 5 -o path.npy",
        note=DATA_HELP,
    )
)
@MODEL
@click.argument("data")
@click.option("--between", required=True, type=(int, int), help="Numbers of two rows, from 0.")
@click.option(
    "--steps",
    default=9,
    show_default=True,
    type=click.IntRange(2, 1_000_000),
    help="Points, both ends included.",
)
@output(_ARRAYS)
@column_options()
@scale_option
def interpolate(
    model: Path,
    data: str,
    between: tuple[int, int],
    steps: int,
    out: Path,
    layout: dict[str, Any],
    scale: float,
) -> None:
    """Write the rows on the straight line through kernel space between two rows of DATA."""
    from dkae import codespace
    from dkae.datasets.tables import Table

    fitted = load_model(model)
    table = map_rows(data, fitted, layout, scale)
    for row in between:
        if not 0 <= row < len(table):
            raise ValueError(f"--between {row}: DATA has rows 0 to {len(table) - 1}")
    x, y = (table[[row]] for row in between)
    rows = codespace.interpolate(fitted, x, y, steps)
    write(out, Table(rows, input_names(fitted)), "rows")


@contextmanager
def _saying_how_to_go_on(checkpoint: str | None) -> Iterator[None]:
    """Say after Ctrl-C what is left of the training."""
    from dkae.training import has_checkpoint

    with warnings.catch_warnings():
        # To a command a model that is usable as far as it got is of no use: it is not saved.
        warnings.filterwarnings("ignore", "training was interrupted")
        try:
            yield
        except KeyboardInterrupt:
            remedy = "with --checkpoint FILE the next call can go on from here"
            if checkpoint is not None and has_checkpoint(checkpoint):
                remedy = f"the same command goes on from {checkpoint}"
            raise Interrupted(f"interrupted, and no model was written; {remedy}") from None


COMMANDS = (fit, transform, inverse, denoise, interpolate, score, info)
