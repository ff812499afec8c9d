"""Layer-wise pretraining (Sections 2.1 and 4.1 of the paper).

Each layer is trained as an autoencoder of its own, on the activations of the layers below it,
which are frozen by then. The layers before the code layer only reconstruct (λ = 0), so they depend
on neither λ nor N_c; the code layer is trained with the full loss of Eq. 5 *also* here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import torch

from dkae.autoencoder import Autoencoder
from dkae.training.batches import Batch
from dkae.training.loop import train
from dkae.training.progress import Progress, Record
from dkae.training.settings import Settings

__all__ = ["pretrain"]


def pretrain(
    network: Autoencoder,
    draw: Callable[[], Batch],
    settings: Settings,
    *,
    n_steps: int,
    validation: Callable[[], Iterable[Batch]] | None,
    history: list[Record],
    progress: Progress,
) -> None:
    """Pretrain the layers of `network` in place, from the input to the code.

    The parameters are those of :func:`dkae.training.loop.train`; `input_noise` is for training end
    to end only.
    """
    for i, layer in enumerate(network.layers):
        below = Autoencoder(network.layers[:i])
        is_code_layer = i == len(network.layers) - 1
        weight = settings.alignment_weight if is_code_layer else 0.0
        train(
            Autoencoder([layer]),
            _lifted(draw, below),
            replace(settings, alignment_weight=weight),
            phase=f"layer {i + 1}",
            n_epochs=settings.pretrain_max_iter,
            n_steps=n_steps,
            validation=None if validation is None else _lifted_all(validation, below),
            history=history,
            progress=progress,
        )


# The activations of the frozen layers are recomputed for each batch. Keeping those of all n rows
# would save about 7 % of the time and cost n times the widest layer in memory.
def _lift(batch: Batch, below: Autoencoder) -> Batch:
    with torch.no_grad():
        activations = below.encode(batch.targets)
    return batch._replace(inputs=activations, targets=activations)


def _lifted(draw: Callable[[], Batch], below: Autoencoder) -> Callable[[], Batch]:
    return lambda: _lift(draw(), below)


def _lifted_all(
    batches: Callable[[], Iterable[Batch]], below: Autoencoder
) -> Callable[[], Iterable[Batch]]:
    return lambda: (_lift(batch, below) for batch in batches())
