"""Layer-wise pretraining (Sections 2.1 and 4.1 of the paper).

Each layer is trained as an autoencoder of its own, on the activations of the layers below it,
which are frozen by then. The layers before the code layer only reconstruct (λ = 0), so they depend
on neither λ nor N_c; the code layer is trained with the full loss of Eq. 5 *also* here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from dkae.networks.stacked import Autoencoder, Layer
from dkae.training.batches import Batch
from dkae.training.checkpoint import NoCheckpoint
from dkae.training.loop import Draw, train
from dkae.training.progress import Progress, Record
from dkae.training.settings import Settings

__all__ = ["pretrain", "start_from"]


def pretrain(
    network: Autoencoder,
    draw: Draw,
    settings: Settings,
    *,
    n_steps: int,
    validation: Callable[[], Iterable[Batch]] | None,
    history: list[Record],
    progress: Progress,
    checkpoint: NoCheckpoint,
    n_given: int = 0,
) -> None:
    """Pretrain the layers of `network` in place, from the input to the code.

    The lowest `n_given` layers are left as they are. The other parameters are those of
    :func:`dkae.training.loop.train`; `input_noise` is for the phases after this one.
    """
    for i, layer in enumerate(network.layers):
        if i < n_given:
            continue
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
            checkpoint=checkpoint,
        )


def start_from(pretrained: Any, network: Autoencoder) -> int:
    """Copy weights into the lowest layers of `network`, and return the number of these layers.

    Parameters
    ----------
    pretrained : Autoencoder or None
        The layers to copy, of the same widths and activations as those of `network`. They are not
        changed. A layer whose decoder has weights of its own keeps them.
    """
    if pretrained is None:
        return 0
    if not isinstance(pretrained, Autoencoder):
        raise ValueError(
            f"pretrained must be an Autoencoder, got {type(pretrained).__name__}: pass the "
            "network_ of a fitted model, or Autoencoder(model.network_.layers[:-1]) for all but "
            "its code"
        )
    n_given, n_layers = len(pretrained.layers), len(network.layers)
    if n_given > n_layers:
        raise ValueError(
            f"pretrained has {n_given} layers, but the network has {n_layers}: pass at most "
            f"{n_layers}, for example Autoencoder(pretrained.layers[:{n_layers}])"
        )
    pairs = list(zip(pretrained.layers, network.layers, strict=False))
    for i, (source, target) in enumerate(pairs):
        _check_same_config(i + 1, source.config, target.config)
    for source, target in pairs:
        _copy(source, target)
    return n_given


def _copy(source: Layer, target: Layer) -> None:
    """Copy the weights; what the decoder of either has of its own, the target has afterwards."""
    if source.decoder_weight is not None:
        target.untie()
    state = source.state_dict()
    if target.decoder_weight is not None:
        state.setdefault("decoder_weight", source.weight.T)
    target.load_state_dict(state)


def _check_same_config(number: int, given: dict[str, Any], expected: dict[str, Any]) -> None:
    for name, value in given.items():
        if name != "tied" and value != expected[name]:
            raise ValueError(
                f"layer {number} of pretrained has {name}={value!r}, but that of the network has "
                f"{name}={expected[name]!r}: pass layers of the same widths and activations, or "
                "set the model's parameters to theirs"
            )


# The activations of the frozen layers are recomputed for each batch. Keeping those of all n rows
# would save about 7 % of the time and cost n times the widest layer in memory.
def _lift(batch: Batch, below: Autoencoder) -> Batch:
    with torch.no_grad():
        activations = below.encode(batch.targets)
    return batch._replace(inputs=activations, targets=activations)


def _lifted(draw: Draw, below: Autoencoder) -> Draw:
    return lambda with_prior: _lift(draw(with_prior), below)


def _lifted_all(
    batches: Callable[[], Iterable[Batch]], below: Autoencoder
) -> Callable[[], Iterable[Batch]]:
    return lambda: (_lift(batch, below) for batch in batches())
