"""What a study costs, before it is run: operations, and the seconds they take on this machine."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import torch

from dkae._runtime.devices import choose_device
from dkae._runtime.threads import in_threads
from dkae.networks.stacked import build_autoencoder
from dkae.training import DECODER, FINE_TUNING
from dkae.training.batches import batches_per_epoch
from dkae.training.loss import dkae_loss
from dkae_study.scales import Scale

__all__ = [
    "decoder_step_operations",
    "layer_sizes",
    "operations_of",
    "seconds_per_operation",
    "step_operations",
    "training_phases",
]

#: The phases of a training: how many steps, and the operations of one.
Phases = dict[str, tuple[int, float]]

#: Steps that are timed; one before them is not.
N_TIMED_STEPS = 4


def layer_sizes(scale: Scale, n_components: int) -> list[int]:
    """Return d, the hidden widths, and N_c."""
    return [28 * 28, *scale.hidden_layer_sizes, n_components]


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


def training_phases(scale: Scale, recipe: str, n_components: int) -> tuple[Phases, Phases]:
    """Return the phases of both trainings that make a network: the layers below its code first.

    Those are trained once for many networks, the rest for each of them.
    """
    estimator, k = scale.estimator(recipe), scale.batch_size
    sizes = layer_sizes(scale, n_components)
    n_steps = batches_per_epoch(scale.n_train, k, estimator.epoch)
    layers = {
        f"layer {i}": (n_steps * estimator.pretrain_max_iter, step_operations(pair, k))
        for i, pair in enumerate(pairwise(sizes), start=1)
    }
    code_layer = dict([layers.popitem()])
    end_to_end = {
        FINE_TUNING: (n_steps * estimator.max_iter, step_operations(sizes, k)),
        DECODER: (n_steps * estimator.decoder_max_iter, decoder_step_operations(sizes, k)),
    }
    return layers, code_layer | end_to_end


def operations_of(phases: Phases) -> float:
    """Return the operations of all phases of a training."""
    return float(sum(n_steps * of_a_step for n_steps, of_a_step in phases.values()))


def seconds_per_operation(scale: Scale, n_jobs: int) -> float:
    """Time a few steps of the scale's networks, `n_jobs` at once; the seconds of one of them."""
    n = min(n_jobs, torch.get_num_threads())
    each = in_threads(lambda _: _seconds_of_one(scale), range(n), torch.device("cpu"))
    return sum(each) / n


def _seconds_of_one(scale: Scale) -> float:
    sizes, k = layer_sizes(scale, scale.n_components), scale.batch_size
    device = choose_device("auto")
    network = build_autoencoder(
        sizes, activation="gelu", code_activation="identity", output_activation="sigmoid"
    ).to(device)
    optimizer = torch.optim.Adam(network.parameters(), fused=True)
    x, prior = torch.rand(k, sizes[0], device=device), torch.eye(k, device=device)
    for step in range(1 + N_TIMED_STEPS):
        if step == 1:
            start = time.perf_counter()
        optimizer.zero_grad()
        codes, decoded = network(x)
        loss = dkae_loss(x, codes, decoded, prior, 0.1).total
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        loss.item()  # waits for a GPU
    seconds = (time.perf_counter() - start) / N_TIMED_STEPS
    return seconds / step_operations(sizes, k)
