"""What several experiments measure in the same way."""

from __future__ import annotations

from typing import Any

from dkae import metrics
from dkae.estimator import DeepKernelizedAutoencoder
from dkae.kernels import Kernel

__all__ = ["SCORES", "part_scores"]

#: Rows of the blocks over which L_c is averaged, as training sees it.
N_BLOCK_ROWS = 200

#: What `part_scores` returns.
SCORES = {
    "reconstruction_mse": "mean squared error of a pixel, L_r / (n d)",
    "alignment_loss": "L_c (Eq. 6) between codes and prior on all pairs of the rows",
    "alignment_loss_blocks": f"mean of L_c over blocks of {N_BLOCK_ROWS} rows",
}


def part_scores(model: DeepKernelizedAutoencoder, kernel: Kernel, X: Any) -> dict[str, float]:
    """Return both losses of a model on rows."""
    codes = model.transform(X)
    code_gram, prior = metrics.code_gram(codes), kernel.on(X)
    n_block = min(N_BLOCK_ROWS, len(X))
    return {
        "reconstruction_mse": metrics.reconstruction_error(X, model.inverse_transform(codes)),
        "alignment_loss": metrics.alignment_loss(code_gram, prior),
        "alignment_loss_blocks": metrics.mean_over_blocks(
            metrics.alignment_loss, code_gram, prior, n_block, random_state=0
        ),
    }
