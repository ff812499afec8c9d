"""The command line: parses, dispatches, and turns errors into one clear line.

torch and scikit-learn are imported inside the commands only, so that ``dkae --help`` is fast.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from dkae import __version__

__all__ = ["main"]

Command = TypeVar("Command", bound=Callable[..., Any])

_DATA_HELP = """DATA is a file (.npy, .npz, file.npz:name, .csv, IDX) or a built-in data set:
mnist20k, mnist20k:train, mnist20k:validation, mnist20k:test, digits, mnist (downloaded)."""


def _example(*commands: str, note: str = "") -> str:
    """Return an epilog with example commands, which click must not wrap."""
    return "\n\n".join(["\b\nExample:\n" + "\n".join(f"  {c}" for c in commands), note])


def _output(endings: str) -> Callable[[Command], Command]:
    """Return an option -o for a file that can be written, checked before any work is done."""

    def check(context: click.Context, parameter: click.Parameter, value: Path) -> Path:
        if value.suffix not in endings.split():
            raise click.BadParameter(f"{value} must end in one of {endings}")
        if not value.parent.is_dir():
            raise click.BadParameter(f"folder {value.parent} does not exist")
        if not os.access(value.parent, os.W_OK):
            raise click.BadParameter(f"folder {value.parent} cannot be written to")
        return value

    path = click.Path(dir_okay=False, writable=True, path_type=Path)
    return click.option(
        "-o", "--out", required=True, type=path, callback=check, help="File to write."
    )


_MODEL = click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
_ARRAYS = ".npy .npz .csv"


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_example(
        "dkae fit mnist20k:train -o model.safetensors",
        "dkae transform model.safetensors mnist20k:test -o codes.npy",
        "dkae inverse model.safetensors codes.npy -o images.npy",
    ),
)
@click.version_option(__version__, prog_name="dkae")
def main() -> None:
    """Explicit, invertible feature maps for any kernel: deep kernelized autoencoders."""


@main.command(
    epilog=_example(
        "dkae fit mnist20k:train -o model.safetensors --kernel rbf --gamma median",
        "dkae fit mnist20k:train -o model.safetensors --kernel pck --components 2000",
        "dkae fit rows.csv -o model.safetensors --gram gram.npy --set tied_weights=false",
        note=_DATA_HELP,
    )
)
@click.argument("data")
@_output(".safetensors")
@click.option("--recipe", default="default", show_default=True, help="default or paper.")
@click.option("--components", "n_components", type=int, help="Width of the code, N_c.")
@click.option("--hidden", "hidden_layer_sizes", help="Hidden layers, such as 500,500,2000.")
@click.option("--kernel", help="rbf, pck, forest, linear, poly, cosine, laplacian, chi2, ...")
@click.option("--gamma", help="median, scale, or a number.")
@click.option("--gram", help="File with the Gram matrix of the rows, instead of a kernel.")
@click.option("--alignment-weight", type=float, help="Lambda, from 0 to 1.")
@click.option("--max-iter", type=int, help="Epochs.")
@click.option("--epoch", help="Batches of an epoch: samples, pairs, or a number.")
@click.option("--batch-size", type=int, help="Rows of a batch, k.")
@click.option("--input-noise", type=float, help="Largest noise on the encoder's input.")
@click.option("--device", help="auto, cpu, cuda or mps.")
@click.option("--seed", "random_state", type=int, default=0, show_default=True)
@click.option("--set", "extra", multiple=True, metavar="NAME=VALUE", help="Any other parameter.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def fit(
    data: str, out: Path, recipe: str, gram: str | None, extra: tuple[str, ...], **options: Any
) -> None:
    """Learn a feature map from DATA and save it as one file."""
    with _clear_errors():
        from dkae.checks import check_choice
        from dkae.datasets.files import read_array
        from dkae.persistence import save
        from dkae.recipes import RECIPES

        params = {"verbose": not options.pop("quiet")} | _given(options) | _parse_pairs(extra)
        model = RECIPES[check_choice("recipe", recipe, RECIPES)]()
        _check_names(params, model.get_params(deep=False))
        rows = read_array(data)
        model.set_params(**params).fit(rows, gram=None if gram is None else read_array(gram))
        save(model, out)
    last = model.history_[-1] if model.history_ else {}
    losses = "  ".join(f"{name} {last[name]:.5g}" for name in last if name.endswith("loss"))
    click.echo(f"{out}: {len(rows)} rows -> {model.network_.n_components} components  {losses}")


@main.command(
    epilog=_example("dkae transform model.safetensors mnist20k:test -o codes.npy", note=_DATA_HELP)
)
@_MODEL
@click.argument("data")
@_output(_ARRAYS)
def transform(model: Path, data: str, out: Path) -> None:
    """Map the rows of DATA into kernel space."""
    with _clear_errors():
        from dkae.datasets.files import read_array, write_array
        from dkae.persistence import load

        fitted = load(model, device="auto")
        codes = fitted.transform(read_array(data))
        write_array(out, codes, list(fitted.get_feature_names_out()))
    click.echo(f"{out}: codes of shape {codes.shape}")


@main.command(epilog=_example("dkae inverse model.safetensors codes.npy -o rows.csv"))
@_MODEL
@click.argument("codes")
@_output(_ARRAYS)
def inverse(model: Path, codes: str, out: Path) -> None:
    """Map CODES (a file, as transform writes it) back to input space."""
    with _clear_errors():
        from dkae.datasets.files import read_array, write_array
        from dkae.persistence import load

        fitted = load(model, device="auto")
        rows = fitted.inverse_transform(read_array(codes))
        write_array(out, rows, _input_names(fitted, rows))
    click.echo(f"{out}: rows of shape {rows.shape}")


@main.command(
    epilog=_example(
        "dkae denoise model.safetensors noisy.npy --clean mnist20k:train -o clean.npy",
        note=_DATA_HELP,
    )
)
@_MODEL
@click.argument("noisy")
@click.option("--clean", required=True, help="Rows without noise, such as the training rows.")
@click.option("--components", default=32, show_default=True, help="Principal components to keep.")
@_output(_ARRAYS)
def denoise(model: Path, noisy: str, clean: str, components: int, out: Path) -> None:
    """Remove from the rows of NOISY what the codes of clean rows do not have."""
    with _clear_errors():
        from dkae import codespace
        from dkae.datasets.files import read_array, write_array
        from dkae.persistence import load

        fitted = load(model, device="auto")
        rows = codespace.denoise(fitted, read_array(noisy), read_array(clean), components)
        write_array(out, rows, _input_names(fitted, rows))
    click.echo(f"{out}: rows of shape {rows.shape}")


@main.command(
    epilog=_example(
        "dkae interpolate model.safetensors mnist20k:test --between 0 5 -o path.npy",
        note=_DATA_HELP,
    )
)
@_MODEL
@click.argument("data")
@click.option("--between", required=True, type=(int, int), help="Numbers of two rows, from 0.")
@click.option("--steps", default=9, show_default=True, help="Points, both ends included.")
@_output(_ARRAYS)
def interpolate(model: Path, data: str, between: tuple[int, int], steps: int, out: Path) -> None:
    """Write the rows on the straight line through kernel space between two rows of DATA."""
    with _clear_errors():
        from dkae import codespace
        from dkae.datasets.files import read_array, write_array
        from dkae.persistence import load

        fitted, table = load(model, device="auto"), read_array(data)
        for row in between:
            if not 0 <= row < len(table):
                raise ValueError(f"--between {row}: DATA has rows 0 to {len(table) - 1}")
        x, y = (table[row] for row in between)
        rows = codespace.interpolate(fitted, x, y, steps)
        write_array(out, rows, _input_names(fitted, rows))
    click.echo(f"{out}: rows of shape {rows.shape}")


@main.command(epilog=_example("dkae score model.safetensors mnist20k:test", note=_DATA_HELP))
@_MODEL
@click.argument("data")
@click.option("--gram", help="File with the Gram matrix of the rows, if the model has no kernel.")
def score(model: Path, data: str, gram: str | None) -> None:
    """Measure on DATA how well codes represent the kernel and how well rows come back.

    Prints JSON: the alignment A in [0, 1], the loss L_c, and the mean squared error.
    """
    with _clear_errors():
        import numpy as np

        from dkae.datasets.files import read_array
        from dkae.persistence import load

        fitted = load(model, device="auto")
        rows = np.asarray(read_array(data), dtype=np.float32)
        # First of all, because it says what is missing.
        alignment = fitted.score(rows, gram=None if gram is None else read_array(gram))
        back = fitted.inverse_transform(fitted.transform(rows))
        result = {
            "rows": len(rows),
            "alignment": alignment,
            "alignment_loss": (2 - 2 * alignment) ** 0.5,
            "reconstruction_mse": float(np.mean((back - rows) ** 2)),
        }
    click.echo(json.dumps(result, indent=2))


@main.command(epilog=_example("dkae demo --out demo"))
@click.option(
    "-o",
    "--out",
    default="demo",
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the results.",
)
@click.option(
    "--steps",
    default=2000,
    show_default=True,
    type=click.IntRange(min=20),
    help="Training steps, in 20 epochs.",
)
@click.option("--seed", default=0, show_default=True, type=int)
@click.option("--quiet", is_flag=True, help="No progress bar.")
def demo(out: Path, steps: int, seed: int, quiet: bool) -> None:
    """Train on handwritten digits and write a page to look at.

    A smaller network and budget than the paper's: minutes, not a day.
    """
    with _clear_errors():
        from dkae.experiments.demo import run_demo
        from dkae.report.demo import write_demo_page  # fails before the training, not after it

        results = run_demo(out, n_steps=steps, seed=seed, verbose=not quiet)
        page = write_demo_page(out)
    for name, value in results["scores"].items():
        click.echo(f"{name:>34}  {value:.4f}")
    click.echo(f"\nThe result is in {page}")


@contextlib.contextmanager
def _clear_errors() -> Iterator[None]:
    """Turn what a user can mend into one line; a bug keeps its traceback."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "matplotlib"):
            raise
        raise click.ClickException(f"{error}: pip install 'dkae[report]'") from error
    except (ValueError, OSError, FloatingPointError) as error:
        raise click.ClickException(" ".join(str(error).split())) from error


def _input_names(fitted: Any, rows: Any) -> list[str]:
    """Return the names of the features of rows that a model has made."""
    names = getattr(fitted, "feature_names_in_", [f"x{i}" for i in range(rows.shape[1])])
    return list(names)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the user gave, with numbers as numbers."""
    params = {name: value for name, value in options.items() if value is not None}
    for name in {"gamma", "epoch"} & params.keys():
        params[name] = _parse(params[name])
    if "hidden_layer_sizes" in params:
        sizes = params["hidden_layer_sizes"].split(",")
        params["hidden_layer_sizes"] = tuple(_parse(size) for size in sizes if size.strip())
    return params


def _parse_pairs(pairs: tuple[str, ...]) -> dict[str, Any]:
    params = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"--set {pair}: expected NAME=VALUE, such as --set tied_weights=false")
        params[name] = _parse(value)
    return params


def _parse(text: str) -> Any:
    """Return JSON as what it says (0.5, true, null, [1, 2]) and anything else as a string."""
    text = {"True": "true", "False": "false", "None": "null"}.get(text, text)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _check_names(params: dict[str, Any], known: dict[str, Any]) -> None:
    from dkae.checks import check_choice

    for name in params:
        check_choice("parameter", name, known)
