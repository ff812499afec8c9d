"""`dkae fit`: learn a map from a table, and save it as one file."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from dkae.cli.errors import Interrupted, naming_file
from dkae.cli.models import open_training, read_matrix
from dkae.cli.options import DATA_HELP, column_options, example, scale_option
from dkae.cli.outputs import output
from dkae.cli.parameters import MAPS, build_map, parse_options, parse_pairs


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
@column_options(label="passed to kernels that use labels")
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
    "--recipe",
    type=click.Choice(["network", "paper"]),
    help="Named settings of the autoencoder; other options override them.",
)
@click.option(
    "--standardize",
    is_flag=True,
    help="Give each feature mean 0 and variance 1, for network and kernel; codes decode to the "
    "units of DATA.",
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
@click.option("--batch-size", type=int, help="Rows of a batch, k.")
@click.option("--input-noise", type=float, help="Largest noise on the encoder's input.")
@click.option("--device", help="auto, cpu, cuda:0, ...")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option(
    "--set",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Any other parameter, such as missing=mask, decoder=mlp or kernel__degree=2.",
)
@click.option("--quiet", is_flag=True, help="No progress bar, and no log of it.")
@click.option("--checkpoint", help="File to resume from after an interruption.")
def fit(
    data: str,
    out: Path,
    layout: dict[str, Any],
    scale: float,
    map_name: str,
    recipe: str | None,
    gram: str | None,
    pairs: tuple[str, ...],
    quiet: bool,
    checkpoint: str | None,
    **options: Any,
) -> None:
    """Learn a feature map from DATA and save it as one file.

    In several processes: torchrun --nproc-per-node 2 -m dkae fit DATA -o FILE.
    """
    import numpy as np

    from dkae._support.processes import speaks
    from dkae.persistence import save
    from dkae.training import remove_checkpoint

    flags = {p.name or "": p.opts[0] for p in click.get_current_context().command.params}
    params = parse_options(options, flags) | parse_pairs(pairs)
    model = build_map(map_name, recipe, params)
    if "verbose" not in params and "verbose" in model.get_params(deep=False):
        model.set_params(verbose=int(not quiet))
    given = {} if checkpoint is None else {"checkpoint": checkpoint}
    if given and "checkpoint" not in inspect.signature(model.fit).parameters:
        raise ValueError(
            f"--checkpoint: the map {map_name} has no training to resume: leave it out"
        )
    table = open_training(data, model, layout, scale).read_or_spool()
    prior = None if gram is None else read_matrix(gram)
    with nullcontext() if quiet else log_to_stderr(), _explaining_interrupts(checkpoint):
        model.fit(table.rows, table.labels(), gram=prior, **given)
    if not speaks():  # all processes have the same model, and the first one writes it
        return
    if table.names is not None:  # as scikit-learn keeps those of a data frame
        model.feature_names_in_ = np.array(table.names, dtype=object)
    with naming_file(out):
        save(model, out)
    if checkpoint is not None:
        remove_checkpoint(checkpoint)
    name = click.format_filename(out)
    click.echo(
        f"{name}: {len(table.rows)} rows -> {model.n_components_} components{_quality(model)}"
    )


@contextmanager
def log_to_stderr() -> Iterator[None]:
    """Write the log of the library to standard error."""
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


def _quality(model: Any) -> str:
    names = {"alignment_": "alignment", "centered_alignment_": "centred", "r2_": "R2"}
    values = {words: getattr(model, name, None) for name, words in names.items()}
    return "".join(f"  {words} {value:.4f}" for words, value in values.items() if value is not None)


@contextmanager
def _explaining_interrupts(checkpoint: str | None) -> Iterator[None]:
    """Add to Ctrl-C how the training can be resumed."""
    from dkae.training import has_checkpoint

    with warnings.catch_warnings():
        # A command does not save a model that is usable only as far as it got.
        warnings.filterwarnings("ignore", "training was interrupted")
        try:
            yield
        except KeyboardInterrupt:
            remedy = "with --checkpoint FILE the next call can go on from here"
            if checkpoint is not None and has_checkpoint(checkpoint):
                remedy = f"the same command goes on from {checkpoint}"
            raise Interrupted(f"interrupted, and no model was written; {remedy}") from None
