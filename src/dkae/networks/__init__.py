"""The networks that map rows to codes and codes back to rows."""

from dkae.networks.convolutional import ConvolutionalAutoencoder
from dkae.networks.inference import decode_rows, encode_rows, summary_of
from dkae.networks.layers import ACTIVATIONS, Autoencoder, Layer
from dkae.networks.protocol import (
    Factory,
    Network,
    Stage,
    build_network,
    check_decoder,
    check_network,
    evaluating,
    seeded,
)
from dkae.networks.residual import ResidualAutoencoder
from dkae.networks.scaling import VARIANCE, Scaling, learn_scaling
from dkae.networks.stack import Stack, choose_output_activation, hidden_sizes

__all__ = [
    "ACTIVATIONS",
    "VARIANCE",
    "Autoencoder",
    "ConvolutionalAutoencoder",
    "Factory",
    "Layer",
    "Network",
    "ResidualAutoencoder",
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
