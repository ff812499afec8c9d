"""`dkae fit`: learn a map from a table, and save it as one file."""

from __future__ import annotations

import ast
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from dkae.cli.errors import Interrupted
from dkae.cli.options import (
    DATA_HELP,
    column_options,
    example,
    open_table,
    options,
    output,
    scale_option,
)

#: The maps by name, as classes of `dkae`.
MAPS = {
    "autoencoder": "DeepKernelizedAutoencoder",
    "nystroem": "InvertibleNystroem",
    "kernel-pca": "KernelPCA",
}


def value(text: str) -> Any:
    """Parse a literal of Python (0.5, True, None, [1, 2]), and return anything else as a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # the last two of brackets
        return text


def sizes(text: str) -> tuple[Any, ...]:
    """Parse values that are separated by commas."""
    found = value(text)
    return found if isinstance(found, tuple) else (found,)


def pair(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE."""
    name, equals, given = text.partition("=")
    if not equals:
        raise click.BadParameter(f"{text}: expected NAME=VALUE, such as --set missing=mask")
    return name, value(given)


#: Options for the parameters that are set most: the flag, the parameter, and help. The map checks
#: the values.
PARAMETERS = {
    "--components": ("n_components", "Width of the code, N_c."),
    "--hidden": ("network__hidden_layer_sizes", "Hidden layers, such as 500,500,2000."),
    "--kernel": ("kernel", "rbf, pck, forest, linear, poly, cosine, laplacian, chi2, ..."),
    "--gamma": ("gamma", "median, scale, or a number."),
    "--alignment": ("alignment", "frobenius, offdiagonal, centered, logdet, bures, ..."),
    "--alignment-weight": ("alignment_weight", "Lambda, from 0 to 1."),
    "--max-iter": ("max_iter", "Epochs."),
    "--batch-size": ("batch_size", "Rows of a batch, k."),
    "--device": ("device", "auto, cpu, cuda:0, ..."),
}


@click.command(
    epilog=example(
        "dkae fit mnist20k:train -o model.safetensors --map nystroem --gamma median",
        "dkae fit mnist20k:train -o model.safetensors --kernel pck --hidden 500,500,2000",
        "dkae fit rows.csv -o model.safetensors --index id --label species --standardize",
        "dkae fit rows.csv -o model.safetensors --gram gram.npy --set network__activation=sigmoid",
        note=DATA_HELP,
    )
)
@click.argument("data")
@output([".safetensors"], kept=["checkpoint"])
@column_options
@scale_option
@click.option(
    "--map",
    "map_name",
    type=click.Choice(list(MAPS)),
    default="autoencoder",
    show_default=True,
    help="Learned codes, codes from landmark rows, or exact kernel PCA.",
)
@click.option(
    "--standardize",
    is_flag=True,
    default=None,
    help="Give each feature mean 0 and variance 1, for network and kernel; codes decode to the "
    "units of DATA.",
)
@options(
    *(
        click.option(flag, name, type=sizes if flag == "--hidden" else value, help=text)
        for flag, (name, text) in PARAMETERS.items()
    )
)
@click.option("--seed", "random_state", type=value, default=0, show_default=True)
@click.option("--gram", help="File with the Gram matrix of the rows, instead of a kernel.")
@click.option(
    "--set",
    "pairs",
    type=pair,
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other parameter, such as missing=mask, decoder=mlp or kernel__degree=2.",
)
@click.option("--quiet", is_flag=True, help="No progress bar, and no log of it.")
@click.option("--checkpoint", help="File to resume from after an interruption.")
def fit(
    data: str,
    out: Path,
    scale: float,
    map_name: str,
    gram: str | None,
    pairs: tuple[tuple[str, Any], ...],
    quiet: bool,
    checkpoint: str | None,
    **given: Any,
) -> None:
    """Learn a feature map from DATA and save it as one file.

    In several processes: torchrun --nproc-per-node 2 -m dkae fit DATA -o FILE.
    """
    import numpy as np

    from dkae._support.processes import speaks
    from dkae.persistence import save
    from dkae.training import has_checkpoint, remove_checkpoint

    if checkpoint is not None and map_name == "kernel-pca":
        raise ValueError("--checkpoint: kernel-pca has no training to resume: leave it out")
    columns = {name: given.pop(name) for name in ("columns", "drop", "label", "index")}
    params = {name: v for name, v in given.items() if v is not None} | dict(pairs)
    model = build_map(map_name, params)
    table = open_table(data, model, scale=scale, **columns).read()
    prior = None if gram is None else open_table(gram).read().rows
    if not quiet:
        _log_to_stderr()
        if hasattr(model, "verbose") and "verbose" not in params:
            model.set_params(verbose=1)
    resumed = {} if checkpoint is None else {"checkpoint": checkpoint}
    try:
        model.fit(table.rows, table.labels(), gram=prior, **resumed)
    except KeyboardInterrupt:
        remedy = "with --checkpoint FILE the next call can go on from here"
        if checkpoint is not None and has_checkpoint(checkpoint):
            remedy = f"the same command goes on from {checkpoint}"
        raise Interrupted(f"interrupted, and no model was written; {remedy}") from None
    if not speaks():  # all processes have the same model, and the first one writes it
        return
    if table.names is not None:  # as scikit-learn keeps those of a data frame
        model.feature_names_in_ = np.array(table.names, dtype=object)
    save(model, out)
    if checkpoint is not None:
        remove_checkpoint(checkpoint)
    name = click.format_filename(out)
    click.echo(
        f"{name}: {len(table.rows)} rows -> {model.n_components_} components{_quality(model)}"
    )


def build_map(map_name: str, params: Mapping[str, Any]) -> Any:
    """Return an unfitted map with these parameters, nested ones as in ``network__activation``."""
    import dkae

    parts = {name: given for name, given in params.items() if "__" in name}
    model = getattr(dkae, MAPS[map_name])()
    model.set_params(**{name: given for name, given in params.items() if name not in parts})
    try:
        return model.set_params(**parts)
    except AttributeError as error:
        names = ", ".join(sorted({name.partition("__")[0] for name in parts}))
        raise ValueError(
            f"{', '.join(parts)}: one of {names} has no parameters of its own: set it first, such "
            "as --set decoder=ridge"
        ) from error


def _log_to_stderr() -> None:
    """Write the log of the library to standard error until the command ends."""
    logger, handler = logging.getLogger("dkae"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    click.get_current_context().call_on_close(lambda: logger.removeHandler(handler))


def _quality(model: Any) -> str:
    names = {"alignment_": "alignment", "centered_alignment_": "centred", "r2_": "R2"}
    values = {words: getattr(model, name, None) for name, words in names.items()}
    return "".join(f"  {words} {value:.4f}" for words, value in values.items() if value is not None)
