"""`dkae fit`: learn a map from a table, and save it as one file."""

from __future__ import annotations

import inspect
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from dkae.cli.errors import Interrupted
from dkae.cli.models import open_table
from dkae.cli.options import DATA_HELP, column_options, example, output, scale_option

#: The maps by name, as classes of `dkae`.
MAPS = {
    "autoencoder": "DeepKernelizedAutoencoder",
    "nystroem": "InvertibleNystroem",
    "kernel-pca": "KernelPCA",
}


def value(text: str) -> Any:
    """Parse JSON (0.5, true, null, [1, 2]), and return anything else as a string."""
    text = {"True": "true", "False": "false", "None": "null"}.get(text, text)
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # the latter of thousands of brackets
        return text


def sizes(text: str) -> tuple[Any, ...]:
    """Parse values that are separated by commas."""
    return tuple(value(size) for size in text.split(",") if size.strip())


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
    default=None,
    help="Give each feature mean 0 and variance 1, for network and kernel; codes decode to the "
    "units of DATA.",
)
@click.option("--components", "n_components", type=int, help="Width of the code, N_c.")
@click.option(
    "--hidden",
    "network__hidden_layer_sizes",
    type=sizes,
    help="Hidden layers, such as 500,500,2000.",
)
@click.option("--kernel", help="rbf, pck, forest, linear, poly, cosine, laplacian, chi2, ...")
@click.option("--gamma", type=value, help="median, scale, or a number.")
@click.option("--gram", help="File with the Gram matrix of the rows, instead of a kernel.")
@click.option("--alignment", help="frobenius, offdiagonal, centered, logdet, bures, ...")
@click.option("--alignment-weight", type=float, help="Lambda, from 0 to 1.")
@click.option("--max-iter", type=int, help="Epochs.")
@click.option(
    "--steps-per-epoch", type=value, help="Batches of an epoch: auto, samples, pairs, or a number."
)
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

    columns = {name: options.pop(name) for name in ("columns", "drop", "label", "index")}
    flags = {p.name: p.opts[0] for p in click.get_current_context().command.params}
    given = {name: (flags[name], v) for name, v in options.items() if v is not None}
    params = given | parse_pairs(pairs)
    model = build_map(map_name, recipe, params)
    if hasattr(model, "verbose") and "verbose" not in params:
        model.set_params(verbose=int(not quiet))
    resumed = {} if checkpoint is None else {"checkpoint": checkpoint}
    if resumed and "checkpoint" not in inspect.signature(model.fit).parameters:
        raise ValueError(
            f"--checkpoint: the map {map_name} has no training to resume: leave it out"
        )
    table = open_table(data, model, scale=scale, **columns).read()
    prior = None if gram is None else open_table(gram, None).read().rows
    with nullcontext() if quiet else _log_to_stderr(), _explaining_interrupts(checkpoint):
        model.fit(table.rows, table.labels(), gram=prior, **resumed)
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


# --- parameters ----------------------------------------------------------------------------------


def build_map(map_name: str, recipe: str | None, params: Mapping[str, tuple[str, Any]]) -> Any:
    """Return the unfitted map.

    Parameters
    ----------
    map_name : str
        One of `MAPS`.
    recipe : str or None
        Named settings of the autoencoder.
    params : mapping of str to tuple
        For each parameter, nested ones as in ``network__activation``, the option and the value.
    """
    import dkae

    if recipe is None:
        model = getattr(dkae, MAPS[map_name])()
    elif map_name == "autoencoder":
        model = dkae.recipes.RECIPES[recipe]()
    else:
        raise ValueError(
            f"--recipe {recipe} sets parameters of the autoencoder: leave it out with --map "
            f"{map_name}"
        )
    for name in sorted(params, key=lambda name: name.count("__")):  # parts before their parameters
        option, given = params[name]
        try:
            model.set_params(**{name: given})
        except AttributeError as error:
            part = name.partition("__")[0]
            raise ValueError(
                f"{option}: {part}={getattr(model, part)!r} has no parameters of its own: set "
                f"{part} first"
            ) from error
        except ValueError as error:
            nearest = get_close_matches(name, model.get_params(), n=1)
            hint = f" Did you mean {nearest[0]!r}?" if nearest and nearest[0] != name else ""
            raise ValueError(f"{option}: {error}{hint}") from error
    return model


def parse_pairs(pairs: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of pairs NAME=VALUE after --set."""
    params = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: expected NAME=VALUE, such as --set missing=mask")
        params[name] = (f"--set {name}", value(text))
    return params


# --- messages ------------------------------------------------------------------------------------


@contextmanager
def _log_to_stderr() -> Iterator[None]:
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
