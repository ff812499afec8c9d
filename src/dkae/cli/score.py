"""`dkae score`: how well codes represent the kernel, and the yardsticks to compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from dkae.cli.models import load_model, map_of, open_rows, open_table
from dkae.cli.options import DATA_HELP, MODEL, column_options, example, scale_option


@click.command(
    epilog=example(
        "dkae score model.safetensors mnist20k:test",
        "dkae score model.safetensors mnist20k:test --baselines --train mnist20k:train",
        note=DATA_HELP,
    )
)
@MODEL
@click.argument("data")
@click.option("--gram", help="File with the Gram matrix of the rows, if the model has no kernel.")
@click.option("--baselines", is_flag=True, help="Also Nystroem, PCA and kernel PCA of this width.")
@click.option("--train", help="Rows that the baselines learn from; by default they learn DATA.")
@column_options()
@scale_option
def score(
    model: Path,
    data: str,
    gram: str | None,
    baselines: bool,
    train: str | None,
    **reading: Any,
) -> None:
    """Measure on DATA how well codes represent the kernel and reconstruct the rows.

    Prints JSON: the alignment A in [0, 1] and that of a constant kernel, which is its floor; the
    loss L_c; the centred alignment, whose floor is 0; the mean squared error; and R2, the share of
    the variance that is reconstructed. Gaps do not count. With --baselines the same for the
    methods that the model must beat.
    """
    from dkae import kernels

    if train is not None and not baselines:
        raise ValueError("--train is for --baselines, which is missing: add it, or leave out both")
    fitted = load_model(model)
    rows = open_rows(data, fitted, **reading).read().rows
    matrix = None if gram is None else open_table(gram, None).read().rows
    # First, because it raises if the kernel is missing.
    prior = _prior_gram(fitted, rows) if matrix is None else kernels.gram_of(matrix, rows)
    result = _measure(fitted, rows, prior)
    if baselines:
        from dkae.baselines import compare_with_baselines

        learnt = None if train is None else open_rows(train, fitted, **reading).read().rows
        found = compare_with_baselines(fitted, rows, learnt, gram=matrix)
        result["baselines"] = [row._asdict() for row in found]
    click.echo(json.dumps(result, indent=2))


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
