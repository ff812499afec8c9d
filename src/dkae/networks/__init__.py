"""The networks that map rows to codes and codes back to rows."""

from dkae.networks.convolutional import ConvolutionalAutoencoder
from dkae.networks.layers import (
    ACTIVATIONS,
    VARIANCE,
    Autoencoder,
    Layer,
    Scaling,
    learn_scaling,
)
from dkae.networks.protocol import (
    Stage,
    build_network,
    check_decoder,
    check_network,
    decode_rows,
    encode_rows,
    evaluating,
    seeded,
    summary_of,
)
from dkae.networks.stack import Stack, choose_output_activation, hidden_sizes

__all__ = [
    "ACTIVATIONS",
    "VARIANCE",
    "Autoencoder",
    "ConvolutionalAutoencoder",
    "Layer",
    "Scaling",
    "Stack",
    "Stage",
    "build_network",
    "check_decoder",
    "check_network",
    "choose_output_activation",
    "decode_rows",
    "encode_rows",
    "evaluating",
    "hidden_sizes",
    "learn_scaling",
    "seeded",
    "summary_of",
]
