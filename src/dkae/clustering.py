"""The former home of `dkae.spectral.spectral_clustering`; it goes with version 0.3."""

from dkae._support.warning import warn_caller
from dkae.spectral.clustering import spectral_clustering, spectral_embedding

__all__ = ["spectral_clustering", "spectral_embedding"]

warn_caller(
    "dkae.clustering has moved: import spectral_clustering from dkae.spectral", FutureWarning
)
