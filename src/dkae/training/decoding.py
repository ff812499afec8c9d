"""The last phase of training: the decoder alone, on codes that stand still.

While both maps are trained together, weights that they share serve two masters, and the more so the
larger λ is: the gradient of L_c drowns that of L_r. Once φ is there, nothing but L_r is left to ask
of φ⁻¹. So the encoder is kept as it is, and the decoder, with weights of its own that start as
those it shared, learns from L_r alone. Because it has learnt already, it does so at half the rate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dkae.networks.stacked import Autoencoder
from dkae.training.loop import Draw, train
from dkae.training.settings import Settings

__all__ = ["DECODER", "train_decoder"]

#: Name of the phase in the history.
DECODER = "decoder"


def train_decoder(network: Autoencoder, draw: Draw, settings: Settings, **shared: Any) -> None:
    """Train the decoder of `network` in place; the codes of all rows stay what they are.

    The other parameters are those of :func:`dkae.training.loop.train`.
    """
    with _fixed_encoder(network):
        train(
            network,
            draw,
            replace(
                settings,
                alignment_weight=0.0,
                learning_rate_init=settings.learning_rate_init / 2,
            ),
            phase=DECODER,
            n_epochs=settings.decoder_max_iter,
            keep_start=True,  # it has learnt already
            **shared,
        )


@contextmanager
def _fixed_encoder(network: Autoencoder) -> Iterator[None]:
    """Give the decoder weights of its own, and keep the encoder's from learning meanwhile."""
    for layer in network.layers:
        layer.untie()
    encoder = [weight for layer in network.layers for weight in (layer.weight, layer.bias)]
    try:
        for weight in encoder:
            weight.requires_grad_(False)
        yield
    finally:
        for weight in encoder:
            weight.requires_grad_(True)
