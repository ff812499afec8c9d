"""What a training costs before it is run, in floating-point operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dkae import DeepKernelizedAutoencoder
from dkae.training import DECODER, FINE_TUNING, batches_per_epoch

#: The phases of a training: how many steps, and the operations of one.
Phases = dict[str, tuple[int, float]]


def layer_sizes(estimator: DeepKernelizedAutoencoder, n_features: int) -> list[int]:
    """Return d, the hidden widths, and N_c."""
    hidden = estimator.get_params()["network__hidden_layer_sizes"]
    return [n_features, *hidden, estimator.n_components]


def step_operations(sizes: Sequence[int], batch_size: int) -> float:
    """Return the operations of a training step: 2 k for each weight, up and down, three times.

    Three times, because the gradient costs twice the way forward.
    """
    return 2 * batch_size * 2 * 3 * sum(a * b for a, b in pairwise(sizes))


def decoder_step_operations(sizes: Sequence[int], batch_size: int) -> float:
    """Return the operations of a step of the decoder alone: up once, down three times.

    The gradient of the codes is not needed.
    """
    return step_operations(sizes, batch_size) * 4 / 6 - 2 * batch_size * sizes[-2] * sizes[-1]


def phases_of(
    estimator: DeepKernelizedAutoencoder, n_rows: int, n_features: int, n_pretrained: int = 0
) -> Phases:
    """Return the phases of a training that starts from so many pretrained layers."""
    k, sizes = estimator.batch_size, layer_sizes(estimator, n_features)
    n_steps = batches_per_epoch(n_rows, k, estimator.steps_per_epoch)
    layers = {
        f"layer {i}": (n_steps * estimator.pretrain_max_iter, step_operations(pair, k))
        for i, pair in enumerate(pairwise(sizes), start=1)
        if i > n_pretrained
    }
    return layers | {
        FINE_TUNING: (n_steps * int(estimator.max_iter), step_operations(sizes, k)),
        DECODER: (
            n_steps * int(estimator.decoder_max_iter),
            decoder_step_operations(sizes, k),
        ),
    }


def operations_of(phases: Phases) -> float:
    """Return the operations of all phases of a training."""
    return float(sum(n_steps * of_a_step for n_steps, of_a_step in phases.values()))
