"""What a training costs before it is run: operations, and their seconds on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import torch
from dkae.training.batches import batches_per_epoch

from dkae.alignment import dkae_loss
from dkae.networks import build_autoencoder
from dkae.training import DECODER, FINE_TUNING

__all__ = [
    "Phases",
    "decoder_step_operations",
    "layer_sizes",
    "operations_of",
    "phases_of",
    "seconds_per_operation",
    "step_operations",
    "steps_per_epoch",
]

#: The phases of a training: how many steps, and the operations of one.
Phases = dict[str, tuple[int, float]]

#: Steps that are timed; one before them is not.
N_TIMED_STEPS = 4


def layer_sizes(estimator: Any, n_features: int) -> list[int]:
    """Return d, the hidden widths, and N_c."""
    return [n_features, *estimator.hidden_layer_sizes, estimator.n_components]


def steps_per_epoch(estimator: Any) -> int | str:
    """Return the length of an epoch, by the parameter's present name or its former one."""
    params = estimator.get_params(deep=False)
    length: int | str = params.get("steps_per_epoch", params.get("epoch"))
    return length


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


def phases_of(estimator: Any, n_rows: int, n_features: int, n_pretrained: int = 0) -> Phases:
    """Return the phases of a training that starts from so many pretrained layers."""
    k, sizes = estimator.batch_size, layer_sizes(estimator, n_features)
    n_steps = batches_per_epoch(n_rows, k, steps_per_epoch(estimator))
    layers = {
        f"layer {i}": (n_steps * estimator.pretrain_max_iter, step_operations(pair, k))
        for i, pair in enumerate(pairwise(sizes), start=1)
        if i > n_pretrained
    }
    return layers | {
        FINE_TUNING: (n_steps * estimator.max_iter, step_operations(sizes, k)),
        DECODER: (n_steps * estimator.decoder_max_iter, decoder_step_operations(sizes, k)),
    }


def operations_of(phases: Phases) -> float:
    """Return the operations of all phases of a training."""
    return float(sum(n_steps * of_a_step for n_steps, of_a_step in phases.values()))


def seconds_per_operation(estimator: Any, n_features: int, n_jobs: int) -> float:
    """Time a few steps of a network, `n_jobs` at once; return the seconds of one of them."""
    n_threads = torch.get_num_threads()
    n = min(n_jobs, n_threads)
    if n == 1:
        return _seconds_of_one(estimator, n_features)
    try:
        share = (n_threads // n,)
        with ThreadPoolExecutor(n, initializer=torch.set_num_threads, initargs=share) as pool:
            return sum(pool.map(_seconds_of_one, [estimator] * n, [n_features] * n)) / n
    finally:
        torch.set_num_threads(n_threads)  # a new thread takes the last number set in any thread


def _seconds_of_one(estimator: Any, n_features: int) -> float:
    sizes, k = layer_sizes(estimator, n_features), estimator.batch_size
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = build_autoencoder(
        sizes, activation="gelu", code_activation="identity", output_activation="sigmoid"
    ).to(device)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    x, gram = torch.rand(k, sizes[0], device=device), torch.eye(k, device=device)
    for step in range(1 + N_TIMED_STEPS):
        if step == 1:
            start = time.perf_counter()
        optimizer.zero_grad()
        codes, decoded = network(x)
        loss = dkae_loss(x, codes, decoded, gram, 0.1).total
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss.item()  # waits for a GPU
    seconds = (time.perf_counter() - start) / N_TIMED_STEPS
    return seconds / step_operations(sizes, k)
