"""The networks that map rows to codes and codes back to rows."""

from dkae.networks.stacked import Autoencoder, Layer, build_autoencoder

__all__ = ["Autoencoder", "Layer", "build_autoencoder"]
