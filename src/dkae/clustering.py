"""The former home of `dkae.spectral.spectral_clustering`; it goes with version 0.3."""

from __future__ import annotations

import warnings

from dkae.spectral.clustering import spectral_clustering, spectral_embedding

__all__ = ["spectral_clustering", "spectral_embedding"]

warnings.warn(
    "dkae.clustering has moved: import spectral_clustering from dkae.spectral",
    FutureWarning,
    stacklevel=2,
)
