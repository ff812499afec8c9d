"""The networks that map rows to codes and codes back to rows."""

from dkae.networks.convolutional import ConvolutionalAutoencoder
from dkae.networks.factory import StackedNetwork
from dkae.networks.kernel_layer import KernelLayer, KernelLayerNetwork, RidgeDecoder
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
from dkae.networks.rows import decode_rows, encode_rows
from dkae.networks.scaling import Scaled, Scaling, scaled
from dkae.networks.stacked import ACTIVATIONS, Autoencoder, Layer, LinearPath

__all__ = [
    "ACTIVATIONS",
    "Autoencoder",
    "ConvolutionalAutoencoder",
    "Factory",
    "KernelLayer",
    "KernelLayerNetwork",
    "Layer",
    "LinearPath",
    "Network",
    "ResidualAutoencoder",
    "RidgeDecoder",
    "Scaled",
    "Scaling",
    "StackedNetwork",
    "Stage",
    "build_network",
    "check_decoder",
    "check_network",
    "decode_rows",
    "encode_rows",
    "evaluating",
    "scaled",
    "seeded",
]
